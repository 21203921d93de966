"""Autoscalers by name, set up as their own samples and defaults have it, for every variant of a fleet.

Bounds are those of each variant; where it has none, 1 to 10 replicas as the samples have, and never fewer at most than
it starts with. A name is a starting point: whoever wants another set-up builds the autoscaler itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    KedaSpec,
    KpaSpec,
    MetricSource,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
)
from models.simulation import ReplicaSpec, TwinSpec
from planner.errors import ConfigurationError, nearest
from planner.simulation.autoscaling.cluster import HpaAutoscaler, StaticAutoscaler
from planner.simulation.autoscaling.epp import epp_saturation
from planner.simulation.autoscaling.keda import KedaAutoscaler
from planner.simulation.autoscaling.kpa import KpaAutoscaler
from planner.simulation.autoscaling.wva import WvaAutoscaler
from planner.simulation.autoscaling.wva_settings import Analyzer, WvaSettings, wva_variants
from planner.simulation.protocols import Autoscaler

__all__ = ["AUTOSCALERS", "HPA_METRICS", "WVA_BEHAVIOR", "bounds_of", "named_autoscaler"]

HPA_METRICS: Final = (
    HpaMetric(name="waiting", source=MetricSource.PODS, target=3.0),
    HpaMetric(name="kv_usage", source=MetricSource.PODS, target=0.5),
)
"""Targets of the HPA that WVA is compared with (arXiv 2603.09730, experiments)."""

_TEN_PODS: Final = ScalingRules(
    stabilization_s=0.0, policies=(ScalingPolicy(type=PolicyType.PODS, value=10, period_s=15.0),)
)
WVA_BEHAVIOR: Final = HpaBehavior(up=_TEN_PODS, down=_TEN_PODS)
"""Behavior of the HPA below WVA (sample of llm-d autoscaling v0.9)."""

_MOST: Final = 10
_WAITING_PER_POD: Final = 5.0
_KPA_TARGET: Final = 100.0


def bounds_of(spec: ReplicaSpec) -> tuple[int, int]:
    """(least, most) replicas under an HPA, which needs at least one."""
    least = max(1, spec.min_replicas)
    most = max(_MOST, spec.initial_replicas) if spec.max_replicas is None else spec.max_replicas
    return least, max(least, most)


def _bounded(twin: TwinSpec) -> list[tuple[ReplicaSpec, int, int]]:
    """Each variant with its least and most replicas."""
    return [(spec, *bounds_of(spec)) for spec in twin.replicas]


def _hpas(twin: TwinSpec, behavior: HpaBehavior) -> dict[str, HpaSpec]:
    return {
        spec.variant: HpaSpec(min_replicas=least, max_replicas=most, metrics=HPA_METRICS, behavior=behavior)
        for spec, least, most in _bounded(twin)
    }


def _static(twin: TwinSpec) -> Autoscaler:
    return StaticAutoscaler({spec.variant: spec.initial_replicas for spec in twin.replicas})


def _hpa(twin: TwinSpec) -> Autoscaler:
    return HpaAutoscaler(_hpas(twin, HpaBehavior()), twin)


def _keda(twin: TwinSpec) -> Autoscaler:
    trigger = HpaMetric(name="waiting", source=MetricSource.EXTERNAL, target=_WAITING_PER_POD)
    specs = {
        spec.variant: KedaSpec(min_replicas=least, max_replicas=most, triggers=(trigger,))
        for spec, least, most in _bounded(twin)
    }
    return KedaAutoscaler(specs, twin)


def _epp_keda(twin: TwinSpec) -> Autoscaler:
    specs = {spec.variant: epp_saturation(most, min_replicas=least) for spec, least, most in _bounded(twin)}
    return KedaAutoscaler(specs, twin)


def _kpa(twin: TwinSpec) -> Autoscaler:
    specs = {
        spec.variant: KpaSpec(
            target=min(_KPA_TARGET, float(spec.max_num_seqs)), min_replicas=least, max_replicas=most
        )
        for spec, least, most in _bounded(twin)
    }
    return KpaAutoscaler(specs, twin)


def _wva(twin: TwinSpec, analyzer: Analyzer) -> Autoscaler:
    settings = WvaSettings(analyzer=analyzer)
    return WvaAutoscaler(wva_variants(twin), _hpas(twin, WVA_BEHAVIOR), twin=twin, settings=settings)


AUTOSCALERS: Final[Mapping[str, Callable[[TwinSpec], Autoscaler]]] = {
    "static": _static,
    "hpa": _hpa,
    "keda": _keda,
    "epp-keda": _epp_keda,
    "kpa": _kpa,
    "wva": lambda twin: _wva(twin, Analyzer.PERCENTAGE),
    "wva-v2": lambda twin: _wva(twin, Analyzer.TOKENS),
}
"""What makes an autoscaler for a fleet, by name."""


def named_autoscaler(name: str, twin: TwinSpec) -> Autoscaler:
    """A fresh autoscaler of this name for all variants of a fleet.

    Raises:
        ConfigurationError: there is none of this name.
    """
    if name not in AUTOSCALERS:
        near = nearest(name, AUTOSCALERS)
        meant = f"; did you mean {near!r}?" if near else ""
        raise ConfigurationError(f"unknown autoscaler {name!r}; allowed: {', '.join(AUTOSCALERS)}{meant}")
    return AUTOSCALERS[name](twin)
