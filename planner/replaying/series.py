"""Runs as rows of charts: each policy's traffic, replicas, KV cache, first tokens and failures over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.replaying.tallying import CAUSES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from models.workload import Service
    from planner.replaying.running import Run

__all__ = [
    "failure_rows",
    "kv_rows",
    "replica_rows",
    "saturated_kv",
    "traffic_rows",
    "ttft_rows",
    "ttft_targets_s",
]

Rows = list[dict[str, Any]]

_POINTS: Final = 300


def ttft_targets_s(services: Sequence[Service]) -> tuple[float, ...]:
    """What services promise of the time to the first token, s; those that promise nothing are left out."""
    return tuple(each.slo.ttft_s for each in services if each.slo.ttft_s is not None)


def saturated_kv(services: Sequence[Service]) -> float:
    """Share of the KV cache (1: all of it) from which on replicas of some service are saturated."""
    return min(each.thresholds.tau_kv for each in services)


def traffic_rows(runs: Sequence[Run]) -> Rows:
    """``time_s``, ``rps``, ``what`` (``arrive``, ``done in time``), ``policy``; what arrives is the same for all."""
    rows: Rows = []
    for run in runs:
        table = run.over_time
        if not rows:
            rows += _rows(table["time_s"], table["arrivals"], "rps", policy="", what="arrive")
        rows += _rows(table["time_s"], table["good"], "rps", policy=run.figures.policy, what="done in time")
    return rows


def failure_rows(runs: Sequence[Run]) -> Rows:
    """``time_s``, ``rps``, ``cause``, ``policy``; causes that never struck are left out."""
    rows: Rows = []
    for run in runs:
        for cause in CAUSES.values():
            if run.over_time[cause].any():
                rows += _rows(
                    run.over_time["time_s"],
                    run.over_time[cause],
                    "rps",
                    policy=run.figures.policy,
                    cause=cause,
                )
    return rows


def ttft_rows(runs: Sequence[Run]) -> Rows:
    """``time_s``, ``ttft_s``, ``percentile``, ``policy``, by when requests arrived."""
    rows: Rows = []
    for run in runs:
        for name in ("p50", "p95", "p99"):
            values = run.over_time[f"ttft_{name}_s"]
            rows += _rows(
                run.over_time["time_s"], values, "ttft_s", policy=run.figures.policy, percentile=name
            )
    return rows


def replica_rows(runs: Sequence[Run]) -> Rows:
    """``time_s``, ``replicas``, ``variant``, ``policy``: those that take requests or soon will, or still finish some."""
    rows: Rows = []
    for run in runs:
        time_s = run.result.time["time_s"]
        for variant in run.result.variants:
            counts = run.result.there(variant)
            if counts.any():
                means = _means(counts)
                rows += _rows(_means(time_s), means, "replicas", policy=run.figures.policy, variant=variant)
    return rows


def kv_rows(runs: Sequence[Run]) -> Rows:
    """``time_s``, ``kv_usage``, ``variant``, ``policy``: share of the KV blocks of ready replicas that is held."""
    rows: Rows = []
    for run in runs:
        time_s = run.result.time["time_s"]
        for variant, table in run.result.variants.items():
            if table["kv_blocks"].any():
                used, blocks = _means(table["kv_used"]), _means(table["kv_blocks"])
                usage = np.divide(used, blocks, out=np.full(len(used), np.nan), where=blocks > 0)
                rows += _rows(_means(time_s), usage, "kv_usage", policy=run.figures.policy, variant=variant)
    return rows


def _rows(time_s: NDArray[Any], values: NDArray[Any], figure: str, **names: str) -> Iterator[dict[str, Any]]:
    for at, value in zip(time_s.tolist(), values.tolist(), strict=True):
        yield {"time_s": at, figure: None if math.isnan(value) else value, **names}


def _means(values: NDArray[Any]) -> NDArray[np.float64]:
    """Means over as many intervals as a chart has points for."""
    if len(values) <= _POINTS:
        return values.astype(np.float64)
    width = -(-len(values) // _POINTS)
    starts = np.arange(0, len(values), width)
    sums = np.add.reduceat(values.astype(np.float64), starts)
    counts = np.diff(np.append(starts, len(values)))
    means: NDArray[np.float64] = sums / counts
    return means
