"""The published scaling heuristics as pure functions: baselines, hints for the solvers, and what we are measured by.

Each does what its source says, also where that is not the best one could do; `docs/heuristics.md` lists the rules, the
ties we had to break and the known departures.
"""

from planner.optimization.heuristics.capacity import (
    BOTH,
    SATURATION,
    UNBOUNDED,
    AnalyzerSignal,
    Reason,
    ServiceState,
    Targets,
    VariantState,
)
from planner.optimization.heuristics.cost_aware import cost_aware, scale_down, scale_up
from planner.optimization.heuristics.enforcer import is_exempt, keep_one, scale_to_zero_when_idle
from planner.optimization.heuristics.fair_share import fair_share
from planner.optimization.heuristics.greedy_by_saturation import (
    Grant,
    Growth,
    greedy_by_saturation,
    limit_in_sequence,
)
from planner.optimization.heuristics.limiters import (
    Allowance,
    Budget,
    Provider,
    merge_providers,
    used_gpus,
)
from planner.optimization.heuristics.rescale import RescaleScope, rescale, rescaled_fair_share
from planner.optimization.heuristics.water_filling import Claim, Shares, water_fill

__all__ = [
    "BOTH",
    "SATURATION",
    "UNBOUNDED",
    "Allowance",
    "AnalyzerSignal",
    "Budget",
    "Claim",
    "Grant",
    "Growth",
    "Provider",
    "Reason",
    "RescaleScope",
    "ServiceState",
    "Shares",
    "Targets",
    "VariantState",
    "cost_aware",
    "fair_share",
    "greedy_by_saturation",
    "is_exempt",
    "keep_one",
    "limit_in_sequence",
    "merge_providers",
    "rescale",
    "rescaled_fair_share",
    "scale_down",
    "scale_to_zero_when_idle",
    "scale_up",
    "used_gpus",
    "water_fill",
]
