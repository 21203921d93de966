"""Traffic as ServeGen tells it: 10-minute rates of a whole service, or rates and burstiness of each of its clients.

Clients: in each window the arrivals of a client are a stationary renewal process at the client's rate, with gaps of the
family and shape that were fitted to it (Gamma or Weibull); the rate goes before the fitted scale. Rates alone: Poisson at
the rate of each window. Lengths follow the quantiles of each client in 6-hour windows: straight in the logarithm over
normal scores through p50, p90 and p99, which are hit exactly. Each window has chance of its own, so a piece of the
trace is the same whether or not what is before it is made.

Source: ServeGen (arXiv 2505.09999), data aggregated by client and window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.errors import ConfigurationError, Finding
from planner.traces.chunks import moved, rechunked, taken
from planner.traces.lengths import Lengths
from planner.traces.requests import RequestChunk
from planner.traces.texts import MOST_TOKENS, numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.traces.badrows import BadRows
    from planner.traces.rows import Rows

__all__ = ["ClientWindow", "Clients", "Quantiles", "TokenTable", "clients_of", "rates_of", "tokens_of"]

_Z90, _Z99, _Z_MOST = 1.2815515655446004, 2.3263478740408408, 3.5
_TOKEN_WINDOW_S: Final = 21_600.0


@dataclass(frozen=True, slots=True)
class ClientWindow:
    """One client in one window.

    Attributes:
        client: its number; -1: all clients together.
        start_s: when the window begins.
        rate_rps: requests per second in it.
        family: ``Gamma``, ``Weibull`` or ``Exponential``.
        shape: of the gaps.
    """

    client: int
    start_s: float
    rate_rps: float
    family: str = "Exponential"
    shape: float = 1.0


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Of a length: tokens that 50, 90 and 99 % do not exceed."""

    p50: float
    p90: float
    p99: float

    def draw(self, rng: np.random.Generator, n: int) -> NDArray[np.int32]:
        """``n`` lengths, tokens."""
        scores = np.clip(rng.standard_normal(n), -_Z_MOST, _Z_MOST)
        logs = np.log(np.maximum.accumulate(np.maximum([self.p50, self.p90, self.p99], 1.0)))
        low, high = (logs[1] - logs[0]) / _Z90, (logs[2] - logs[1]) / (_Z99 - _Z90)
        values = np.where(scores < _Z90, logs[0] + low * scores, logs[1] + high * (scores - _Z90))
        lengths: NDArray[np.int32] = np.clip(np.rint(np.exp(values)), 1, MOST_TOKENS).astype(np.int32)
        return lengths


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Lengths by client and 6-hour window.

    Attributes:
        known: inputs, outputs and number of requests, by window and client.
    """

    known: Mapping[tuple[float, int], tuple[Quantiles, Quantiles, float]]
    _of_window: dict[float, tuple[list[tuple[Quantiles, Quantiles, float]], NDArray[np.float64]]] = field(
        default_factory=dict, compare=False
    )

    def draw(
        self, rng: np.random.Generator, n: int, *, client: int, at_s: float
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Of a client, or (where it has no row) of all clients of that window by their share."""
        window = math.floor(at_s / _TOKEN_WINDOW_S) * _TOKEN_WINDOW_S
        own = self.known.get((window, client))
        if own is not None:
            return own[0].draw(rng, n), own[1].draw(rng, n)
        rows, shares = self._window(window)
        inputs, outputs = np.empty(n, np.int32), np.empty(n, np.int32)
        which = rng.choice(len(rows), n, p=shares)
        for k in np.unique(which).tolist():
            mine = np.flatnonzero(which == k)
            inputs[mine], outputs[mine] = rows[k][0].draw(rng, len(mine)), rows[k][1].draw(rng, len(mine))
        return inputs, outputs

    def _window(self, start_s: float) -> tuple[list[tuple[Quantiles, Quantiles, float]], NDArray[np.float64]]:
        if start_s not in self._of_window:
            windows = sorted({window for window, _ in self.known})
            nearest = min(windows, key=lambda window: (abs(window - start_s), window))
            rows = [self.known[key] for key in sorted(self.known) if key[0] == nearest]
            weights = np.array([row[2] for row in rows])
            shares = weights / weights.sum() if weights.sum() > 0 else np.full(len(rows), 1 / len(rows))
            self._of_window[start_s] = rows, shares
        return self._of_window[start_s]


@dataclass(frozen=True, slots=True)
class Clients:
    """Traffic of all clients, made window by window.

    Attributes:
        windows: in order of their start, then client.
        window_s: length of a window.
        tokens: lengths by client; or lengths for all of them.
        seed: of all chance.
        start_s: what comes before is left out, and the trace begins there.
        end_s: what comes from here on is left out.
    """

    windows: tuple[ClientWindow, ...]
    window_s: float
    tokens: TokenTable | Lengths
    seed: int = 0
    start_s: float = 0.0
    end_s: float = math.inf

    def __iter__(self) -> Iterator[RequestChunk]:
        """Chunks in order of arrival."""
        return rechunked(self._pieces())

    def _pieces(self) -> Iterator[RequestChunk]:
        by_start: dict[float, list[ClientWindow]] = {}
        for window in self.windows:
            if window.start_s + self.window_s > self.start_s and window.start_s < self.end_s:
                by_start.setdefault(window.start_s, []).append(window)
        for start_s in sorted(by_start):
            chunk = self._window(by_start[start_s])
            inside = (chunk.arrival_s >= self.start_s) & (chunk.arrival_s < self.end_s)
            piece = taken(chunk, np.flatnonzero(inside))
            yield moved(piece, piece.arrival_s - self.start_s)

    def _window(self, clients: list[ClientWindow]) -> RequestChunk:
        parts = [self._client(client) for client in clients]
        arrivals, inputs, outputs = (np.concatenate([part[k] for part in parts]) for k in range(3))
        order = np.argsort(arrivals, kind="stable")
        return RequestChunk(arrivals[order], inputs[order].astype(np.int32), outputs[order].astype(np.int32))

    def _client(
        self, window: ClientWindow
    ) -> tuple[NDArray[np.float64], NDArray[np.int32], NDArray[np.int32]]:
        rng = np.random.default_rng([self.seed, round(window.start_s), window.client + 1])
        arrivals = window.start_s + _renewals(rng, window, self.window_s)
        if isinstance(self.tokens, TokenTable):
            return arrivals, *self.tokens.draw(rng, len(arrivals), client=window.client, at_s=window.start_s)
        return arrivals, *self.tokens.draw(rng, len(arrivals))


def _renewals(rng: np.random.Generator, window: ClientWindow, length_s: float) -> NDArray[np.float64]:
    """Arrivals of a stationary renewal process from 0 to ``length_s``, s."""
    expected = window.rate_rps * length_s
    if expected <= 0:
        return np.zeros(0)
    draw, first = _gaps_of(window)
    block = int(expected + 4 * math.sqrt(expected)) + 16
    reached = [np.array([first(rng)])]
    while reached[-1][-1] < expected:
        reached.append(reached[-1][-1] + np.cumsum(draw(rng, block)))
    arrivals = np.concatenate(reached)
    return arrivals[arrivals < expected] / window.rate_rps


def _gaps_of(window: ClientWindow) -> tuple[Any, Any]:
    """Who draws gaps of mean 1, and who draws the first: a part of a gap that is met by its length."""
    shape = window.shape
    if window.family == "Weibull":
        mean = math.gamma(1 + 1 / shape)
        return (
            lambda rng, n: rng.weibull(shape, n) / mean,
            lambda rng: rng.random() * rng.standard_gamma(1 + 1 / shape) ** (1 / shape) / mean,
        )
    if window.family == "Gamma":
        return (
            lambda rng, n: rng.standard_gamma(shape, n) / shape,
            lambda rng: rng.random() * rng.standard_gamma(shape + 1) / shape,
        )
    return lambda rng, n: rng.standard_exponential(n), lambda rng: rng.standard_exponential()


def clients_of(rows: Rows, bad: BadRows) -> tuple[tuple[ClientWindow, ...], float]:
    """Windows of clients, and how long one is.

    Raises:
        ConfigurationError: a row is bad and that is an error, or none is left.
    """
    table = _Table(rows, ("client_id", "window_start_s", "rate_rps", "p1"), bad)
    families = [str(row.get("pattern", "")).strip().capitalize() for row in table.rows]
    known = ("Gamma", "Weibull", "Exponential")
    findings = [
        Finding(rows.file, table.lines[i], "pattern", repr(name)[:40], ", ".join(known))
        for i, name in enumerate(families)
        if name not in known
    ]
    values = table.values
    wrong = (values["rate_rps"] < 0) | (values["p1"] <= 0) | (values["window_start_s"] < 0)
    findings += table.findings(wrong, "a rate, a window and a shape that are not negative")
    bad.refuse(sorted(findings, key=lambda finding: finding.line or 0))
    windows = tuple(
        ClientWindow(
            int(values["client_id"][i]),
            float(values["window_start_s"][i]),
            float(values["rate_rps"][i]),
            families[i],
            float(values["p1"][i]),
        )
        for i in range(len(families))
        if families[i] in known and not wrong[i]
    )
    return _in_order(windows, rows.file)


def rates_of(rows: Rows, bad: BadRows) -> tuple[tuple[ClientWindow, ...], float]:
    """Windows of the whole service, and how long one is.

    Raises:
        ConfigurationError: a row is bad and that is an error, or none is left.
    """
    table = _Table(rows, ("window_start_s", "total_rps"), bad)
    starts, rates = table.values["window_start_s"], table.values["total_rps"]
    wrong = (rates < 0) | (starts < 0)
    bad.refuse(table.findings(wrong, "a rate and a window that are not negative"))
    windows = tuple(
        ClientWindow(-1, float(starts[i]), float(rates[i])) for i in np.flatnonzero(~wrong).tolist()
    )
    return _in_order(windows, rows.file)


def tokens_of(rows: Rows, bad: BadRows) -> TokenTable:
    """Lengths of clients.

    Raises:
        ConfigurationError: a row is bad and that is an error, or none is left.
    """
    names = [f"{side}_tokens_p{p}" for side in ("input", "output") for p in (50, 90, 99)]
    table = _Table(rows, ("client_id", "window_start_s", "requests", *names), bad)
    values = table.values
    known = {}
    for i in range(len(table.rows)):
        quantiles = [Quantiles(*(float(values[name][i]) for name in names[k : k + 3])) for k in (0, 3)]
        key = float(values["window_start_s"][i]), int(values["client_id"][i])
        known[key] = (quantiles[0], quantiles[1], max(0.0, float(values["requests"][i])))
    if not known:
        raise _no_row(rows.file)
    return TokenTable(known)


class _Table:
    """Columns of numbers; rows that lack one are bad."""

    def __init__(self, rows: Rows, names: tuple[str, ...], bad: BadRows) -> None:
        self._file = rows.file
        read = list(rows)
        columns = {name: numbers([row.get(name) for _, row in read]) for name in names}
        bad.rows += len(read)
        findings, good = [], np.ones(len(read), bool)
        for name, column in columns.items():
            for i in np.flatnonzero(np.isnan(column) & good).tolist():
                found = repr(read[i][1].get(name))[:40]
                findings.append(Finding(rows.file, read[i][0], name, found, "a number"))
            good &= ~np.isnan(column)
        bad.refuse(sorted(findings, key=lambda finding: finding.line or 0))
        kept = np.flatnonzero(good)
        self.lines = [read[i][0] for i in kept.tolist()]
        self.rows = [read[i][1] for i in kept.tolist()]
        self.values = {name: column[kept] for name, column in columns.items()}

    def findings(self, wrong: NDArray[np.bool_], allowed: str) -> list[Finding]:
        """One for each row that is wrong."""
        return [
            Finding(self._file, self.lines[i], "", "values that cannot be", allowed)
            for i in np.flatnonzero(wrong).tolist()
        ]


def _in_order(windows: tuple[ClientWindow, ...], file: str) -> tuple[tuple[ClientWindow, ...], float]:
    if not windows:
        raise _no_row(file)
    ordered = tuple(sorted(windows, key=lambda window: (window.start_s, window.client)))
    starts = np.unique([window.start_s for window in ordered])
    length_s = float(np.min(np.diff(starts))) if len(starts) > 1 else 600.0
    return ordered, length_s


def _no_row(file: str) -> ConfigurationError:
    return ConfigurationError.from_findings([Finding(file, None, "", "no row", "at least one")])
