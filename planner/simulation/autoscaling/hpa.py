"""The Kubernetes HorizontalPodAutoscaler as its controller really computes: one reconciliation is a pure function.

Source: Kubernetes, pkg/controller/podautoscaler/horizontal.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.autoscaling import HpaMetric, HpaSpec, MetricSource, TargetType
from planner.simulation.autoscaling.hpa_limits import (
    DOWN_WINDOW_S,
    HpaHistory,
    HpaReason,
    limit_rate,
    rules_down,
    rules_up,
    stabilize,
)
from planner.simulation.autoscaling.hpa_metrics import (
    PodFigure,
    Tolerances,
    average_value,
    per_pod,
    value,
)

__all__ = ["HpaDecision", "HpaTarget", "proposal", "reconcile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaTarget:
    """What the controller sees of its target.

    Attributes:
        asked: replicas that the scale target asks for.
        existing: pods there are, ready or not; terminating ones are not counted.
        ready: pods that are ready.
        pods: figures of pods by metric; a metric that is not listed cannot be read.
        external: figures of external metrics; None, or not listed: cannot be read.
    """

    asked: int
    existing: int
    ready: int
    pods: Mapping[str, Sequence[PodFigure]] = field(default_factory=dict)
    external: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaDecision:
    """Replicas, why so many, what the metrics alone asked for (None: not looked at), and the history after it."""

    replicas: int
    reason: HpaReason
    proposed: int | None
    history: HpaHistory


def reconcile(spec: HpaSpec, history: HpaHistory, *, target: HpaTarget, now_s: float) -> HpaDecision:
    """One pass of the controller: bounds, metrics, stabilization, rate.

    A target at zero is left alone unless its minimum is zero. Outside its bounds it is brought back without looking at
    metrics. Where metrics cannot be read nothing changes; where only some can, nothing shrinks.
    """
    asked = target.asked
    if asked == 0 and spec.min_replicas > 0:
        return HpaDecision(replicas=0, reason=HpaReason.SCALING_DISABLED, proposed=None, history=history)
    if not history.recommended:
        history = history.recommending(asked, now_s, keep_s=_kept_s(spec))
    if asked > spec.max_replicas:
        return _scaled(spec, history, (asked, spec.max_replicas), HpaReason.TOO_MANY, now_s)
    if asked < spec.min_replicas:
        return _scaled(spec, history, (asked, spec.min_replicas), HpaReason.TOO_FEW, now_s)
    proposed = proposal(spec, target)
    if proposed is None:
        return HpaDecision(
            replicas=asked, reason=HpaReason.FAILED_GET_METRICS, proposed=None, history=history
        )
    stable, why = stabilize(history, proposed, current=asked, behavior=spec.behavior, now_s=now_s)
    history = history.recommending(proposed, now_s, keep_s=_kept_s(spec))
    bounds = (spec.min_replicas, spec.max_replicas)
    found, limited = limit_rate(
        history, stable, current=asked, bounds=bounds, behavior=spec.behavior, now_s=now_s
    )
    reason = why if limited is HpaReason.WITHIN_RANGE else limited
    return _scaled(spec, history, (asked, found), reason, now_s, proposed=proposed)


def proposal(spec: HpaSpec, target: HpaTarget) -> int | None:
    """The largest count that any metric asks for.

    Returns:
        None where no metric can be read, or where one cannot and the others would shrink the target.
    """
    counts = [_of_metric(spec, metric, target) for metric in spec.metrics]
    known = [count for count in counts if count is not None]
    if not known or (len(known) < len(counts) and max(known) < target.asked):
        return None
    return max(known)


def _of_metric(spec: HpaSpec, metric: HpaMetric, target: HpaTarget) -> int | None:
    tolerances = _tolerances(spec)
    if metric.source is MetricSource.PODS:
        figures = target.pods.get(metric.name, ())
        return per_pod(figures, metric.target, current=target.asked, tolerances=tolerances)
    total = target.external.get(metric.name)
    if total is None:
        return None
    if metric.target_type is TargetType.AVERAGE_VALUE:
        return average_value(total, metric.target, existing=target.existing, tolerances=tolerances)
    return value(total, metric.target, current=target.asked, ready=target.ready, tolerances=tolerances)


def _tolerances(spec: HpaSpec) -> Tolerances:
    if spec.behavior is None:
        return Tolerances(spec.tolerance, spec.tolerance)
    down, up = spec.behavior.down.tolerance, spec.behavior.up.tolerance
    return Tolerances(spec.tolerance if down is None else down, spec.tolerance if up is None else up)


def _scaled(
    spec: HpaSpec,
    history: HpaHistory,
    change: tuple[int, int],
    reason: HpaReason,
    now_s: float,
    *,
    proposed: int | None = None,
) -> HpaDecision:
    history = history.scaled(*change, now_s, keep_s=_longest_period_s(spec))
    return HpaDecision(replicas=change[1], reason=reason, proposed=proposed, history=history)


def _kept_s(spec: HpaSpec) -> float:
    """Length of the longer stabilization window, s."""
    windows = (rules_up(spec.behavior).stabilization_s, rules_down(spec.behavior).stabilization_s)
    return max(DOWN_WINDOW_S, *(window or 0.0 for window in windows))


def _longest_period_s(spec: HpaSpec) -> float:
    policies = (*rules_up(spec.behavior).policies, *rules_down(spec.behavior).policies)
    return max(policy.period_s for policy in policies)
