"""The throughput analyzer: demand and capacity of a service in output tokens per second.

An instance is rated at KV usage 0.85: as many requests as fit there, each a token per ITL(0.85).

Source: llm-d autoscaling v0.9, internal/engines/analyzers/throughput.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from models.autoscaling import ScalingBounds
from planner.saturation.pace import REFERENCE_KV, Pace, PaceHistory, Sample, Tier, fit_pace
from planner.saturation.readings import PREFILL, InstanceReading, Traffic, VariantReading
from planner.saturation.step import Analysis, Sized, analysis_of

__all__ = ["THROUGHPUT", "PaceMemory", "TokenRates", "analyze_throughput", "instance_rate", "queue_rate"]

THROUGHPUT: Final = "throughput"

_QUEUE_FACTOR: Final = 2.0


@dataclass(frozen=True, slots=True)
class PaceMemory:
    """Histories by variant."""

    histories: Mapping[str, PaceHistory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRates:
    """What asks for tokens: requests per second (None: unknown) and requests that the router holds."""

    arrival_rps: float | None
    queued: float = 0.0


def instance_rate(pace: Pace, kv_tokens: float, traffic: Traffic) -> float:
    """μ = (0.85·KV / (I·(1 - hit) + O/2)) / ITL(0.85), tokens/s; 0 where lengths or pace are unknown."""
    per_request = _tokens_of_one(traffic)
    if per_request <= 0 or not pace.usable:
        return 0.0
    return REFERENCE_KV * kv_tokens / per_request / pace.itl_s(REFERENCE_KV)


def _tokens_of_one(traffic: Traffic) -> float:
    """Mean KV tokens of its own that a request holds while it runs: I·(1 - hit) + O/2."""
    return traffic.input_tokens * (1.0 - traffic.hit_share) + traffic.output_tokens / 2.0


def queue_rate(queued: float, itl_s: float) -> float:
    """Tokens/s that would clear the queue in time: queued / (2·ITL(0.85))."""
    return queued / (_QUEUE_FACTOR * itl_s) if itl_s > 0 else 0.0


def analyze_throughput(
    variants: Sequence[VariantReading],
    *,
    traffic: Traffic,
    asked: TokenRates,
    memory: PaceMemory,
    now_s: float,
    bounds: ScalingBounds,
) -> tuple[Analysis, PaceMemory]:
    """Demand against capacity of one service; prefill makes no tokens and is left out.

    Demand belongs to the service: arrival·O + queue/(2·mean ITL(0.85)). Where arrivals or lengths are unknown, demand may
    be anything: nothing is asked for and nothing may go.

    Returns:
        The analysis in tokens/s, and the memory for the next cycle.
    """
    histories = dict(memory.histories)
    sized, paces = [], []
    for variant in (one for one in variants if one.role != PREFILL):
        history = _observe(variant, traffic, histories.get(variant.name, PaceHistory()), now_s)
        pace = fit_pace(history)
        if pace.tier is Tier.OLS:
            history = replace(history, base_s=pace.base_s)
        one, history = _size(variant, traffic, pace, history)
        histories[variant.name] = history
        sized.append(one)
        if pace.usable:
            paces.append(pace.itl_s(REFERENCE_KV))
    known = asked.arrival_rps is not None and traffic.output_tokens > 0
    demand = (asked.arrival_rps or 0.0) * traffic.output_tokens
    demand += queue_rate(asked.queued, math.fsum(paces) / len(paces)) if paces else 0.0
    if not known:
        sized = [replace(one, hidden=one.ready * one.per_replica) for one in sized]
    return analysis_of(THROUGHPUT, sized, bounds, queued=demand), PaceMemory(histories)


def _observe(variant: VariantReading, traffic: Traffic, history: PaceHistory, now_s: float) -> PaceHistory:
    """The history after this cycle: lengths, then how well the old pace foretold, then new samples."""
    if traffic.output_tokens > 0:
        history = history.of_lengths((traffic.input_tokens, traffic.output_tokens))
    pace = fit_pace(history)
    if pace.usable:
        history = history.judged(_errors(variant.instances, pace, traffic))
    samples = [
        Sample(now_s, one.kv_now, one.itl_s)
        for one in variant.instances
        if one.kv_now is not None and one.itl_s is not None
    ]
    return history.seen(samples, now_s=now_s)


def _errors(instances: Sequence[InstanceReading], pace: Pace, traffic: Traffic) -> list[tuple[float, float]]:
    """(KV usage, relative error of the foretold token rate) of each instance that shows both."""
    per_request = _tokens_of_one(traffic)
    found = []
    for one in instances:
        if one.kv_now and one.token_rate and one.kv_tokens and per_request > 0:
            foretold = one.kv_now * one.kv_tokens / per_request / pace.itl_s(one.kv_now)
            found.append((one.kv_now, abs(foretold - one.token_rate) / one.token_rate))
    return found


def _size(
    variant: VariantReading, traffic: Traffic, pace: Pace, history: PaceHistory
) -> tuple[Sized, PaceHistory]:
    caches = [one.kv_tokens for one in variant.instances if one.kv_tokens is not None]
    cache = math.fsum(caches) / len(caches) if caches else float(variant.kv_tokens or 0)
    rate, tier = instance_rate(pace, cache, traffic), pace.tier
    if variant.ready == 0 or rate <= 0:
        rate, tier = history.per_replica, Tier.ASLEEP if variant.ready == 0 else Tier.FAILED
    silent = variant.unreported + sum(
        one.kv_usage is None and one.kv_now is None for one in variant.instances
    )
    informative = tier is not Tier.FAILED and rate > 0
    sized = Sized.of(variant, rate, silent=silent, reason=tier, informative=informative)
    return sized, replace(history, per_replica=rate)
