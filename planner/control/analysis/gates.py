"""Readiness gates of a variant, as conditions of Kubernetes are: what may be decided on, and why not."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from models.observation import Condition, Freshness
from planner.control.analysis.seeing import VariantSeen

__all__ = ["METRICS", "OPTIMIZED", "TARGET", "metrics_available", "optimization_ready", "target_resolved"]

TARGET: Final = "TargetResolved"
METRICS: Final = "MetricsAvailable"
OPTIMIZED: Final = "OptimizationReady"

_REASONS: Final = {Freshness.STALE: "MetricsStale", Freshness.UNAVAILABLE: "MetricsStale"}


def target_resolved(variant: VariantSeen) -> Condition:
    """Whether the object whose replicas are scaled was found; in the words of who looked for it."""
    told = next((one for one in variant.observed.conditions if one.type == TARGET), None)
    if told is not None:
        return told
    if variant.resolved:
        return _condition(TARGET, True, "TargetFound", "")
    target = variant.observed.target
    message = f"there is no {target.kind} {target.name} in namespace {variant.observed.namespace}"
    return Condition(type=TARGET, status=False, reason="TargetNotFound", message=message)


def metrics_available(variant: VariantSeen, *, complete: bool) -> Condition:
    """Whether every ready replica shows metrics that are fresh enough to conclude from.

    A variant without a ready replica has none to show, which stands in nobody's way.
    """
    ready, silent = variant.observed.ready, variant.silent
    if not ready:
        return _condition(METRICS, True, "NoReplicas", "no replica is ready")
    if variant.freshness is Freshness.FRESH and not silent:
        message = f"of {ready} ready replica{'s' * (ready > 1)}"
        return _condition(METRICS, True, "MetricsFound", message)
    reason = _REASONS.get(variant.freshness or Freshness.MISSING, "MetricsMissing")
    if not complete and not variant.speaks:
        reason = "SourceUnavailable"
    what = "are old" if variant.freshness is Freshness.STALE else "are missing"
    message = f"metrics of {silent or 'some'} of {ready} ready replica{'s' * (ready > 1)} {what}"
    # Some replicas tell enough to add one; none may go while others are silent.
    enough = variant.speaks and variant.freshness is not Freshness.STALE
    return _condition(METRICS, enough, "MetricsFound" if enough else reason, message)


def optimization_ready(status: bool, reason: str, message: str = "") -> Condition:
    """Whether somebody decided on it in this cycle."""
    return _condition(OPTIMIZED, status, reason, message)


@lru_cache(maxsize=1024)
def _condition(kind: str, status: bool, reason: str, message: str) -> Condition:
    """Most variants have the same conditions in every cycle."""
    return Condition(type=kind, status=status, reason=reason, message=message)
