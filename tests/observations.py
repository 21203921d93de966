"""Builders of what a twin shows: replicas, services, observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from models.simulation import (
    Observation,
    ReplicaObservation,
    ReplicaSpec,
    ReplicaState,
    ServiceObservation,
    ServiceSpec,
    TwinSpec,
)
from models.twin_timing import LinearTiming


def a_replica(variant: str = "v", **more: Any) -> ReplicaObservation:
    """A ready and idle replica; ``kv`` and ``waiting`` set the minute's maxima too."""
    kv, waiting = more.pop("kv", 0.0), more.pop("waiting", 0)
    fields: dict[str, Any] = {
        "name": f"{variant}-0", "variant": variant, "service": "s", "state": ReplicaState.READY,
        "created_s": 0.0, "ready_s": 0.0, "running": 0, "waiting": waiting, "kv_usage": kv,
        "running_max_1m": 0, "waiting_max_1m": waiting, "kv_usage_max_1m": kv, "kv_blocks": 1000,
        "block_size": 16, "max_num_seqs": 256, "prompt_tokens_total": 0, "generation_tokens_total": 0,
        "finished_total": 0, "prefix_hit_tokens_total": 0, "prefix_query_tokens_total": 0,
        "preemptions_total": 0,
    }  # fmt: skip
    return ReplicaObservation(**fields | more)


def a_starting_replica(variant: str = "v") -> ReplicaObservation:
    return a_replica(variant, state=ReplicaState.STARTING, ready_s=None)


def a_service(name: str = "s", **more: Any) -> ServiceObservation:
    fields: dict[str, Any] = {
        "name": name, "arrivals_total": 0, "completions_total": 0, "failures_total": 0, "rejected_total": 0,
        "in_flight": 0, "router_queue": 0, "router_queue_tokens": 0, "input_tokens_total": 0,
        "output_tokens_total": 0, "first_tokens_total": 0, "ttft_s_sum": 0.0, "itl_s_sum": 0.0, "itl_total": 0,
    }  # fmt: skip
    return ServiceObservation(**fields | more)


def seen(
    at_s: float,
    replicas: Sequence[ReplicaObservation],
    *services: ServiceObservation,
    desired: dict[str, int] | None = None,
) -> Observation:
    """An observation in which as many replicas are asked for as there are, unless said otherwise."""
    counts = {one.variant: 0 for one in replicas}
    for one in replicas:
        counts[one.variant] += one.state is not ReplicaState.DRAINING
    return Observation(
        at_s=at_s,
        replicas=tuple(replicas),
        services=services or (a_service(),),
        desired=counts | (desired or {}),
    )


def a_twin(*variants: str, **more: Any) -> TwinSpec:
    """One service ``s`` with these variants; ``more`` are fields of every replica."""
    return TwinSpec(
        services=(ServiceSpec(name="s"),),
        replicas=tuple(
            ReplicaSpec(
                variant=name,
                service="s",
                timing=LinearTiming(base_s=0.01),
                kv_blocks=1000,
                **more,
            )
            for name in variants or ("v",)
        ),
    )
