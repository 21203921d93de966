"""How full replicas are, and what that permits: the percentage analyzer.

Source: arXiv 2603.09730, the saturation model; the rule for scaling in is as llm-d's autoscaler has it.
"""

from __future__ import annotations

from planner.saturation.percentage import analyze
from planner.saturation.signal import ReplicaState, SaturationSignal, state_of

__all__ = ["ReplicaState", "SaturationSignal", "analyze", "state_of"]
