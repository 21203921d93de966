"""How full replicas are, what that permits, and what the published rules make of it.

Analyzers turn readings into capacity that is missing or may go: the percentage analyzer (V1), the token analyzer (V2),
the throughput analyzer and the queueing analyzer. All are pure: what they remember is a value that goes in and comes out.

Source: arXiv 2603.09730, the saturation model; details as llm-d's autoscaler has them.
"""

from __future__ import annotations

from planner.saturation.memory import LimitKey, OutputClass, Stored, TokenMemory, VariantKey, output_class
from planner.saturation.percentage import analyze
from planner.saturation.readings import (
    EngineLimits,
    InstanceReading,
    SchedulerQueue,
    Traffic,
    VariantReading,
    queued_tokens,
)
from planner.saturation.signal import ReplicaState, SaturationSignal, state_of
from planner.saturation.step import Analysis, Sized, Step, analysis_of, is_live, threshold_step
from planner.saturation.tokens import (
    CapacityFrom,
    Cycle,
    TokenSettings,
    analyze_tokens,
    compute_limit,
    median,
)

__all__ = [
    "Analysis",
    "CapacityFrom",
    "Cycle",
    "EngineLimits",
    "InstanceReading",
    "LimitKey",
    "OutputClass",
    "ReplicaState",
    "SaturationSignal",
    "SchedulerQueue",
    "Sized",
    "Step",
    "Stored",
    "TokenMemory",
    "TokenSettings",
    "Traffic",
    "VariantKey",
    "VariantReading",
    "analysis_of",
    "analyze",
    "analyze_tokens",
    "compute_limit",
    "is_live",
    "median",
    "output_class",
    "queued_tokens",
    "state_of",
    "threshold_step",
]
