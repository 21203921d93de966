"""A minimal conflict: families that cannot hold together, though without any one of them the rest can."""

from __future__ import annotations

from typing import Final

from models.explanation import Conflict
from models.problem import Problem
from planner.clock import Clock
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.formulation import formulate

__all__ = ["POLICY", "conflict_of"]

POLICY: Final = (
    "start",
    "change",
    "ratio",
    "incumbents",
    "placement",
    "safe_scale_in",
    "bounds",
    "headroom",
    "survive",
    "nodes",
    "spend",
    "power",
    "quota",
    "gpus",
    "rate",
    "demand",
)
"""Order of the deletion filter: what can be left out early is no part of the conflict that is shown."""


def conflict_of(problem: Problem, *, clock: Clock, deadline_s: float) -> Conflict | None:
    """Deletion filter over families in policy order; None when time ran out before anything was certain.

    A family whose removal could not be judged in time stays in: the conflict is then valid, but maybe not minimal.
    """
    oracle = Oracle(clock=clock, deadline_s=deadline_s)
    program = formulate(problem, roomy=True).program
    if oracle.feasible(program) is not False:
        return None
    present = set(program.families)
    dropped: list[str] = []
    for family in (*POLICY, *sorted(present.difference(POLICY))):
        if family in present and oracle.feasible(program.without([*dropped, family])) is False:
            dropped.append(family)
    remaining = [family for family in program.families if family not in dropped]
    rows = tuple(row.key for row in program.impossible if row.family in remaining)
    return Conflict(families=tuple(sorted(remaining, key=_rank)), rows=rows)


def _rank(family: str) -> int:
    """The promise first, then what stands against it."""
    order = (*reversed(POLICY),)
    return order.index(family) if family in order else len(order)
