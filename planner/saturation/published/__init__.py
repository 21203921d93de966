"""The published scaling heuristics as pure functions: baselines, hints for the solvers, and what we are measured by.

Each does what its source says, also where that is not the best one could do; `docs/heuristics.md` lists the rules, the
ties we had to break and the known departures.
"""

from planner.saturation.published.capacity import (
    BOTH,
    SATURATION,
    UNBOUNDED,
    AnalyzerSignal,
    Reason,
    ServiceState,
    Targets,
    VariantState,
)
from planner.saturation.published.cost_aware import cost_aware, scale_down, scale_up
from planner.saturation.published.enforcer import is_exempt, keep_one, scale_to_zero_when_idle
from planner.saturation.published.fair_share import fair_share
from planner.saturation.published.greedy_by_saturation import (
    Grant,
    Growth,
    greedy_by_saturation,
    limit_in_sequence,
)
from planner.saturation.published.limiters import (
    Allowance,
    Budget,
    Provider,
    merge_providers,
    used_gpus,
)
from planner.saturation.published.rescale import RescaleScope, rescale, rescaled_fair_share
from planner.saturation.published.water_filling import Claim, Shares, water_fill

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
