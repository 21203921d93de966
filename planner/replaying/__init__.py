"""A scenario's plan, or any policy, against a trace: optimization and the digital twin put together.

``playable`` works out what a scenario's replicas do step by step, ``replay`` runs policies one after another.
"""

from planner.replaying.composing import BEST_EFFORT, Prepared, Replayed, prepare, replay_all
from planner.replaying.fleet import GRACE_S, Playable, by_thresholds, playable
from planner.replaying.planning_loop import PlannerAutoscaler, PlannerSettings
from planner.replaying.running import (
    PLANNER,
    POLICIES,
    Observers,
    ReplayOptions,
    Run,
    Start,
    check_policies,
    replay,
    told_replay,
)

__all__ = [
    "BEST_EFFORT",
    "GRACE_S",
    "PLANNER",
    "POLICIES",
    "Observers",
    "PlannerAutoscaler",
    "PlannerSettings",
    "Playable",
    "Prepared",
    "ReplayOptions",
    "Replayed",
    "Run",
    "Start",
    "by_thresholds",
    "check_policies",
    "playable",
    "prepare",
    "replay",
    "replay_all",
    "told_replay",
]
