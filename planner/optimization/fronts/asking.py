"""One program, two goals: the best of one where the other is at most so large."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from models.problem import Problem
from models.scenario import ObjectiveLevel
from planner.clock import Clock
from planner.optimization.backends.engine import Ask, Engine, Outcome, Termination
from planner.optimization.exact import descend
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.levels import Descent
from planner.optimization.program import Goal, IntegerProgram, Key, Row
from planner.optimization.protocol import SolveOptions, silent

__all__ = ["Asking", "Values", "at_most"]

Values = Mapping[Key, int]


@dataclass
class Asking:
    """An engine with the time that is left, and what it said.

    Attributes:
        engine: answers.
        options: gap, threads, and whether somebody wants an end.
        clock: measures time.
        deadline_s: when to stop.
        stopped: how the last ask ended that gave no values.
    """

    engine: Engine
    options: SolveOptions
    clock: Clock
    deadline_s: float
    stopped: Termination = Termination.TIMED_OUT

    @property
    def seconds_left(self) -> float:
        """Time until the deadline."""
        return self.deadline_s - self.clock.monotonic_s()

    def smallest(self, program: IntegerProgram, goal: Goal) -> Outcome:
        """The smallest value of a goal."""
        left = self.seconds_left
        if left <= 0 or self.options.cancelled():
            self.stopped = Termination.TIMED_OUT
            return Outcome(Termination.TIMED_OUT)
        ask = Ask(
            program=program,
            goal=goal,
            seconds=left,
            gap=self.options.gap,
            threads=self.options.threads,
            seed=self.options.seed,
            cancelled=self.options.cancelled,
        )
        outcome = self.engine.minimize(ask)
        if outcome.values is None:
            self.stopped = outcome.termination
        return outcome

    def served_best(self, problem: Problem) -> tuple[Formulation, IntegerProgram] | None:
        """The program in which as little demand as possible stays unserved; None where there is no plan."""
        formulation = formulate(problem)
        options = replace(self.options, time_limit_s=max(0.0, self.seconds_left), warm=None)
        descent = Descent(self.engine, formulation.program, options, 0.0, self.clock, silent)
        descend(descent, formulation.index, (ObjectiveLevel.UNSERVED,), last=False)
        if descent.stopped is not None and not descent.values:
            self.stopped = descent.stopped
            return None
        return formulation, descent.program


def at_most(program: IntegerProgram, goal: Goal, limit: int | None) -> IntegerProgram:
    """The program with a goal at most so large."""
    if limit is None:
        return program
    return program.plus(rows=(Row(("front", goal.name), goal.terms, upper=limit - goal.constant),))
