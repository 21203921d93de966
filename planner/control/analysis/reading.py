"""A service as the analyzers read it: instances, mean lengths, what the router holds, and who uses it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from models.observation import EngineObservation, VariantObservation
from planner.control.analysis.caches import cache_tokens
from planner.control.analysis.seeing import ServiceSeen, VariantSeen
from planner.saturation import (
    Activity,
    EngineLimits,
    InstanceReading,
    SchedulerQueue,
    ServiceReading,
    Traffic,
    VariantReading,
)
from planner.saturation.published import VariantState

__all__ = ["MOST_REPLICAS", "NOBODY_KNOWS_ZERO", "UNNAMED", "most_replicas", "reading_of", "traffic_of"]

MOST_REPLICAS: Final = 10_000
"""Of one variant, where its scaler states no maximum, or one that nobody has; absurd figures ask for any number."""

NOBODY_KNOWS_ZERO: Final = Activity(completed=None, arrivals=None, in_flight=None, queued=None)
"""Nothing may be put to sleep on it."""

UNNAMED: Final = "?"
"""Stands for an accelerator that nobody could name; the published rules would give it nothing."""

_IDLE: Final = Activity(completed=0.0, arrivals=0.0, in_flight=0.0, queued=0.0)


def most_replicas(seen: VariantObservation) -> int:
    """Replicas that a variant may grow to: its maximum, and never more than anybody has.

    What people have or state as the minimum stands, however large it is.
    """
    most = max(MOST_REPLICAS, seen.wanted or 0, seen.min_replicas)
    return most if seen.max_replicas is None else min(most, seen.max_replicas)


def reading_of(service: ServiceSeen, *, stuck: bool, unused: bool) -> ServiceReading:
    """What analyzers and published rules read.

    Args:
        service: as it was seen.
        stuck: what waits in its engines will never be served, and is not demand.
        unused: nobody used it for its retention time.
    """
    first = next(iter(service.roles.values()))
    resolved = [one for one in service.variants if one.resolved]
    offered = [
        one for one in resolved if one.wanted > 0 or (one.observed.max_replicas != 0 and not one.paused)
    ]
    return ServiceReading(
        name=service.model,
        namespace=service.namespace,
        variants=tuple(_variant(one, stuck=stuck) for one in offered),
        states=tuple(_state(one) for one in offered),
        traffic=traffic_of(service),
        queue=SchedulerQueue(service.traffic.queued or 0.0, service.traffic.queued_bytes or 0.0),
        activity=_IDLE if unused else NOBODY_KNOWS_ZERO,
        may_sleep=service.rules.scale_to_zero,
        thresholds=first.thresholds,
        bounds=first.bounds,
        role_thresholds={role: rules.thresholds for role, rules in service.roles.items()},
        role_bounds={role: rules.bounds for role, rules in service.roles.items()},
        priority=service.rules.priority,
    )


def _variant(one: VariantSeen, *, stuck: bool) -> VariantReading:
    seen, rules = one.observed, one.rules
    instances = tuple(_instance(engine, stuck=stuck) for engine in one.engines)
    pods = {engine.pod or engine.instance for engine in one.engines}
    ranks = max(1, len(instances) // len(pods)) if pods else 1
    arguments = seen.engine_arguments
    told = arguments.batched_tokens is not None or arguments.max_requests is not None
    return VariantReading(
        name=one.name,
        accelerator=seen.accelerator,
        role=seen.role.value,
        gpus=seen.gpus,
        instances=instances,
        unreported=one.silent * ranks,
        pods=len(pods) + one.silent,
        pending=seen.pending,
        limits=EngineLimits.of(arguments) if told or seen.engine == "vllm" else None,
        kv_tokens=None
        if instances
        else cache_tokens(seen.model, seen.accelerator, gpus=seen.gpus, arguments=arguments),
        tau_kv=rules.tau_kv,
        tau_queue=rules.tau_queue,
    )


def _instance(engine: EngineObservation, *, stuck: bool) -> InstanceReading:
    idle = 0.0 if stuck else None
    return InstanceReading(
        kv_usage=_first(idle, engine.kv_usage, engine.kv_now),
        queue=_first(idle, engine.waiting, engine.waiting_now),
        kv_tokens=None if not engine.kv_tokens else int(engine.kv_tokens),
        kv_now=_first(idle, engine.kv_now),
        queue_now=_first(idle, engine.waiting_now),
        itl_s=engine.itl_s,
        ttft_s=engine.ttft_s,
        token_rate=engine.token_rate,
        request_rps=engine.request_rps,
    )


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _state(one: VariantSeen) -> VariantState:
    """As the published rules read it: its accelerators are those of its cluster; what people paused keeps its count."""
    seen = one.observed
    return VariantState(
        name=one.name,
        accelerator="/".join(filter(None, (seen.cluster, seen.accelerator or UNNAMED))),
        cost=seen.cost,
        per_replica_capacity=0.0,
        current=one.wanted,
        role=seen.role.value,
        pending=seen.pending,
        min_replicas=one.wanted if one.paused else seen.min_replicas,
        max_replicas=one.wanted if one.paused else most_replicas(seen),
        gpus_per_replica=seen.gpus,
        # The published enforcer knows completed requests of vLLM alone; what is looked at here is told by every engine.
        engine="vllm",
    )


def traffic_of(service: ServiceSeen) -> Traffic:
    """Mean lengths and prefix hits of its engines, each by the requests that it serves."""
    engines = [engine for variant in service.variants for engine in variant.engines]
    return Traffic(
        input_tokens=_mean(engines, lambda one: one.input_tokens or None),
        output_tokens=_mean(engines, lambda one: one.output_tokens or None),
        hit_share=min(1.0, _mean(engines, lambda one: one.hit_share)),
        arrival_rps=service.traffic.arrival_rps,
    )


def _mean(engines: Sequence[EngineObservation], value: Callable[[EngineObservation], float | None]) -> float:
    """Mean over engines that say it, by their requests per second; equally where none serves any; 0: nobody says."""
    known = [(figure, one.request_rps or 0.0) for one in engines if (figure := value(one)) is not None]
    if not known:
        return 0.0
    weight = math.fsum(rate for _, rate in known)
    if weight <= 0:
        return math.fsum(figure for figure, _ in known) / len(known)
    return math.fsum(figure * rate for figure, rate in known) / weight
