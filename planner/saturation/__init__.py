"""How full replicas are, what that permits, and what the published rules make of it.

Analyzers turn readings into capacity that is missing or may go: the percentage analyzer (V1), the token analyzer (V2),
the throughput analyzer and the queueing analyzer. All are pure: what they remember is a value that goes in and comes out.
The last one is in :mod:`planner.saturation.promises` and not offered here: its model is compiled, and starting stays fast.

Source: arXiv 2603.09730, the saturation model; details as llm-d's autoscaler has them.
"""

from __future__ import annotations

from planner.saturation.cycles import (
    Judged,
    PercentageRules,
    ServiceReading,
    dealt_tokens,
    percentage_cycle,
    token_analysis,
    token_cycle,
)
from planner.saturation.memory import LimitKey, OutputClass, Stored, TokenMemory, VariantKey, output_class
from planner.saturation.pace import Pace, PaceHistory, Sample, Tier, fit_pace
from planner.saturation.percentage import analyze
from planner.saturation.readings import (
    EngineLimits,
    InstanceReading,
    SchedulerQueue,
    Traffic,
    VariantReading,
    queued_tokens,
)
from planner.saturation.safety import Activity, enforce, safety_net
from planner.saturation.shifting import Shifting, shift_one, shift_roles
from planner.saturation.signal import ReplicaState, SaturationSignal, state_of
from planner.saturation.step import Analysis, Sized, Step, analysis_of, is_live, threshold_step
from planner.saturation.throughput import (
    THROUGHPUT,
    PaceMemory,
    TokenRates,
    analyze_throughput,
    instance_rate,
    queue_rate,
)
from planner.saturation.tokens import (
    CapacityFrom,
    Cycle,
    TokenSettings,
    analyze_tokens,
    compute_limit,
    median,
)

__all__ = [
    "THROUGHPUT",
    "Activity",
    "Analysis",
    "CapacityFrom",
    "Cycle",
    "EngineLimits",
    "InstanceReading",
    "Judged",
    "LimitKey",
    "OutputClass",
    "Pace",
    "PaceHistory",
    "PaceMemory",
    "PercentageRules",
    "ReplicaState",
    "Sample",
    "SaturationSignal",
    "SchedulerQueue",
    "ServiceReading",
    "Shifting",
    "Sized",
    "Step",
    "Stored",
    "Tier",
    "TokenMemory",
    "TokenRates",
    "TokenSettings",
    "Traffic",
    "VariantKey",
    "VariantReading",
    "analysis_of",
    "analyze",
    "analyze_throughput",
    "analyze_tokens",
    "compute_limit",
    "dealt_tokens",
    "enforce",
    "fit_pace",
    "instance_rate",
    "is_live",
    "median",
    "output_class",
    "percentage_cycle",
    "queue_rate",
    "queued_tokens",
    "safety_net",
    "shift_one",
    "shift_roles",
    "state_of",
    "threshold_step",
    "token_analysis",
    "token_cycle",
]
