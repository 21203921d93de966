"""The queueing analyzer: demand and capacity of a service in requests per second that keep its latency promises.

λ* of a variant is the largest rate of one replica at which mean TTFT and ITL hold. Its parameters are learned from what
the replicas show.

Source: llm-d's autoscaler @4fcefe6b, internal/engines/analyzers/queueingmodel. What is repaired here: capacity is that of
the replicas there are (the original takes that of the replicas wanted, ⌈Λ/λ*⌉·λ*, so nothing is ever required); a
service without figures is uninformative rather than at zero supply and zero demand; and requests that the router holds
are demand as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from models.autoscaling import ScalingBounds
from models.workload import Slo
from planner.performance.queueing import Case, columns_of
from planner.performance.queueing.sizing import size_cases
from planner.performance.queueing.times import inferred_slo
from planner.saturation.learning import Learner, Measured
from planner.saturation.readings import EngineLimits, InstanceReading, Traffic, VariantReading
from planner.saturation.step import Analysis, Sized, analysis_of

__all__ = [
    "QUEUEING",
    "LearningMemory",
    "PromiseSettings",
    "RateFrom",
    "analyze_promises",
    "wanted_replicas",
]

QUEUEING: Final = "queueing-model"

_FALLBACK_FACTOR: Final = 1.5
_FALLBACK_MOST_S: Final = (10.0, 0.5)
_LAST_BITS: Final = 1e-9


class RateFrom(StrEnum):
    """Where the rate of a variant is from."""

    LEARNED = "learned"
    OUT_OF_REACH = "slo-out-of-reach"
    """The promises are broken at every rate."""
    NO_DATA = "no-data"


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningMemory:
    """Filters by variant, and since when the count of ready replicas is what it is.

    Attributes:
        learners: filters.
        steady: (ready instances, since when in s) by variant.
    """

    learners: Mapping[str, Learner] = field(default_factory=dict)
    steady: Mapping[str, tuple[int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseSettings:
    """How the analyzer works.

    Attributes:
        slo: promises on means; None: inferred from the parameters.
        multiplier: of α where promises are inferred, above 1.
        bounds: of the threshold step.
        transient_s: after the number of replicas changed, nothing is learned for so long, s.
        queue_clears_in_s: time within which requests that the router holds are to be served, s.
        tuning: whether parameters are learned on after the first guess.
        max_queue: requests that may wait in one replica.
    """

    slo: Slo | None = None
    multiplier: float = 3.0
    bounds: ScalingBounds = field(default_factory=ScalingBounds)
    transient_s: float = 120.0
    queue_clears_in_s: float = 30.0
    tuning: bool = True
    max_queue: int = 100


def wanted_replicas(rate_rps: float, per_replica_rps: float) -> int:
    """⌈Λ/λ*⌉; 0 where one of them is not above 0."""
    if rate_rps <= 0 or per_replica_rps <= 0:
        return 0
    return math.ceil(rate_rps / per_replica_rps - _LAST_BITS)


def analyze_promises(
    variants: Sequence[VariantReading],
    *,
    traffic: Traffic,
    queued: float,
    memory: LearningMemory,
    now_s: float,
    settings: PromiseSettings,
) -> tuple[Analysis, LearningMemory]:
    """Demand against capacity of one service.

    Args:
        variants: as they run, with rates and latencies of their instances.
        traffic: mean lengths.
        queued: requests that the router holds.
        memory: of earlier cycles.
        now_s: time, s.
        settings: promises and bounds.

    Returns:
        The analysis in req/s, and the memory for the next cycle.
    """
    learners, steady = dict(memory.learners), dict(memory.steady)
    for variant in variants:
        count, since = steady.get(variant.name, (variant.ready, -math.inf))
        steady[variant.name] = (variant.ready, since if count == variant.ready else now_s)
        shown = _shown(variant.instances, traffic)
        if shown is not None and now_s - steady[variant.name][1] >= settings.transient_s:
            learners[variant.name] = _learn(learners.get(variant.name), shown, variant, settings)
    slo = settings.slo or _inferred(variants, learners, traffic, settings)
    sized = [_size(variant, learners.get(variant.name), traffic, slo, settings) for variant in variants]
    held = queued / settings.queue_clears_in_s
    return (
        analysis_of(QUEUEING, sized, settings.bounds, queued=held),
        LearningMemory(learners=learners, steady=steady),
    )


def _shown(instances: Sequence[InstanceReading], traffic: Traffic) -> Measured | None:
    """Mean of the busy instances, latencies weighted by rate; None: nothing to learn from."""
    busy = [
        (one.request_rps, one.ttft_s, one.itl_s)
        for one in instances
        if one.request_rps and one.ttft_s and one.itl_s
    ]
    if not busy:
        return None
    rate = math.fsum(rps for rps, _, _ in busy)
    shown = Measured(
        rps=rate / len(busy),
        input_tokens=traffic.input_tokens,
        output_tokens=traffic.output_tokens,
        ttft_s=math.fsum(rps * ttft for rps, ttft, _ in busy) / rate,
        itl_s=math.fsum(rps * itl for rps, _, itl in busy) / rate,
    )
    return shown if shown.usable else None


def _batch(variant: VariantReading) -> int:
    return (variant.limits or EngineLimits()).sequences


def _learn(
    learner: Learner | None, shown: Measured, variant: VariantReading, settings: PromiseSettings
) -> Learner:
    if learner is None:
        return Learner.begun(shown, max_batch=_batch(variant), max_queue=settings.max_queue)
    if not settings.tuning:
        return learner
    return learner.learned(shown, max_batch=_batch(variant), max_queue=settings.max_queue)


def _inferred(
    variants: Sequence[VariantReading],
    learners: Mapping[str, Learner],
    traffic: Traffic,
    settings: PromiseSettings,
) -> Slo | None:
    """The loosest promises that any variant suggests; without parameters 1.5 times what is seen, within 10 s and 0.5 s."""
    found = [
        inferred_slo(
            learner.parameters(),
            input_tokens=traffic.input_tokens,
            output_tokens=traffic.output_tokens,
            multiplier=settings.multiplier,
        )
        for name, learner in sorted(learners.items())
        if any(variant.name == name for variant in variants)
    ]
    if found:
        return Slo(
            ttft_s=max(slo.ttft_s or 0.0 for slo in found), itl_s=max(slo.itl_s or 0.0 for slo in found)
        )
    shown = [one for variant in variants if (one := _shown(variant.instances, traffic)) is not None]
    if not shown:
        return None
    return Slo(
        ttft_s=min(_FALLBACK_MOST_S[0], _FALLBACK_FACTOR * max(one.ttft_s for one in shown)),
        itl_s=min(_FALLBACK_MOST_S[1], _FALLBACK_FACTOR * max(one.itl_s for one in shown)),
    )


def _size(
    variant: VariantReading,
    learner: Learner | None,
    traffic: Traffic,
    slo: Slo | None,
    settings: PromiseSettings,
) -> Sized:
    rate, origin = 0.0, RateFrom.NO_DATA
    if learner is not None and slo is not None and traffic.output_tokens > 0:
        case = Case(
            parameters=learner.parameters(max_batch=_batch(variant), max_queue=settings.max_queue),
            input_tokens=traffic.input_tokens,
            output_tokens=traffic.output_tokens,
            ttft_s=math.inf if slo.ttft_s is None else slo.ttft_s,
            itl_s=math.inf if slo.itl_s is None else slo.itl_s,
        )
        rate = float(size_cases(columns_of([case])).rate_rps[0])
        origin = RateFrom.LEARNED if rate > 0 else RateFrom.OUT_OF_REACH
    silent = variant.unreported + sum(one.request_rps is None for one in variant.instances)
    sized = Sized.of(variant, rate, silent=silent, reason=origin, informative=rate > 0)
    return replace(sized, demand=math.fsum(one.request_rps or 0.0 for one in variant.instances))
