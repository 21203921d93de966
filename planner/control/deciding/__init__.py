"""Who decides: policies by name (plug-in group ``fleetplan.policy``), and the rules that every wish goes through."""

from planner.control.deciding.contract import Decided, Deciding, Verdict
from planner.control.deciding.decider import Decider
from planner.control.deciding.policy import (
    POLICIES,
    Policy,
    PolicyFactory,
    Proposal,
    Proposed,
    Question,
    open_policy,
)
from planner.control.deciding.state import DecidingState, Wish

__all__ = [
    "POLICIES",
    "Decided",
    "Decider",
    "Deciding",
    "DecidingState",
    "Policy",
    "PolicyFactory",
    "Proposal",
    "Proposed",
    "Question",
    "Verdict",
    "Wish",
    "open_policy",
]
