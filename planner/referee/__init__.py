"""The referee: judges any plan, and any state on the way to one, from the problem and the solution alone.

It reads ``docs/formulation.md`` independently of the formulation, imports nothing of the solvers, and shares no code
with them. Sums are exact; every row is judged with one relative tolerance in the plan's favor.
"""

from __future__ import annotations

from planner.referee.assess import assess, check
from planner.referee.bays import added_node
from planner.referee.packing import Unplaced, pack
from planner.referee.serving import Serving, best_service, state_of, state_with
from planner.referee.traffic import BOUNDING, WHILE_NOTHING_FAILS

__all__ = [
    "BOUNDING",
    "WHILE_NOTHING_FAILS",
    "Serving",
    "Unplaced",
    "added_node",
    "assess",
    "best_service",
    "check",
    "pack",
    "state_of",
    "state_with",
]
