"""Builders for tests of the digital twin."""

from __future__ import annotations

from typing import Any

import numpy as np

from models.simulation import ReplicaSpec, RouterSpec, ServiceSpec, TwinSpec
from models.twin_timing import LinearTiming
from planner.simulation.result import Result
from planner.simulation.twin import Twin
from planner.traces.requests import RequestChunk

STEADY = LinearTiming(
    base_s=0.01, per_request_s=1e-4, per_prefill_token_s=4e-5, per_kv_token_s=1e-8, per_pair_s=1e-9
)


def a_replica(**changes: Any) -> ReplicaSpec:
    """A replica of variant ``v`` of service ``chat``."""
    fields: dict[str, Any] = {"variant": "v", "service": "chat", "timing": STEADY, "kv_blocks": 2000}
    return ReplicaSpec(**(fields | changes))


def a_fleet(*replicas: ReplicaSpec, router: RouterSpec | None = None, **changes: Any) -> TwinSpec:
    """A service ``chat`` with these replicas."""
    service = ServiceSpec(name="chat", router=router or RouterSpec(), **changes.pop("service", {}))
    return TwinSpec(services=(service,), replicas=replicas or (a_replica(),), **changes)


def requests(arrival_s: Any, inputs: Any, outputs: Any, **columns: Any) -> RequestChunk:
    """A chunk of these columns."""
    return RequestChunk(
        np.asarray(arrival_s, float), np.asarray(inputs, np.int32), np.asarray(outputs, np.int32), **columns
    )


def poisson(
    n: int,
    rate: float,
    *,
    seed: int = 1,
    inputs: tuple[int, int] = (10, 400),
    outputs: tuple[int, int] = (1, 80),
) -> RequestChunk:
    """``n`` requests at ``rate`` per second, lengths uniform in the ranges."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, n))
    return requests(arrivals, rng.integers(*inputs, n), rng.integers(*outputs, n))


def replay(
    spec: TwinSpec, *chunks: RequestChunk, until_s: float | None = None, seed: int = 0, step_s: float = 100.0
) -> Result:
    """Replay to the end, or to ``until_s``."""
    twin = Twin(spec, iter(chunks), seed=seed)
    if until_s is not None:
        twin.advance(until_s)
    while until_s is None and not twin.idle:
        twin.advance(twin.now_s + step_s)
    return twin.finish()
