"""Figures of requests while they stream by: counts, percentiles, and how they run over time; rows need not be kept.

Percentiles are exact up to a number of requests; beyond it latencies are counted in bins whose width is 1 % of their
value, so that a percentile is within 0.5 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.simulation import Outcome, ServiceSpec
from planner.simulation.result import itl_s, promises_kept

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.simulation.result import Columns

__all__ = ["CAUSES", "EXACT_UP_TO", "OverTime", "Spread", "Tally", "seen"]

EXACT_UP_TO: Final = 2_000_000
"""Latencies that are kept one by one."""

CAUSES: Final = {
    Outcome.REJECTED_429: "rejected_429",
    Outcome.REJECTED_503: "rejected_503",
    Outcome.ABORTED: "aborted",
    Outcome.TIMED_OUT: "timed_out",
    Outcome.FAILED_500: "failed_500",
}
"""Names of what made requests fail."""

_STEP: Final = math.log1p(0.01)
_LEAST_S: Final = 1e-6
_BINS: Final = 2600
_TIMES: Final = 256
"""Points over time at most twice as many."""

_COARSE: Final = 200
_COARSE_STEP: Final = math.log(1e4 / 1e-3) / _COARSE
_COARSE_LEAST_S: Final = 1e-3


@dataclass(slots=True)
class Spread:
    """One latency over requests.

    Attributes:
        limit: values kept one by one; with more of them bins alone are kept.
        count: values seen.
        total_s: their sum.
    """

    limit: int = EXACT_UP_TO
    count: int = 0
    total_s: float = 0.0
    _values: list[NDArray[np.float64]] | None = field(default_factory=list)
    _bins: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_BINS, np.int64))

    def add(self, values_s: NDArray[np.float64]) -> None:
        """Take more values."""
        self.count += len(values_s)
        self.total_s += float(np.sum(values_s))
        places = np.log(np.maximum(values_s, _LEAST_S) / _LEAST_S) / _STEP
        np.add.at(self._bins, np.minimum(places.astype(np.int64), _BINS - 1), 1)
        if self._values is not None:
            self._values.append(values_s)
            if self.count > self.limit:
                self._values = None

    @property
    def exact(self) -> bool:
        """Whether percentiles are exact."""
        return self._values is not None

    def mean_s(self) -> float | None:
        """Mean; None: there is none."""
        return self.total_s / self.count if self.count else None

    def percentile_s(self, percent: float) -> float | None:
        """Percentile; None: there is none."""
        if not self.count:
            return None
        if self._values is not None:
            self._values = [np.concatenate(self._values)]
            return float(np.percentile(self._values[0], percent))
        rank = percent / 100.0 * (self.count - 1)
        place = int(np.searchsorted(np.cumsum(self._bins), rank, side="right"))
        return float(_LEAST_S * math.exp((place + 0.5) * _STEP))


@dataclass(slots=True)
class OverTime:
    """Requests by when they arrived or ended, in intervals that widen as the run gets longer.

    Attributes:
        width_s: of an interval.
    """

    width_s: float = 1.0
    _counts: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    _ttft: NDArray[np.int64] = field(default_factory=lambda: np.zeros((2 * _TIMES, _COARSE), np.int64))
    _used: int = 0

    def add(self, name: str, times_s: NDArray[np.float64]) -> None:
        """Count events of a kind."""
        places = self._places(times_s)
        counts = self._counts.setdefault(name, np.zeros(2 * _TIMES, np.int64))
        np.add.at(counts, places, 1)

    def add_ttft(self, times_s: NDArray[np.float64], values_s: NDArray[np.float64]) -> None:
        """Take times to the first token of requests that arrived at these times."""
        bins = np.log(np.maximum(values_s, _COARSE_LEAST_S) / _COARSE_LEAST_S) / _COARSE_STEP
        np.add.at(self._ttft, (self._places(times_s), np.minimum(bins.astype(np.int64), _COARSE - 1)), 1)

    def _places(self, times_s: NDArray[np.float64]) -> NDArray[np.int64]:
        last_s = float(times_s.max()) if len(times_s) else 0.0
        while last_s >= 2 * _TIMES * self.width_s:
            self.width_s *= 2
            for name, counts in self._counts.items():
                self._counts[name] = _halved(counts)
            self._ttft = _halved(self._ttft)
            self._used = -(-self._used // 2)
        places = np.floor(times_s / self.width_s).astype(np.int64)
        self._used = max(self._used, int(places.max()) + 1 if len(places) else 0)
        return places

    def table(self) -> dict[str, NDArray[np.float64]]:
        """``time_s`` (middle of each interval), events per second by kind, ``ttft_p50_s``, ``_p95_s``, ``_p99_s`` (NaN: none)."""
        table: dict[str, Any] = {"time_s": (np.arange(self._used) + 0.5) * self.width_s}
        for name, counts in self._counts.items():
            table[name] = counts[: self._used] / self.width_s
        rows = self._ttft[: self._used]
        reached, totals = np.cumsum(rows, axis=1), rows.sum(axis=1)
        for percent in (50, 95, 99):
            place = np.argmax(reached >= np.maximum(1, np.ceil(totals * percent / 100))[:, None], axis=1)
            values = _COARSE_LEAST_S * np.exp((place + 0.5) * _COARSE_STEP)
            table[f"ttft_p{percent}_s"] = np.where(totals > 0, values, np.nan)
        return table


def _halved(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of intervals as one; the second half is empty again."""
    pairs: NDArray[np.int64] = counts.reshape(_TIMES, 2, *counts.shape[1:]).sum(axis=1)
    return np.concatenate([pairs, np.zeros_like(pairs)])


@dataclass(slots=True)
class _Service:
    outcomes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Outcome), np.int64))
    good: int = 0
    output_tokens: int = 0
    input_tokens: int = 0
    hit_tokens: int = 0
    preemptions: int = 0
    ttft: Spread = field(default_factory=Spread)
    itl: Spread = field(default_factory=Spread)
    e2e: Spread = field(default_factory=Spread)


class Tally:
    """Takes tables of requests that ended, in any pieces.

    Args:
        services: whose targets requests are held to.
        exact_up_to: latencies of a service that are kept one by one.
    """

    def __init__(self, services: tuple[ServiceSpec, ...], *, exact_up_to: int = EXACT_UP_TO) -> None:
        # The last one is all services together.
        self._services = [
            _Service(ttft=Spread(exact_up_to), itl=Spread(exact_up_to), e2e=Spread(exact_up_to))
            for _ in range(len(services) + 1)
        ]
        self._specs = services
        self.over_time = OverTime()

    @property
    def rows(self) -> int:
        """Requests taken so far."""
        return int(self._services[-1].outcomes.sum())

    @property
    def exact(self) -> bool:
        """Whether all percentiles are exact."""
        return all(each.exact for one in self._services for each in (one.ttft, one.itl, one.e2e))

    def service(self, index: int) -> _Service:
        """Figures of a service; -1: of all."""
        return self._services[index]

    def __call__(self, rows: Columns) -> None:
        """Take a table of requests."""
        done = rows["outcome"] == Outcome.DONE
        ttft = rows["first_token_s"] - rows["arrival_s"]
        e2e = rows["end_s"] - rows["arrival_s"]
        itl, several = itl_s(rows), rows["output_tokens"] > 1
        good = done & promises_kept(rows, self._specs)
        first = ~np.isnan(rows["first_token_s"])
        for index in range(len(self._services)):
            mine = slice(None) if index == len(self._services) - 1 else rows["service"] == index
            self._add(self._services[index], {name: column[mine] for name, column in rows.items()},
                      done[mine], good[mine])  # fmt: skip
            one = self._services[index]
            one.ttft.add(ttft[mine][first[mine]])
            one.itl.add(itl[mine][(done & several)[mine]])
            one.e2e.add(e2e[mine][done[mine]])
        self._note(rows, done, good, first)

    @staticmethod
    def _add(one: _Service, rows: Columns, done: NDArray[np.bool_], good: NDArray[np.bool_]) -> None:
        one.outcomes += np.bincount(rows["outcome"], minlength=len(Outcome))
        one.good += int(np.sum(good))
        one.output_tokens += int(np.sum(rows["output_tokens"][done], dtype=np.int64))
        one.input_tokens += int(np.sum(rows["input_tokens"], dtype=np.int64))
        one.hit_tokens += int(np.sum(rows["prefix_hit_tokens"], dtype=np.int64))
        one.preemptions += int(np.sum(rows["preemptions"], dtype=np.int64))

    def _note(
        self, rows: Columns, done: NDArray[np.bool_], good: NDArray[np.bool_], first: NDArray[np.bool_]
    ) -> None:
        over = self.over_time
        over.add("arrivals", rows["arrival_s"])
        over.add("done", rows["end_s"][done])
        over.add("good", rows["end_s"][good])
        for outcome, name in CAUSES.items():
            over.add(name, rows["end_s"][rows["outcome"] == outcome])
        over.add_ttft(rows["arrival_s"][first], (rows["first_token_s"] - rows["arrival_s"])[first])


def seen(spread: Spread, at: str) -> float | None:
    """A statistic of a latency: ``mean``, or a percentile such as ``p95``."""
    return spread.mean_s() if at == "mean" else spread.percentile_s(float(at.removeprefix("p")))
