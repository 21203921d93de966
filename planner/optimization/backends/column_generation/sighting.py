"""Plans that are seen while a relaxation runs: whoever waits hears of them, and one that is proven ends it."""

from __future__ import annotations

from math import inf
from typing import Final

from planner.optimization.backends.column_generation.conclusion import Run, values_of
from planner.optimization.backends.column_generation.finish import NO_CHOICE, Choice
from planner.optimization.backends.column_generation.master import MasterAnswer
from planner.optimization.backends.column_generation.mending import mended

__all__ = ["Sight"]

_NEWS: Final = 0.01
"""Share by which a plan must be better to be news, where it is not proven yet."""


class Sight:
    """Looks for plans at some turns of a relaxation.

    Args:
        run: the minimization.
        at_hand: value of the plan that it begins with; None where there is none.

    Attributes:
        best: the best choice seen that keeps every row.
        proven: whether that, or the plan at hand, is as near to the bound as was asked for.
    """

    def __init__(self, run: Run, at_hand: int | None) -> None:
        self._run = run
        self.at_hand = at_hand
        self.best: Choice = NO_CHOICE
        self.proven = False
        self._turn = 0

    def look(self, answer: MasterAnswer | None, bound: float) -> None:
        """Hear of a turn: its linear program, if there is one by now, and the bound."""
        run, constant = self._run, self._run.ask.goal.constant
        known = bound + constant if bound > -inf else None
        run.ask.report(None, known, columns=len(run.master.patterns))
        if run.proves(self.at_hand, bound):
            self.proven = True
        elif answer is not None and run.ask.goal.terms and self._worthwhile(answer, bound):
            self._take(mended(run.master, answer), bound)

    def _worthwhile(self, answer: MasterAnswer, bound: float) -> bool:
        """Whether a plan could be proven, or nobody has heard of one and it is the 1st, 2nd, 4th, ... turn."""
        self._turn += 1
        untold = self.at_hand is None and not self._turn & (self._turn - 1)
        return untold or self._run.proves(answer.value + self._run.ask.goal.constant, bound)

    def _take(self, found: Choice, bound: float) -> None:
        run, constant = self._run, self._run.ask.goal.constant
        if not found.found or found.value >= self.best.value:
            return
        proven = run.proves(found.value + constant, bound)
        news = found.value < self.best.value - _NEWS * abs(found.value)
        if (proven or news) and run.ready.keeps(values_of(run, found)):
            self.best, self.proven = found, proven
            run.ask.report(round(found.value) + constant, None)
