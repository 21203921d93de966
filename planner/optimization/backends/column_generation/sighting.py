"""Plans that are seen while a relaxation runs: whoever waits hears of them, and one that is proven ends it."""

from __future__ import annotations

from functools import cached_property
from math import inf
from typing import Final

from planner.optimization.backends.column_generation.conclusion import Run, given_start, near_of
from planner.optimization.backends.column_generation.finish import NO_CHOICE, Choice
from planner.optimization.backends.column_generation.master import MasterAnswer
from planner.optimization.backends.column_generation.mending import mended
from planner.optimization.backends.column_generation.relaxation import Relaxed

__all__ = ["Sight"]

_NEWS: Final = 0.01
"""Share by which a plan must be better to be news, where it is not proven yet."""

_ROUGH: Final = 0.1
"""Gap from which the first plan that is seen would do: whoever asks so goes on from it, and a choice is a better start."""

_UNSERVED: Final = "z"
"""First name of the keys of shares that stay unserved."""

_FEW: Final = 200
"""Blocks among which a choice is a matter of tenths of a second."""

_NEAREST: Final = 20_000
"""Patterns near the relaxation that are looked at."""

_LISTING_S: Final = 2e-4
"""Wall time that this takes for each block, s."""


class Sight:
    """Looks for plans at some turns of a relaxation, and once more at its end.

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
        self._missed = False

    def look(self, answer: MasterAnswer | None, bound: float) -> None:
        """Hear of a turn: its linear program, if there is one by now, and the bound."""
        run, constant = self._run, self._run.ask.goal.constant
        known = bound + constant if bound > -inf else None
        run.ask.report(None, known, columns=len(run.master.patterns))
        if run.proves(self.at_hand, bound):
            self.proven = True
        elif answer is not None and run.ask.goal.terms and self._worthwhile(answer, bound):
            found = mended(run.master, answer)
            self._missed = not found.found
            self._take(found, bound, news=_NEWS)

    def look_closer(self, relaxed: Relaxed, seconds_left: float) -> None:
        """At the end: from the linear program and from the plan at hand, among all patterns that are near.

        Args:
            relaxed: where the relaxation ended.
            seconds_left: wall time that is left; patterns near it are listed where that is enough for them.
        """
        run, answer = self._run, relaxed.answer
        if self.proven or answer is None or not run.ask.goal.terms or self._better_chosen:
            return
        self._take(mended(run.master, answer), relaxed.bound)
        if self._lists_near(relaxed) and seconds_left > _LISTING_S * len(run.shape.blocks):
            self._take_nearest(relaxed, answer)

    def _take_nearest(self, relaxed: Relaxed, answer: MasterAnswer) -> None:
        run = self._run
        near = near_of(run, relaxed).nearest(_NEAREST)
        self._take(mended(run.master, answer, more=near, start=given_start(run, self.best)), relaxed.bound)

    @cached_property
    def _better_chosen(self) -> bool:
        """Whether a choice is the better plan to go on from: any plan will do, or few blocks share out what is scarce."""
        ask = self._run.ask
        scarce = any(key[0] == _UNSERVED for key in ask.goal.terms)
        return ask.gap > _ROUGH or (scarce and len(self._run.shape.blocks) <= _FEW)

    def _lists_near(self, relaxed: Relaxed) -> bool:
        return not self.proven and self._run.wants_near(relaxed)

    def _worthwhile(self, answer: MasterAnswer, bound: float) -> bool:
        """Whether a plan could be proven, or nobody has heard of one; after one was missed, at the 4th, 8th, ... turn."""
        self._turn += 1
        if self._better_chosen:
            return False
        if self._missed and self._turn & (self._turn - 1):
            return False
        provable = self._run.proves(answer.value + self._run.ask.goal.constant, bound)
        return provable or (self.at_hand is None and not self._turn & (self._turn - 1))

    def _take(self, found: Choice, bound: float, *, news: float = 0.0) -> None:
        """Take a choice that is proven, or better than all before by more than some share, and keeps every row."""
        run, constant = self._run, self._run.ask.goal.constant
        known = min(self.best.value, inf if self.at_hand is None else self.at_hand - constant)
        if not found.found or found.value >= known:
            return
        proven = run.proves(found.value + constant, bound)
        better = found.value < known - news * abs(found.value)
        if (proven or better) and run.ready.keeps(found.values(run.shape)):
            self.best, self.proven = found, proven
            run.ask.report(round(found.value) + constant, None)
