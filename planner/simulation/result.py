"""What a run shows: a row per request, a row per interval, a record per replica, and figures made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.simulation import Outcome
from planner.errors import InternalError
from planner.simulation.kernel import total

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.simulation import ReplicaState, ServiceSpec, TwinSpec
    from planner.simulation.kernel.state import Floats, Ints

__all__ = [
    "ReplicaRecord",
    "Result",
    "Served",
    "in_order",
    "itl_s",
    "promises_kept",
    "request_columns",
]

Columns = dict[str, "NDArray[Any]"]
"""A table: arrays of one length by name of the column."""

_INTEGERS: Final = (
    "request", "service", "input_tokens", "output_tokens", "replica", "outcome", "preemptions", "attempts",
    "prefix_hit_tokens", "tokens_made",
)  # fmt: skip
_TIMES: Final = ("arrival_s", "start_s", "first_token_s", "end_s")
_PERCENTILES: Final = (50.0, 95.0, 99.0)
_HOUR_S: Final = 3600.0
_JOULES_PER_KWH: Final = 3.6e6


def request_columns(rows: Ints, times: Floats) -> Columns:
    """Rows of the kernel as named columns; ``end_s`` is the last token, or when the request failed.

    Counts are int32 (the request int64), times float64; a time that never came is NaN.
    """
    columns: Columns = {name: rows[:, k].astype(np.int32) for k, name in enumerate(_INTEGERS)}
    columns["request"] = rows[:, total.O_REQUEST].copy()
    return columns | {name: times[:, k].copy() for k, name in enumerate(_TIMES)}


def in_order(tables: Sequence[Columns]) -> Columns:
    """Tables of requests, at least one, as one table in order of arrival."""
    joined = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    order = np.argsort(joined["request"], kind="stable")
    return {name: column[order] for name, column in joined.items()}


def itl_s(rows: Columns) -> Floats:
    """Mean time per output token after the first, by request; 0 where there is only one."""
    intervals = np.maximum(rows["output_tokens"] - 1, 1)
    spans: Floats = np.where(rows["output_tokens"] > 1, rows["end_s"] - rows["first_token_s"], 0.0)
    means: Floats = spans / intervals
    return means


def promises_kept(rows: Columns, services: Sequence[ServiceSpec]) -> NDArray[np.bool_]:
    """Whether each request, if it was done, met the promises of its service."""
    met = np.ones(len(rows["service"]), bool)
    for limits, values in (
        ([service.ttft_slo_s for service in services], rows["first_token_s"] - rows["arrival_s"]),
        ([service.itl_slo_s for service in services], itl_s(rows)),
        ([service.e2e_slo_s for service in services], rows["end_s"] - rows["arrival_s"]),
    ):
        # What was never promised (NaN) is kept, whatever came of it.
        limit = np.array(limits, float)[rows["service"]]
        met &= np.isnan(limit) | (values <= limit)
    return met


@dataclass(frozen=True, slots=True)
class ReplicaRecord:
    """The life of one replica.

    Attributes:
        name: ``variant-number``.
        variant: its variant.
        node: where it ran; empty where nodes are not told apart.
        created_s: when it was asked for and had its GPUs.
        ready_s: when it took requests; None: never.
        removed_s: when it was gone; None: it was there at the end.
        state: at the end.
        busy_s: while a step ran.
        running_s: request-seconds in service.
        gpu_s: GPU-seconds that it held.
        cost_usd: price times life.
        energy_j: idle power times life, and what busy seconds and running requests add.
    """

    name: str
    variant: str
    node: str
    created_s: float
    ready_s: float | None
    removed_s: float | None
    state: ReplicaState
    busy_s: float
    running_s: float
    gpu_s: float
    cost_usd: float
    energy_j: float


@dataclass(frozen=True, slots=True)
class Served:
    """Figures of one service, or of all.

    Attributes:
        arrivals: requests that came.
        outcomes: how many ended how.
        attainment: share of all that came and are not in flight that were done within every promise; NaN: none.
        goodput_rps: requests done within every promise, per second of the run.
        throughput_rps: requests done, per second of the run.
        output_tokens_per_s: of requests done.
        ttft_s: mean, p50, p95, p99 of those that had a first token.
        itl_s: the same of each request's mean time per output token after the first.
        e2e_s: the same of requests done.
    """

    arrivals: int
    outcomes: Mapping[Outcome, int]
    attainment: float
    goodput_rps: float
    throughput_rps: float
    output_tokens_per_s: float
    ttft_s: Mapping[str, float]
    itl_s: Mapping[str, float]
    e2e_s: Mapping[str, float]


def _spread(values: Floats) -> dict[str, float]:
    if len(values) == 0:
        return {"mean": float("nan")} | {f"p{p:g}": float("nan") for p in _PERCENTILES}
    return {"mean": float(np.mean(values))} | {
        f"p{p:g}": float(np.percentile(values, p)) for p in _PERCENTILES
    }


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A run that has ended.

    Attributes:
        spec: what was replayed against.
        duration_s: length of the run.
        arrivals: requests that came, by service.
        requests: a row per request in order of arrival; empty where rows went to a sink.
        time: ``time_s`` of each interval's end, and counts of services there (``service:arrivals`` and so on).
        variants: a table over the same times for each variant.
        replicas: every replica there was, in order of creation.
    """

    spec: TwinSpec
    duration_s: float
    arrivals: Mapping[str, int]
    requests: Columns
    time: Columns
    variants: Mapping[str, Columns]
    replicas: tuple[ReplicaRecord, ...]

    def check_conservation(self) -> None:
        """Arrivals = done + failed + in flight, and each request has one row.

        Raises:
            InternalError: they do not balance.
        """
        rows = self.requests["request"]
        if len(rows) != sum(self.arrivals.values()) or not np.array_equal(rows, np.arange(len(rows))):
            raise InternalError(f"{sum(self.arrivals.values())} requests arrived, {len(rows)} have a row")

    def served(self, service: str | None = None) -> Served:
        """Figures of a service by its name; None: of all together, each held to its own promises."""
        names = [spec.name for spec in self.spec.services]
        mine = np.ones(len(self.requests["request"]), bool)
        if service is not None:
            mine = self.requests["service"] == names.index(service)
        rows = {name: column[mine] for name, column in self.requests.items()}
        done = rows["outcome"] == Outcome.DONE
        good = done & self.kept(rows)
        ended = rows["outcome"] != Outcome.UNFINISHED
        itl, several = itl_s(rows), done & (rows["output_tokens"] > 1)
        first = ~np.isnan(rows["first_token_s"])
        return Served(
            arrivals=len(done),
            outcomes={outcome: int(np.sum(rows["outcome"] == outcome)) for outcome in Outcome},
            attainment=float(np.sum(good) / np.sum(ended)) if np.any(ended) else float("nan"),
            goodput_rps=float(np.sum(good)) / self.duration_s,
            throughput_rps=float(np.sum(done)) / self.duration_s,
            output_tokens_per_s=float(np.sum(rows["output_tokens"][done])) / self.duration_s,
            ttft_s=_spread((rows["first_token_s"] - rows["arrival_s"])[first]),
            itl_s=_spread(itl[several]),
            e2e_s=_spread((rows["end_s"] - rows["arrival_s"])[done]),
        )

    def kept(self, rows: Columns) -> NDArray[np.bool_]:
        """Whether each request that was done met the promises of its service."""
        return promises_kept(rows, self.spec.services)

    def there(self, variant: str) -> NDArray[np.int64]:
        """Replicas of a variant at the end of each interval: starting, ready, draining, paused."""
        table = self.variants[variant]
        counts: NDArray[np.int64] = table["starting"] + table["ready"] + table["draining"] + table["paused"]
        return counts

    def life_s(self, replica: ReplicaRecord) -> float:
        """From creation to removal, or to the end of the run."""
        return (self.duration_s if replica.removed_s is None else replica.removed_s) - replica.created_s

    @property
    def cost_usd(self) -> float:
        """Of all replicas."""
        return sum(replica.cost_usd for replica in self.replicas)

    @property
    def energy_kwh(self) -> float:
        """Of all replicas."""
        return sum(replica.energy_j for replica in self.replicas) / _JOULES_PER_KWH

    @property
    def gpu_hours(self) -> float:
        """Held by all replicas."""
        return sum(replica.gpu_s for replica in self.replicas) / _HOUR_S

    @property
    def replica_hours(self) -> float:
        """From creation to removal, of all replicas."""
        return sum(map(self.life_s, self.replicas)) / _HOUR_S

    def chrome_trace(self) -> dict[str, object]:
        """The run as Chrome and Perfetto show it: a process per replica, a bar from start to end of each request."""
        rows = self.requests
        started = np.flatnonzero(~np.isnan(rows["start_s"]) & (rows["replica"] >= 0))
        names: list[dict[str, object]] = [
            {"ph": "M", "name": "process_name", "pid": r, "args": {"name": replica.name}}
            for r, replica in enumerate(self.replicas)
        ]
        bars: list[dict[str, object]] = [
            {
                "ph": "X",
                "name": Outcome(int(rows["outcome"][i])).name.lower(),
                "pid": int(rows["replica"][i]),
                "tid": int(rows["request"][i]),
                "ts": float(rows["start_s"][i]) * 1e6,
                "dur": float(rows["end_s"][i] - rows["start_s"][i]) * 1e6,
                "args": {"input": int(rows["input_tokens"][i]), "output": int(rows["output_tokens"][i])},
            }
            for i in started
        ]
        return {"traceEvents": names + bars, "displayTimeUnit": "ms"}
