"""Yes or no, quickly: can all rows hold at once, and how small can the use of one limit be?"""

from __future__ import annotations

from planner.clock import Clock
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.program import Goal, IntegerProgram

__all__ = ["Oracle"]


class Oracle:
    """Questions about one program, answered by HiGHS and CP-SAT until a deadline."""

    def __init__(self, *, clock: Clock, deadline_s: float) -> None:
        from planner.optimization.backends.cpsat import CpSat
        from planner.optimization.backends.pulp import PulpHighs
        from planner.optimization.backends.race import Relay

        self._engine = Relay([PulpHighs, CpSat], clock=clock)
        self._clock = clock
        self._deadline_s = deadline_s

    @property
    def seconds_left(self) -> float:
        """Time until the deadline."""
        return self._deadline_s - self._clock.monotonic_s()

    def feasible(self, program: IntegerProgram) -> bool | None:
        """Whether there is any point; None when time ran out before that was known."""
        outcome = self.smallest(program, Goal("feasible", {}))
        if outcome.values is not None:
            return True
        return False if outcome.termination is Termination.INFEASIBLE else None

    def smallest(self, program: IntegerProgram, goal: Goal, *, gap: float = 1e-6) -> Outcome:
        """The smallest value of a goal."""
        left = self.seconds_left
        if left <= 0:
            return Outcome(Termination.TIMED_OUT)
        return self._engine.minimize(Ask(program=program, goal=goal, seconds=left, gap=gap))
