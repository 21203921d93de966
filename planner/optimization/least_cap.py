"""The least cap of unserved shares that there is a plan for.

The largest share as a column would tie every service to every other one, and patterns mixed by a relaxation would
share it. With the cap a given number it is a side of each service alone, and the relaxation is tight: so the question
"is there a plan with every share at most so much" is asked for one cap after the other. From below caps are excluded
by proof, where the engine can do so by its relaxation alone at once; from above a plan is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Final

from models.ids import ServiceId
from planner.optimization.backends.engine import Outcome, Termination, proves
from planner.optimization.levels import Descent
from planner.optimization.program import Column, Goal, Key, Row

__all__ = ["ROUGHLY", "CapSearch", "Shares", "stepped", "worst"]

Shares = Mapping[ServiceId, Mapping[Key, int]]
"""Unserved share by service, in the coarsest steps that all of them have in common."""

_ANY: Final = Goal("feasible", {})

_FIRST: Final = 0.4
"""Share of the time for the question whether all can be served: most classes end there."""

_LOOK_FIRST: Final = 0.6
"""Share of the time left for a plan under the least cap that is not excluded: mostly there is one."""

_LOOK_AT_MANY: Final = 0.9
"""The same for many services, where nothing else finds one."""

_EXCLUDING: Final = 0.3
"""Share of the time left for excluding caps."""

_SLICE: Final = 0.5
"""Share of the time left for one look for a plan."""

_ROUNDING: Final = 1e-6

ROUGHLY: Final = 0.05
"""Gap of the load at which a plan under a cap is good enough: the least load is another question."""

_LEAST_LOOK: Final = 0.2
"""Share of all the time that is kept for the search for the largest share itself."""

_MOST_TIED: Final = 200
"""Shares up to which the largest one is tried as a column: it ties them all, which larger fleets do not bear."""

_BESIDE: Final = 2
"""Steps above the least cap at which many services are looked at first."""

_PASSES: Final = 3
"""How often caps that nothing is known of are looked at again, each time with what time is left."""


def worst(shares: Shares, values: Mapping[Key, int]) -> int:
    """The largest share in a plan, in steps."""
    return max(sum(weight * values[key] for key, weight in terms.items()) for terms in shares.values())


def stepped(share: int, step: int) -> int:
    """A share as the caps tell it: the next multiple of the step."""
    return -(-share // step) * step


def _capped(service: ServiceId, terms: Mapping[Key, int], cap: int) -> Row:
    """A share at the cap. Whoever can be served more can be served less, so one number is as good as "at most"."""
    exactly = len(terms) == 1 and cap % next(iter(terms.values())) == 0
    return Row(("unserved", service, "cap"), terms, cap if exactly else None, cap)


@dataclass
class CapSearch:
    """One search.

    Attributes:
        descent: asks the engine; nothing is held or recorded in it.
        shares: of the services that are capped.
        held: rows that hold other services meanwhile.
        whole: a whole demand in steps.
        end_s: when to stop, on the clock of the descent.
        load: what a plan under a cap makes small: shares of more demand weigh more.
        step: caps that are told apart; a share counts as the next multiple of it.
        roughly: gap of the load at which a plan under a cap is good enough.
        excluded: the largest cap that is proven to have no plan; -1 while there is none.
        values: the plan with the smallest largest share so far; None while there is none.
    """

    descent: Descent
    shares: Shares
    held: tuple[Row, ...]
    whole: int
    end_s: float
    load: Goal = _ANY
    step: int = 1
    roughly: float = ROUGHLY
    excluded: int = -1
    values: Mapping[Key, int] | None = None

    @property
    def value(self) -> int:
        """The cap that the best plan keeps; beyond a whole demand while there is none."""
        return stepped(self._worst, self.step)

    @property
    def bound(self) -> int:
        """No plan has a smaller largest share."""
        return min(self._next, self.value)

    @property
    def _next(self) -> int:
        """The smallest cap that nothing excludes."""
        return 0 if self.excluded < 0 else (self.excluded // self.step + 1) * self.step

    @property
    def left_s(self) -> float:
        """Wall time that is left."""
        return self.end_s - self.descent.clock.monotonic_s()

    def __post_init__(self) -> None:
        self.whole_s = self.left_s

    def proven(self) -> bool:
        """Whether value and bound are as near as asked for."""
        return self.values is not None and proves(self.value, self.bound, self.descent.options.gap)

    def run(self) -> Outcome | None:
        """Search; an outcome is returned where there is no plan at any cap."""
        if self.proven():
            return None
        together = self._exclude_together()
        # Of many services a look takes long, and the least cap is one that few prices did not exclude.
        beside = _BESIDE * self.step if len(self.shares) > _MOST_TIED else 0
        if together:
            part = _LOOK_AT_MANY if beside else _LOOK_FIRST
            self._look(min(self._next + beside, self.whole), part * self.left_s)
        elif not self._excludes(0, self.left_s):
            self._look(0, _FIRST * self.left_s)
        if self.proven():
            return None
        if self.values is None:
            outcome = self._look(self.whole, 2 * _FIRST * self.left_s)
            if outcome.values is None:
                return outcome
        if not together:
            self._exclude()
        self._look_above(self.step if together and not beside else 0)
        self._descend()
        return None

    def _exclude_together(self) -> bool:
        """Exclude caps all at once, where the engine can do so; whether it can."""
        caps = range(self._next, min(self.value, self.whole), self.step)
        sums = list(self.shares.values())
        count = self.descent.excluded_caps(self.held, sums, caps, _EXCLUDING * self.left_s)
        if count:
            self.excluded = max(self.excluded, caps[count - 1])
        return count is not None

    def _descend(self) -> None:
        """Minimize the largest share as a column for a while: a weak bound, but plans that get better in one search."""
        if self.proven() or self.left_s <= 0 or len(self.shares) > _MOST_TIED:
            return
        largest: Key = ("t", "largest")
        ties = (
            Row(("unserved", service, "largest"), dict(terms) | {largest: -self.step}, upper=0)
            for service, terms in self.shares.items()
        )
        most = stepped(min(self.value, self.whole), self.step)
        column = Column(largest, self._next // self.step, most // self.step)
        outcome = self.descent.probe(
            Goal("largest", {largest: 1}), (*self.held, *ties), self.left_s, (column,)
        )
        self._take(outcome)
        if outcome.values is not None and outcome.bound is not None:
            least = ceil(outcome.bound - _ROUNDING) * self.step
            self.excluded = max(self.excluded, least - self.step)

    def _exclude(self) -> None:
        """Bisect caps by proof alone."""
        low, high = self._next // self.step, self.value // self.step
        until = (1 - _EXCLUDING) * self.left_s
        while low < high and self.left_s > until:
            middle = (low + high) // 2
            if self._excludes(middle * self.step, self.left_s - until):
                low = middle + 1
            else:
                high = middle

    def _look_above(self, beside: int) -> None:
        """Look for plans from the smallest cap that nothing excludes on, in steps that grow where none is found.

        Args:
            beside: how far above it to begin, where it was looked at a moment ago.
        """
        for turn in range(_PASSES):
            below, jump = self._next + (0 if turn else beside), 1
            while self.left_s > _LEAST_LOOK * self.whole_s and not self.proven() and below < self.value:
                if self._look(below, _SLICE * self.left_s).values is not None:
                    break
                below, jump = min(below + jump * self.step, self.value), 2 * jump

    def _excludes(self, cap: int, seconds: float) -> bool:
        rows = (*self.held, *(_capped(service, terms, cap) for service, terms in self.shares.items()))
        if seconds <= 0 or not self.descent.excludes(rows, seconds):
            return False
        self.excluded = max(self.excluded, cap)
        return True

    def _look(self, cap: int, seconds: float) -> Outcome:
        """Look for a plan under a cap. With little load as the goal there are prices to go by; how little is no matter."""
        caps = (Row(("unserved", service, "cap"), terms, upper=cap) for service, terms in self.shares.items())
        outcome = self.descent.probe(self.load, (*self.held, *caps), seconds, gap=self.roughly)
        if outcome.termination is Termination.INFEASIBLE:
            self.excluded = max(self.excluded, cap)
        self._take(outcome)
        return outcome

    def _take(self, outcome: Outcome) -> None:
        if outcome.values is not None and worst(self.shares, outcome.values) < self._worst:
            self.values = outcome.values

    @property
    def _worst(self) -> int:
        """The largest share of the best plan; beyond a whole demand while there is none."""
        return self.whole + 1 if self.values is None else worst(self.shares, self.values)
