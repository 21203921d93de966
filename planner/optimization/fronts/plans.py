"""Two ways to ask for the points of a front: two goals of one program, or one goal beside headroom."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, floor
from typing import Final, Protocol

from models.problem import Problem
from models.report import Assessment
from models.saturation import Headroom
from models.solution import Proof, Solution, Status
from models.workload import ServiceKind
from planner.errors import InternalError
from planner.optimization.backends.engine import Outcome, Termination
from planner.optimization.decoding import solution_at
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.fronts.asking import Asking, at_most
from planner.optimization.program import Goal, IntegerProgram
from planner.referee import assess

__all__ = ["HEADROOM_STEPS", "MOST_HEADROOM", "BesideHeadroom", "Plan", "Plans", "TwoGoals", "least_headroom"]

HEADROOM_STEPS: Final = 1000
"""Headroom is a whole number of thousandths of the load."""

MOST_HEADROOM: Final = 1000
"""More headroom than the load itself is not looked for."""


@dataclass(frozen=True)
class Plan:
    """A plan at its place, with how far it is proven."""

    place: tuple[int, int]
    solution: Solution
    assessment: Assessment
    proven: bool
    gap: float | None


class Plans(Protocol):
    """Where the points of a front come from."""

    def leftmost(self, y_most: int | None) -> Plan | None:
        """The smallest x where y is at most so large, then the smallest y."""
        ...

    def lowest(self, x_most: int | None) -> Plan | None:
        """The smallest y where x is at most so large, then the smallest x."""
        ...


@dataclass(frozen=True)
class TwoGoals:
    """Both are goals of one program."""

    asking: Asking
    formulation: Formulation
    program: IntegerProgram
    goals: tuple[Goal, Goal]

    def leftmost(self, y_most: int | None) -> Plan | None:
        """See :class:`Plans`."""
        return self._best(0, y_most)

    def lowest(self, x_most: int | None) -> Plan | None:
        """See :class:`Plans`."""
        return self._best(1, x_most)

    def _best(self, first: int, other_most: int | None) -> Plan | None:
        goal, other = self.goals[first], self.goals[1 - first]
        best = self.asking.smallest(at_most(self.program, other, other_most), goal)
        if best.values is None:
            return None
        value = goal.activity(best.values)
        held = at_most(self.program, goal, value)
        then = self.asking.smallest(held, other)
        outcomes = ((goal, best), (other, then))
        values = best.values if then.values is None else then.values
        x, y = (each.activity(values) for each in self.goals)
        return judged(self.formulation, Outcome(Termination.FEASIBLE, values), outcomes, place=(x, y))


@dataclass
class BesideHeadroom:
    """X is a goal; y is the headroom that all online services have, counted downwards.

    Headroom multiplies what is served, so it is no goal of the program: each headroom has a program of its own. A plan
    may have more headroom than it was asked for; asking for more again and again, at no higher x, finds how much.
    """

    asking: Asking
    problem: Problem
    goal_of: Goals
    known: dict[int, Plan | None] = field(default_factory=dict)

    def leftmost(self, y_most: int | None) -> Plan | None:
        """See :class:`Plans`."""
        plan = self._cheapest(0 if y_most is None else -y_most)
        while plan is not None and plan.place[1] > -MOST_HEADROOM:
            more = self._cheapest(1 - plan.place[1])
            if more is None or more.place[0] > plan.place[0]:
                break
            plan = more
        return plan

    def lowest(self, x_most: int | None) -> Plan | None:
        """See :class:`Plans`."""
        best, low, high = None, 0, MOST_HEADROOM
        while low <= high:
            middle = low if best is None else (low + high + 1) // 2
            plan = self._cheapest(middle)
            if plan is not None and (x_most is None or plan.place[0] <= x_most):
                best, low = plan, 1 - plan.place[1]
            elif best is None:
                return None
            else:
                high = middle - 1
        # It is the leftmost of its headroom, and has all that it was found to have.
        return best

    def _cheapest(self, headroom: int) -> Plan | None:
        if headroom not in self.known:
            self.known[headroom] = self._solved(headroom)
        return self.known[headroom]

    def _solved(self, headroom: int) -> Plan | None:
        formulation = formulate(with_headroom(self.problem, headroom))
        goal = self.goal_of(formulation)
        outcome = self.asking.smallest(formulation.program, goal)
        if outcome.values is None:
            return None
        value = goal.activity(outcome.values)
        plan = judged(formulation, outcome, ((goal, outcome),), place=(value, -headroom))
        had = least_headroom(plan.assessment, self.problem)
        kept = headroom if had is None else max(headroom, floor(had * HEADROOM_STEPS - 1e-9))
        return Plan((value, -min(kept, MOST_HEADROOM)), plan.solution, plan.assessment, plan.proven, plan.gap)


class Goals(Protocol):
    """Makes a goal of a formulation."""

    def __call__(self, formulation: Formulation) -> Goal:
        """The goal."""
        ...


def with_headroom(problem: Problem, thousandths: int) -> Problem:
    """The problem in which every online service keeps this headroom and no other."""
    headroom = Headroom(relative=thousandths / HEADROOM_STEPS)
    return problem.but(
        demands=tuple(
            demand if demand.kind is ServiceKind.BATCH else demand.but(headroom=headroom)
            for demand in problem.demands
        )
    )


def least_headroom(assessment: Assessment, problem: Problem) -> float | None:
    """The least headroom of the online services; None where none of them has load."""
    online = {d.service for d in problem.demands if d.kind is not ServiceKind.BATCH}
    known = [s.headroom for s in assessment.services if s.service in online and s.headroom is not None]
    return min(known, default=None)


def judged(
    formulation: Formulation,
    found: Outcome,
    outcomes: tuple[tuple[Goal, Outcome], ...],
    *,
    place: tuple[int, int],
) -> Plan:
    """The plan of some values, judged, with the proofs of the goals that led to it.

    Raises:
        InternalError: the plan fails the referee.
    """
    gaps = [_gap(goal, outcome) for goal, outcome in outcomes]
    proven = all(outcome.termination is Termination.OPTIMAL for _, outcome in outcomes)
    status = Status.OPTIMAL if proven else Status.FEASIBLE
    solution = solution_at(formulation.index, found.values or {}, status=status, proof=Proof(solver="auto"))
    assessment = assess(formulation.index.problem, solution)
    if assessment.violations:
        listed = "; ".join(violation.text for violation in assessment.violations)
        raise InternalError(f"a plan of the front fails the referee: {listed}")
    known = [gap for gap in gaps if gap is not None]
    return Plan(place, solution, assessment, proven, max(known) if len(known) == len(gaps) else None)


def _gap(goal: Goal, outcome: Outcome) -> float | None:
    if outcome.values is None:
        return None
    value = goal.activity(outcome.values)
    if outcome.bound is None:
        return None if goal.terms else 0.0
    # Goals are whole numbers, so a bound is one too but for the engine's tolerance.
    distance = max(0, value - ceil(outcome.bound - max(1e-6, 1e-9 * abs(outcome.bound))))
    return distance / abs(value) if value else distance * goal.unit
