"""Who decides: policies by name (plug-in group ``fleetplan.policy``), and the rules that every wish goes through."""

from planner.control.deciding.contract import Decided, Deciding, Verdict
from planner.control.deciding.state import DecidingState, Wish

__all__ = ["Decided", "Deciding", "DecidingState", "Verdict", "Wish"]
