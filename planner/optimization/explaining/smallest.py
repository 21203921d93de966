"""How far one limit must move: its rows are set free and its use made small, or easier and easier values are tried."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import NamedTuple

from models.explanation import Relaxation
from models.problem import Problem
from planner.optimization.explaining.feasibility import Judged, Oracle
from planner.optimization.explaining.limits import Ladder, Limit, Use
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.program import IntegerProgram
from planner.optimization.scaling import exact

__all__ = ["Move", "Opened", "smallest"]


class Opened(NamedTuple):
    """A problem as a program, in which some limits may be free."""

    formulation: Formulation
    program: IntegerProgram


Opens = Callable[[Problem], Opened]


class Move(NamedTuple):
    """A limit, where it must stand, and the problem in which it stands there."""

    limit: Limit
    needed: float
    problem: Problem

    def told(self, plan: Judged | None) -> Relaxation:
        """The move with the plan that it allows; unverified where none could be judged."""
        limit = self.limit
        return Relaxation(
            family=limit.family,
            key=limit.key,
            limit=limit.value,
            needed=self.needed,
            unit=limit.unit,
            verified=plan is not None,
            cost=None if plan is None else plan.assessment.cost,
            facts=dict(limit.facts(self.needed)),
        )


def _as_it_is(problem: Problem) -> Opened:
    formulation = formulate(problem, roomy=True)
    return Opened(formulation, formulation.program)


def smallest(limit: Limit, oracle: Oracle, *, opens: Opens = _as_it_is) -> Move | None:
    """The least move of a limit; None: moving it is not enough, or time ran out.

    Args:
        limit: of the problem at hand.
        oracle: solves until its deadline.
        opens: sets other limits free, too.
    """
    use = limit.search
    needed = _smallest_use(use, oracle, opens) if isinstance(use, Use) else _first(limit, oracle, opens)
    moved = None if needed is None else limit.moved(needed)
    return None if needed is None or moved is None else Move(limit, needed, moved)


def _smallest_use(use: Use, oracle: Oracle, opens: Opens) -> float | None:
    opened = opens(use.problem)
    goal = use.goal(opened.formulation)
    outcome = oracle.smallest(use.freed(opened.program), goal)
    if outcome.values is None:
        return None
    value = goal.in_units(goal.activity(outcome.values))
    return use.sign * float(ceil(exact(value) / exact(use.step) - exact(1e-9)) * exact(use.step))


def _first(limit: Limit, oracle: Oracle, opens: Opens) -> float | None:
    """The first value of a ladder that does, by halving: what an easier value cannot do no harder one can."""
    values = limit.search.values if isinstance(limit.search, Ladder) else ()

    def does(value: float) -> bool:
        changed = limit.moved(value) if oracle.seconds_left > 0 else None
        return changed is not None and oracle.feasible(opens(changed).program) is True

    low, high = 0, len(values) - 1
    if high < 0 or not does(values[high]):
        return None
    while low < high:
        middle = (low + high) // 2
        if does(values[middle]):
            high = middle
        else:
            low = middle + 1
    return values[high]
