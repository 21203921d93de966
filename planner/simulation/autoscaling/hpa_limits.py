"""Stabilization windows and rate policies of the Kubernetes HPA, on a history that is a value.

Source: Kubernetes, pkg/controller/podautoscaler/horizontal.go (behavior), KEP-853.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from models.autoscaling import HpaBehavior, PolicySelect, PolicyType, ScalingPolicy, ScalingRules

__all__ = [
    "DOWN_WINDOW_S",
    "At",
    "HpaHistory",
    "HpaReason",
    "limit_rate",
    "rules_down",
    "rules_up",
    "stabilize",
]

DOWN_WINDOW_S: Final = 300.0
_UNLIMITED: Final = 2**31 - 1
_HUNDRED: Final = 100

_UP_POLICIES: Final = (
    ScalingPolicy(type=PolicyType.PODS, value=4, period_s=15.0),
    ScalingPolicy(type=PolicyType.PERCENT, value=100, period_s=15.0),
)
_DOWN_POLICIES: Final = (ScalingPolicy(type=PolicyType.PERCENT, value=100, period_s=15.0),)
_LEGACY_FACTOR, _LEGACY_LEAST = 2, 4


class HpaReason(StrEnum):
    """What decided a count, as the conditions of the object call it."""

    SCALING_DISABLED = "ScalingDisabled"
    FAILED_GET_METRICS = "FailedGetMetrics"
    WITHIN_RANGE = "DesiredWithinRange"
    SCALE_UP_STABILIZED = "ScaleUpStabilized"
    SCALE_DOWN_STABILIZED = "ScaleDownStabilized"
    SCALE_UP_LIMIT = "ScaleUpLimit"
    SCALE_DOWN_LIMIT = "ScaleDownLimit"
    TOO_MANY = "TooManyReplicas"
    TOO_FEW = "TooFewReplicas"


class At(NamedTuple):
    """A count (or a change of it) at a time, s."""

    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True)
class HpaHistory:
    """What one HPA remembers: recommendations, replicas added and replicas removed."""

    recommended: tuple[At, ...] = ()
    added: tuple[At, ...] = ()
    removed: tuple[At, ...] = ()

    def recommending(self, count: int, now_s: float, *, keep_s: float) -> HpaHistory:
        """With a recommendation of now; those older than ``keep_s`` are dropped."""
        kept = tuple(one for one in self.recommended if one.at_s > now_s - keep_s)
        return HpaHistory((*kept, At(now_s, count)), self.added, self.removed)

    def scaled(self, before: int, after: int, now_s: float, *, keep_s: float) -> HpaHistory:
        """With a change of now; equal counts are none."""
        added, removed = _recent(self.added, now_s, keep_s), _recent(self.removed, now_s, keep_s)
        if after > before:
            added = (*added, At(now_s, after - before))
        elif after < before:
            removed = (*removed, At(now_s, before - after))
        return HpaHistory(self.recommended, added, removed)


@lru_cache(maxsize=256)
def rules_up(behavior: HpaBehavior | None) -> ScalingRules:
    """Rules for scaling up, with what Kubernetes fills in: no window, 4 pods or 100 % per 15 s."""
    rules = behavior.up if behavior is not None else ScalingRules()
    window = 0.0 if rules.stabilization_s is None else rules.stabilization_s
    return rules.but(stabilization_s=window, policies=rules.policies or _UP_POLICIES)


@lru_cache(maxsize=256)
def rules_down(behavior: HpaBehavior | None) -> ScalingRules:
    """Rules for scaling down, with what Kubernetes fills in: 300 s, 100 % per 15 s."""
    rules = behavior.down if behavior is not None else ScalingRules()
    window = DOWN_WINDOW_S if rules.stabilization_s is None else rules.stabilization_s
    return rules.but(stabilization_s=window, policies=rules.policies or _DOWN_POLICIES)


def stabilize(
    history: HpaHistory, desired: int, *, current: int, behavior: HpaBehavior | None, now_s: float
) -> tuple[int, HpaReason]:
    """The count nearest to ``current`` between the least of the up window and the most of the down window.

    Without a behavior the older rule holds: the largest recommendation of the last 300 s, whatever runs.
    """
    if behavior is None:
        most = max([desired, *_counts(history.recommended, now_s, DOWN_WINDOW_S)])
        return most, HpaReason.SCALE_DOWN_STABILIZED if most > desired else HpaReason.WITHIN_RANGE
    up_s, down_s = rules_up(behavior).stabilization_s or 0.0, rules_down(behavior).stabilization_s or 0.0
    least = min([desired, *_counts(history.recommended, now_s, up_s)])
    most = max([desired, *_counts(history.recommended, now_s, down_s)])
    if current < least:
        return least, HpaReason.SCALE_UP_STABILIZED if least < desired else HpaReason.WITHIN_RANGE
    if current > most:
        return most, HpaReason.SCALE_DOWN_STABILIZED if most > desired else HpaReason.WITHIN_RANGE
    if desired == current:
        return current, HpaReason.WITHIN_RANGE
    reason = HpaReason.SCALE_UP_STABILIZED if desired > current else HpaReason.SCALE_DOWN_STABILIZED
    return current, reason


def limit_rate(
    history: HpaHistory,
    desired: int,
    *,
    current: int,
    bounds: tuple[int, int],
    behavior: HpaBehavior | None,
    now_s: float,
) -> tuple[int, HpaReason]:
    """The count within what the policies of its direction still allow, and within (min, max).

    Without a behavior the older rule holds: at most twice the replicas or 4, whichever is more.
    """
    least, most = bounds
    if behavior is None:
        ceiling = min(most, max(_LEGACY_FACTOR * current, _LEGACY_LEAST))
        floor = least
    else:
        ceiling = min(most, max(current, _limit_up(history, current, rules_up(behavior), now_s)))
        floor = max(least, min(current, _limit_down(history, current, rules_down(behavior), now_s)))
    if desired > current and desired > ceiling:
        return ceiling, HpaReason.TOO_MANY if ceiling == most else HpaReason.SCALE_UP_LIMIT
    if desired < current and desired < floor:
        return floor, HpaReason.TOO_FEW if floor == least else HpaReason.SCALE_DOWN_LIMIT
    if desired > most:
        return most, HpaReason.TOO_MANY
    if desired < least:
        return least, HpaReason.TOO_FEW
    return desired, HpaReason.WITHIN_RANGE


def _limit_up(history: HpaHistory, current: int, rules: ScalingRules, now_s: float) -> int:
    """Most replicas that the policies for scaling up allow now."""
    if rules.select is PolicySelect.DISABLED:
        return current
    return _picked(rules, max, min)(
        _after_growth(policy, _period_start(history, current, policy, now_s)) for policy in rules.policies
    )


def _limit_down(history: HpaHistory, current: int, rules: ScalingRules, now_s: float) -> int:
    """Least replicas that the policies for scaling down allow now."""
    if rules.select is PolicySelect.DISABLED:
        return current
    return _picked(rules, min, max)(
        _after_shrinking(policy, _period_start(history, current, policy, now_s)) for policy in rules.policies
    )


def _picked(
    rules: ScalingRules, largest: Callable[[Iterable[int]], int], smallest: Callable[[Iterable[int]], int]
) -> Callable[[Iterable[int]], int]:
    """How the limits of several policies become one: the largest change, or the smallest."""
    return smallest if rules.select is PolicySelect.MIN else largest


def _period_start(history: HpaHistory, current: int, policy: ScalingPolicy, now_s: float) -> int:
    """Replicas when the period began: what was added since is taken off, what was removed put back."""
    added = sum(_counts(history.added, now_s, policy.period_s))
    removed = sum(_counts(history.removed, now_s, policy.period_s))
    return current - added + removed


def _after_growth(policy: ScalingPolicy, start: int) -> int:
    if policy.type is PolicyType.PODS:
        return min(_UNLIMITED, start + policy.value)
    # Rounded up, so that a small share of few replicas is not nothing for ever.
    return -(-start * (_HUNDRED + policy.value) // _HUNDRED)


def _after_shrinking(policy: ScalingPolicy, start: int) -> int:
    if policy.type is PolicyType.PODS:
        return start - policy.value
    return math.trunc(start * (_HUNDRED - policy.value) / _HUNDRED)


def _counts(entries: Sequence[At], now_s: float, window_s: float) -> list[int]:
    return [one.replicas for one in _recent(entries, now_s, window_s)]


def _recent(entries: Sequence[At], now_s: float, window_s: float) -> tuple[At, ...]:
    return tuple(one for one in entries if one.at_s > now_s - window_s)
