"""Autoscalers on simulated time, each as its own controller computes: HPA, KEDA, KPA, WVA above HPA, static.

All see observations only, remember what is theirs and read no clock. The arithmetic is in pure functions on values
(:func:`reconcile`, :func:`poll`, :func:`scale`), so that a case is a row of a table.
"""

from planner.simulation.autoscaling.board import EXTERNAL_METRICS, POD_METRICS, Board, pool_saturation
from planner.simulation.autoscaling.cluster import HpaAutoscaler, StaticAutoscaler
from planner.simulation.autoscaling.epp import epp_saturation
from planner.simulation.autoscaling.hpa import HpaDecision, HpaTarget, reconcile
from planner.simulation.autoscaling.hpa_limits import HpaHistory, HpaReason
from planner.simulation.autoscaling.hpa_metrics import PodFigure, PodPhase, Tolerances
from planner.simulation.autoscaling.keda import KedaAutoscaler, KedaMemory, poll
from planner.simulation.autoscaling.kpa import KpaAutoscaler, KpaMemory, scale
from planner.simulation.autoscaling.named import (
    AUTOSCALERS,
    HPA_METRICS,
    WVA_BEHAVIOR,
    bounds_of,
    named_autoscaler,
)
from planner.simulation.autoscaling.wva import WvaAutoscaler, wva_hpa
from planner.simulation.autoscaling.wva_cycle import WvaMemory
from planner.simulation.autoscaling.wva_settings import Analyzer, WvaSettings, WvaVariant, wva_variants

__all__ = [
    "AUTOSCALERS",
    "EXTERNAL_METRICS",
    "HPA_METRICS",
    "POD_METRICS",
    "WVA_BEHAVIOR",
    "Analyzer",
    "Board",
    "HpaAutoscaler",
    "HpaDecision",
    "HpaHistory",
    "HpaReason",
    "HpaTarget",
    "KedaAutoscaler",
    "KedaMemory",
    "KpaAutoscaler",
    "KpaMemory",
    "PodFigure",
    "PodPhase",
    "StaticAutoscaler",
    "Tolerances",
    "WvaAutoscaler",
    "WvaMemory",
    "WvaSettings",
    "WvaVariant",
    "bounds_of",
    "epp_saturation",
    "named_autoscaler",
    "poll",
    "pool_saturation",
    "reconcile",
    "scale",
    "wva_hpa",
    "wva_variants",
]
