"""Questions about problems near the one at hand: is there a plan, how small can a use be, what is the best plan now?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from models.ids import CandidateId
from models.problem import Problem
from models.report import Assessment
from models.scenario import ObjectiveLevel
from models.solution import Solution
from planner.clock import Clock
from planner.errors import ConfigurationError
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.program import Goal, IntegerProgram
from planner.optimization.protocol import SolveOptions
from planner.referee import assess

__all__ = ["Judged", "Oracle"]

_MONEY = (ObjectiveLevel.UNSERVED, ObjectiveLevel.COST)


@dataclass(frozen=True)
class Judged:
    """A plan that the referee found nothing against, with its figures."""

    solution: Solution
    assessment: Assessment


class Oracle:
    """Answers by exact solvers until a deadline."""

    def __init__(self, *, clock: Clock, deadline_s: float, gap: float = 1e-6) -> None:
        from planner.optimization.solvers import exact_engine

        self._engine = exact_engine(clock)
        self._clock = clock
        self._deadline_s = deadline_s
        self._gap = gap

    @property
    def seconds_left(self) -> float:
        """Time until the deadline."""
        return self._deadline_s - self._clock.monotonic_s()

    def until(self, part: float) -> Oracle:
        """An oracle for this part of the time that is left."""
        now = self._clock.monotonic_s()
        return Oracle(clock=self._clock, deadline_s=now + part * max(0.0, self.seconds_left), gap=self._gap)

    def feasible(self, program: IntegerProgram) -> bool | None:
        """Whether there is any point; None when time ran out before that was known."""
        outcome = self.smallest(program, Goal("feasible", {}))
        if outcome.values is not None:
            return True
        return False if outcome.termination is Termination.INFEASIBLE else None

    def smallest(self, program: IntegerProgram, goal: Goal) -> Outcome:
        """The smallest value of a goal."""
        left = self.seconds_left
        if left <= 0:
            return Outcome(Termination.TIMED_OUT)
        return self._engine.minimize(Ask(program=program, goal=goal, seconds=left, gap=self._gap))

    def plan(
        self,
        problem: Problem,
        *,
        levels: tuple[ObjectiveLevel, ...] = _MONEY,
        hint: Mapping[CandidateId, int] | None = None,
    ) -> Judged | None:
        """The best plan of a problem in these levels, held exactly; None when there is none, or no time to find one.

        Nor is there one where its nodes are more than can be judged. ``hint`` are counts to start from.
        """
        from planner.optimization.exact import WholeProgram

        left = self.seconds_left
        if left <= 0:
            return None
        asked = problem.but(objective=problem.objective.but(levels=levels, tolerance=0.0))
        solver = WholeProgram(
            self._engine, name="auto", hint=None if hint is None else lambda _: hint, clock=self._clock
        )
        options = SolveOptions(time_limit_s=left, gap=self._gap)
        try:
            solution = solver(asked, options).solution
            if not solution.has_plan:
                return None
            assessment = assess(problem, solution)
        except ConfigurationError:
            return None
        return None if assessment.violations else Judged(solution, assessment)
