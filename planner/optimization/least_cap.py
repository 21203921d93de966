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
from planner.optimization.backends.engine import Outcome, Termination
from planner.optimization.levels import Descent
from planner.optimization.program import Column, Goal, Key, Row

__all__ = ["CapSearch", "Shares", "worst"]

Shares = Mapping[ServiceId, Mapping[Key, int]]
"""Unserved share by service, in the coarsest steps that all of them have in common."""

_ANY: Final = Goal("feasible", {})

_FIRST: Final = 0.4
"""Share of the time for the question whether all can be served: most classes end there."""

_EXCLUDING: Final = 0.4
"""Share of the time left for excluding caps."""

_SLICE: Final = 0.35
"""Share of the time left for one look for a plan."""

_DESCENDING: Final = 0.5
"""Share of the time left for minimizing the largest share itself."""

_ROUNDING: Final = 1e-6

_STEP: Final = 0.01
"""How far above the excluded caps the first plan is looked for, relative to the cap."""

_PASSES: Final = 3
"""How often caps that nothing is known of are looked at again, each time with what time is left."""


def worst(shares: Shares, values: Mapping[Key, int]) -> int:
    """The largest share in a plan, in steps."""
    return max(sum(weight * values[key] for key, weight in terms.items()) for terms in shares.values())


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
        excluded: the largest cap that is proven to have no plan; -1 while there is none.
        values: the plan with the smallest largest share so far; None while there is none.
    """

    descent: Descent
    shares: Shares
    held: tuple[Row, ...]
    whole: int
    end_s: float
    excluded: int = -1
    values: Mapping[Key, int] | None = None

    @property
    def value(self) -> int:
        """The largest share of the best plan; beyond a whole demand while there is none."""
        return self.whole + 1 if self.values is None else worst(self.shares, self.values)

    @property
    def bound(self) -> int:
        """No plan has a smaller largest share."""
        return min(self.excluded + 1, self.value)

    @property
    def left_s(self) -> float:
        """Wall time that is left."""
        return self.end_s - self.descent.clock.monotonic_s()

    def proven(self) -> bool:
        """Whether value and bound are as near as asked for."""
        return self.values is not None and self.value - self.bound <= self.descent.options.gap * self.value

    def run(self) -> Outcome | None:
        """Search; an outcome is returned where there is no plan at any cap."""
        if not self._excludes(0, self.left_s):
            self._look(0, _FIRST * self.left_s)
        if self.proven():
            return None
        if self.values is None:
            outcome = self._look(self.whole, 2 * _FIRST * self.left_s)
            if outcome.values is None:
                return outcome
        self._exclude()
        self._descend()
        self._look_above()
        return None

    def _descend(self) -> None:
        """Minimize the largest share as a column for a while: a weak bound, but plans that get better in one search."""
        if self.proven() or self.left_s <= 0:
            return
        largest: Key = ("t", "largest")
        ties = (
            Row(("unserved", service, "largest"), dict(terms) | {largest: -1}, upper=0)
            for service, terms in self.shares.items()
        )
        column = Column(largest, self.excluded + 1, min(self.value, self.whole))
        outcome = self.descent.probe(
            Goal("largest", {largest: 1}), (*self.held, *ties), _DESCENDING * self.left_s, (column,)
        )
        self._take(outcome)
        if outcome.values is not None and outcome.bound is not None:
            self.excluded = max(self.excluded, ceil(outcome.bound - _ROUNDING) - 1)

    def _exclude(self) -> None:
        """Bisect caps by proof alone."""
        high = self.value
        until = (1 - _EXCLUDING) * self.left_s
        while high - self.excluded > 1 + self.descent.options.gap * high / 2 and self.left_s > until:
            middle = (max(0, self.excluded) + high) // 2
            if self._excludes(middle, self.left_s - until):
                self.excluded = max(self.excluded, middle)
            else:
                high = middle

    def _look_above(self) -> None:
        """Look for plans between what is excluded and the best plan, in steps that grow where none is found."""
        for _ in range(_PASSES):
            unknown, part = self.excluded, _STEP
            while self.left_s > 0 and not self.proven():
                below = max(unknown, self.excluded)
                cap = below + max(1, min((self.value - below) // 2, int(part * below)))
                if cap >= self.value:
                    break
                if self._look(cap, _SLICE * self.left_s).values is None:
                    unknown, part = cap, 2 * part
            if self.excluded >= unknown:
                break

    def _rows(self, cap: int) -> tuple[Row, ...]:
        return (*self.held, *(_capped(service, terms, cap) for service, terms in self.shares.items()))

    def _excludes(self, cap: int, seconds: float) -> bool:
        if seconds <= 0 or not self.descent.excludes(self._rows(cap), seconds):
            return False
        self.excluded = max(self.excluded, cap)
        return True

    def _look(self, cap: int, seconds: float) -> Outcome:
        outcome = self.descent.probe(_ANY, self._rows(cap), seconds)
        if outcome.termination is Termination.INFEASIBLE:
            self.excluded = max(self.excluded, cap)
        self._take(outcome)
        return outcome

    def _take(self, outcome: Outcome) -> None:
        if outcome.values is not None and worst(self.shares, outcome.values) < self.value:
            self.values = outcome.values
