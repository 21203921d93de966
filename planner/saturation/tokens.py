"""The token analyzer (V2): demand and capacity of a service in tokens of KV cache.

Capacity of an instance is the smaller of k1, the share τ of its cache, and k2, the tokens that were resident when it
could not compute faster. Sizes of variants without a running replica come from memory, from a formula on the engine's
arguments, or from an alike variant.

Source: llm-d autoscaling v0.9, internal/engines/analyzers/saturation_v2. Ours: metrics that are missing count for
nothing where a replica is asked for and as a full replica where one may go; cost and accelerator belong to the variant
and not to its metrics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from models.autoscaling import ScalingBounds
from planner.saturation.memory import LimitKey, Stored, TokenMemory, VariantKey, output_class
from planner.saturation.published import BOTH, SATURATION
from planner.saturation.readings import (
    PREFILL,
    EngineLimits,
    InstanceReading,
    SchedulerQueue,
    Traffic,
    VariantReading,
    queued_tokens,
)
from planner.saturation.step import Analysis, Sized, analysis_of

__all__ = ["CapacityFrom", "TokenSettings", "analyze_tokens", "compute_limit", "median"]


class CapacityFrom(StrEnum):
    """Where the capacity of a variant is from."""

    LIVE = "live"
    STORED = "stored"
    DERIVED = "derived"
    ALIKE = "alike"
    NO_DATA = "no-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    """τ of the token analyzer and the bounds of its threshold step."""

    tau_kv: float = 0.80
    tau_queue: float = 5.0
    bounds: ScalingBounds = field(default_factory=ScalingBounds)


def compute_limit(limits: EngineLimits | None, traffic: Traffic) -> int:
    """k2 by formula: N = min(B·O/(I + O), S) requests at ⌊N·(I + O/2)⌋ tokens; 0: not usable.

    Source: llm-d autoscaling v0.9, internal/engines/analyzers/saturation_v2 (derived k2).
    """
    if limits is None or traffic.output_tokens <= 0:
        return 0
    entering, leaving = traffic.input_tokens, traffic.output_tokens
    requests = min(limits.batched_tokens * leaving / (entering + leaving), float(limits.sequences))
    return int(requests * (entering + leaving / 2.0))


def median(values: Sequence[int]) -> int:
    """The middle one; of an even number the whole mean of the middle two; 0 of none."""
    # Every plan loads this module, and few need the middle of anything.
    import statistics

    return int(statistics.median(values)) if values else 0


def analyze_tokens(
    llm: str,
    variants: Sequence[VariantReading],
    *,
    traffic: Traffic,
    queue: SchedulerQueue = SchedulerQueue(),  # noqa: B008 - a tuple
    memory: TokenMemory,
    cycle: Cycle,
) -> tuple[Analysis, TokenMemory]:
    """Demand against capacity of one service.

    Args:
        llm: identity of what is served; histories are shared by all that serve it.
        variants: as they run.
        traffic: mean lengths and prefix hits of the service.
        queue: what the router holds.
        memory: of earlier cycles.
        cycle: settings, namespace and time.

    Returns:
        The analysis in tokens, and the memory for the next cycle.
    """
    for variant in sorted(variants, key=lambda one: one.name):
        memory = _remember_limits(llm, variant, traffic, memory, cycle)
    sized: dict[str, Sized] = {}
    # What runs comes first: the others may borrow its size in the same cycle, however they are ordered.
    for runs in (True, False):
        ran: dict[VariantKey, Stored] = {}
        for variant in variants:
            if _reports(variant) is runs:
                key = VariantKey(llm, cycle.namespace, variant.name)
                sized[variant.name], now = _size(key, variant, traffic, memory, cycle)
                ran |= {} if now is None else {key: now}
        memory = memory.ran(ran, now_s=cycle.now_s) if ran else memory
    held = queued_tokens(queue, traffic, roles={variant.role for variant in variants} - {BOTH})
    total = held.pop(BOTH)
    return analysis_of(
        SATURATION,
        [sized[one.name] for one in variants],
        cycle.settings.bounds,
        queued=total,
        queued_by_role=held,
    ), memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """One cycle of the analyzer: its settings, whose variants it looks at, and when (s)."""

    now_s: float
    settings: TokenSettings = field(default_factory=TokenSettings)
    namespace: str = "default"

    def compute_bound(self, instance: InstanceReading, variant: VariantReading) -> int | None:
        """Resident tokens of an instance whose queue has reached τ, so that they are what it computes at most."""
        if instance.kv_tokens is None or instance.kv_usage is None or instance.queue is None:
            return None
        resident = round(instance.kv_usage * instance.kv_tokens)
        tau = self.settings.tau_queue if variant.tau_queue is None else variant.tau_queue
        return resident if instance.queue >= int(tau) and resident > 0 else None

    def tau_kv(self, variant: VariantReading) -> float:
        """KV-cache usage at which an instance of a variant is saturated."""
        return self.settings.tau_kv if variant.tau_kv is None else variant.tau_kv


def _reports(variant: VariantReading) -> bool:
    """Whether an instance of it tells its load and the size of its cache."""
    return any(
        one.kv_tokens is not None and not (one.kv_usage is None and one.queue is None)
        for one in variant.instances
    )


def _limit_key(llm: str, variant: VariantReading, traffic: Traffic) -> LimitKey:
    return LimitKey(llm, variant.accelerator, variant.gpus, output_class(traffic.output_tokens))


def _remember_limits(
    llm: str, variant: VariantReading, traffic: Traffic, memory: TokenMemory, cycle: Cycle
) -> TokenMemory:
    observed = sorted(
        k2 for one in variant.instances if (k2 := cycle.compute_bound(one, variant)) is not None
    )
    if not observed:
        return memory
    return memory.seen(_limit_key(llm, variant, traffic), observed, now_s=cycle.now_s)


@dataclass(frozen=True, slots=True)
class _Load:
    """One instance: capacity, known demand, and what missing metrics may hide, tokens."""

    effective: int
    demand: float
    hidden: float


def _size(
    key: VariantKey, variant: VariantReading, traffic: Traffic, memory: TokenMemory, cycle: Cycle
) -> tuple[Sized, Stored | None]:
    """One variant, and its live capacity; None: it shows none."""
    now: Stored | None = None
    loads = [
        load
        for one in variant.instances
        if (load := _load(key, one, variant=variant, traffic=traffic, seen=(memory, cycle))) is not None
    ]
    if loads:
        size, origin = median([load.effective for load in loads]), CapacityFrom.LIVE
        if any(one.kv_tokens is not None for one in variant.instances):
            now = Stored(
                effective=size,
                at_s=cycle.now_s,
                accelerator=variant.accelerator,
                gpus=variant.gpus,
                limits=variant.limits,
            )
    else:
        size, origin = _size_from_memory(key, variant, traffic, memory, cycle)
    silent, informative = variant.ready - len(loads), origin is not CapacityFrom.NO_DATA
    sized = Sized.of(variant, size, silent=silent, reason=origin, informative=informative)
    demand = math.fsum(load.demand for load in loads)
    hidden = sized.hidden + math.fsum(load.hidden for load in loads)
    return replace(sized, demand=demand, hidden=hidden), now


def _load(
    key: VariantKey,
    one: InstanceReading,
    *,
    variant: VariantReading,
    traffic: Traffic,
    seen: tuple[TokenMemory, Cycle],
) -> _Load | None:
    """One instance; None: it reported nothing, or nothing tells how large its cache is."""
    memory, cycle = seen
    tau = cycle.tau_kv(variant)
    if one.kv_usage is None and one.queue is None:
        return None
    if one.kv_tokens is None:
        stored = memory.own(key, now_s=cycle.now_s)
        if stored is None:
            return None
        effective = int(stored.effective * tau)
        cache, resident = effective, int((one.kv_usage or 0.0) * effective)
    else:
        k1 = int(one.kv_tokens * tau)
        k2 = (
            cycle.compute_bound(one, variant)
            or memory.usual_limit(_limit_key(key.llm, variant, traffic), now_s=cycle.now_s)
            or compute_limit(variant.limits, traffic)
            or k1
        )
        effective = min(k1, k2)
        cache, resident = one.kv_tokens, round((one.kv_usage or 0.0) * one.kv_tokens)
    per_request = traffic.input_tokens + (0.0 if variant.role == PREFILL else traffic.output_tokens)
    asked = (one.queue or 0.0) * per_request
    demand = resident + asked
    if one.queue_now is not None and one.kv_now is not None:
        # Peaks of a minute need not have been at one moment: they are added, as published, only where now is unknown.
        demand = max(resident, asked, one.kv_now * cache + one.queue_now * per_request)
    unknown = one.kv_usage is None or one.queue is None
    return _Load(effective, demand, max(0.0, effective - demand) if unknown else 0.0)


def _size_from_memory(
    key: VariantKey, variant: VariantReading, traffic: Traffic, memory: TokenMemory, cycle: Cycle
) -> tuple[int, CapacityFrom]:
    """PRC of a variant without a live instance: its own record, the engine's arguments, or an alike variant."""
    own = memory.own(key, now_s=cycle.now_s)
    if own is not None:
        return own.effective, CapacityFrom.STORED
    alike = memory.alike(key, variant, now_s=cycle.now_s)
    if variant.limits is None:
        return (alike.effective, CapacityFrom.ALIKE) if alike else (0, CapacityFrom.NO_DATA)
    derived = compute_limit(variant.limits, traffic) or variant.limits.batched_tokens
    if variant.kv_tokens is not None:
        derived = min(derived, int(variant.kv_tokens * cycle.tau_kv(variant)))
    if alike is not None:
        derived = min(derived, alike.effective)
    return derived, CapacityFrom.DERIVED
