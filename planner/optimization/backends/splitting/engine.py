"""Benders decomposition as an engine: choose, let shares follow, cut what they cannot follow, and choose again.

Cuts are taken first at a point between the choice and the relaxation's own choice: such cuts lie closer to where good
plans are (in-out separation: Ben-Ameur and Neto 2007, doi 10.1002/net.20190), and the first choices are far away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.clock import Clock, SolvingClock
from planner.optimization.backends.engine import Ask, Outcome, Termination, proves
from planner.optimization.backends.floating import graded
from planner.optimization.backends.splitting.choices import Choices
from planner.optimization.backends.splitting.grid import on_grid
from planner.optimization.backends.splitting.parts import Following, Parts, following_of, parts_of
from planner.optimization.backends.splitting.shares import Cut, Response, Shares
from planner.optimization.program import Key
from planner.optimization.scaling import GRID

__all__ = ["Known", "Splitting"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NOTHING: Final = 1e-6
"""A price of missing rows that is the tolerance of floats, where the dearest replica is 1."""

_INWARDS: Final = 0.8
"""How far from the choice towards the relaxation the first cuts are taken."""

_AT_THE_CHOICE: Final = 0.1
"""Below this the inner point is the choice itself."""

_OF_GAP: Final = 0.25
"""Share of the gap asked for that a choice may leave."""

_BOLD_EVERY: Final = 3
"""Every so many turns a choice is made to keep the cuts with something to spare: likelier a plan than the best one is."""

_BOLDLY: Final = 1.0
"""What it spares, as a share of the gap asked for."""

_MUCH: Final = 0.5
"""Share of the distance between plan and bound that a likely plan may leave to be tried."""

_APART: Final = 2.0
"""Grid steps that rows keep free for rounding at first, once shares had no place on the grid."""

_FARTHEST: Final = 1_000.0
"""Grid steps beyond which no rounding needs them."""


@dataclass(frozen=True, slots=True)
class Known:
    """What speaks of the rows with shares alone, and so holds for the next goal too."""

    parts: Parts
    following: Following
    cuts: tuple[Cut, ...]

    def aged(self) -> Known:
        """Good as long as the rows are the same, which is looked at."""
        return self

    def speaks_of(self, parts: Parts) -> bool:
        """Whether rows and columns are those that cuts were made of."""
        return (
            [c.key for c in self.parts.chosen] == [c.key for c in parts.chosen]
            and self.parts.shares == parts.shares
            and self.parts.tied == parts.tied
        )


class Splitting:
    """An engine for few columns to choose and many shares that follow; others get no answer from it."""

    name = "splitting"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SolvingClock()

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization; without an answer where the goal weighs shares."""
        end = self._clock.monotonic_s() + ask.seconds
        if ask.program.is_hopeless:
            return Outcome(Termination.INFEASIBLE)
        parts = parts_of(ask.program, ask.goal)
        if parts is None:
            return Outcome(Termination.TIMED_OUT)
        known = ask.memory.recall(Known) if ask.memory else None
        if known is None or not known.speaks_of(parts):
            known = Known(parts, following_of(parts), ())
        search = _Search(ask, parts, known, self._clock, end)
        outcome = search.run()
        if ask.memory:
            ask.memory.keep(Known(parts, known.following, search.proven_cuts))
        return outcome


@dataclass
class _Search:
    """One minimization. Weights and bounds are in units of the largest weight of the goal, without its constant.

    Attributes:
        best: the best plan so far.
        bound: proven so far.
        apart: grid steps that rows keep free; from the first on cuts say more than is proven, and the bound stays.
        proven_cuts: cuts that every plan keeps.
    """

    ask: Ask
    parts: Parts
    known: Known
    clock: Clock
    end: float
    best: dict[Key, int] | None = None
    bound: float = -inf
    apart: float = 0.0
    inwards: float = _INWARDS
    center: Floats | None = None
    proven_cuts: tuple[Cut, ...] = field(init=False)

    def __post_init__(self) -> None:
        terms = self.ask.goal.terms
        self.proven_cuts = self.known.cuts
        self.unit = float(max((abs(value) for value in terms.values()), default=1)) or 1.0
        self.weights = np.array([terms.get(c.key, 0) / self.unit for c in self.parts.chosen])
        self.lower = np.array([c.lower for c in self.parts.chosen], dtype=np.int64)
        self.upper = np.array([c.upper for c in self.parts.chosen], dtype=np.int64)
        self.choices = Choices(self.parts, self.weights, cancelled=self.ask.cancelled, seed=self.ask.seed)
        self.choices.add(self.known.cuts)

    @cached_property
    def shares(self) -> Shares:
        """Made when first asked: what is known may be enough."""
        return Shares(self.known.following, self.weights)

    def run(self) -> Outcome:
        """Turns until the plan is proven, or time is over."""
        self._take_hint()
        if not self.known.cuts and not self._find_center():
            return self._outcome()
        turn = 0
        while not self._over():
            turn += 1
            bold = turn % _BOLD_EVERY == 0
            spare = _BOLDLY * self.ask.gap * abs(self.bound) if bold and self.bound > -inf else 0.0
            choice = self.choices.best(gap=_OF_GAP * self.ask.gap, seconds=self._left(), beyond=spare)
            if choice.impossible and not spare:
                if self.best is None and not self.apart:
                    return Outcome(Termination.INFEASIBLE)
                break
            if not spare and not self.apart:
                self._raise(choice.bound)
            if self._over() or (choice.values is None and not spare):
                break
            if choice.values is not None and not self._answer(choice.values):
                break
        return self._outcome()

    def _answer(self, x: Ints) -> bool:
        """Cut a choice away or make a plan of it; False where neither is possible any more."""
        if self.center is None and not self._find_center():
            return False
        if self.inwards and self._cut_inwards(x):
            return True
        at = x.astype(np.float64)
        response = self.shares.follow(at, self._left())
        if response is None:
            return False
        if response.price > _NOTHING and self._cut(response, at):
            self._offer(x + np.ceil(response.more - _NOTHING).astype(np.int64), response)
            return True
        if response.price <= _NOTHING and self._settle(x, response):
            return not self.apart  # with the bound where it was, no later choice is better than this one
        return self._keep_apart()

    def _cut_inwards(self, x: Ints) -> bool:
        """Cut a choice away from a point between it and the center; where that fails, the next point is nearer to it."""
        point = self.inwards * (x if self.center is None else self.center) + (1 - self.inwards) * x
        response = self.shares.follow(point, self._left())
        if response is None:
            return False
        self._offer(np.ceil(point + response.more - _NOTHING).astype(np.int64), response)
        if self._cut(response, x.astype(np.float64)):
            return True
        self.inwards = self.inwards / 2 if self.inwards > _AT_THE_CHOICE else 0.0
        return False

    def _find_center(self) -> bool:
        """What the linear relaxation chooses from nothing, but for rows of the choice alone; False: no time for it."""
        x = self.lower.astype(np.float64)
        response = self.shares.follow(x, self._left())
        if response is None:
            return False
        self.center = np.minimum(x + response.more, self.upper)
        if self.best is None:
            self._offer(np.ceil(x + response.more - _NOTHING).astype(np.int64), response)
        self._cut(response, x)
        return True

    def _cut(self, response: Response, x: Floats) -> bool:
        """Add the cut of a response where a point misses it."""
        cut = self.shares.cut(response, x)
        if cut.missing(x) <= _NOTHING / 2:
            return False
        self.choices.add([cut])
        if not self.apart:
            self.proven_cuts = (*self.proven_cuts, cut)
        return True

    def _offer(self, x: Ints, response: Response) -> None:
        """Try a choice that should do, where it is much better than the plan at hand: each try takes time."""
        x = np.clip(x, self.lower, self.upper)
        values = self._chosen(x)
        if self.best is not None:
            value, bound = self._value(), self._bound()
            enough = value if bound is None else bound + _MUCH * (value - bound)
            if self.ask.goal.activity(values) >= enough:
                return
        if not all(row.holds(values) for row in self.parts.own):
            return
        # What was added is what the shares missed, so they follow the raised choice as they are.
        self._place(x, response)

    def _settle(self, x: Ints, response: Response) -> bool:
        """Put shares onto the grid: first such that leave some room for it, then those at hand."""
        self.shares.keep_apart(max(_APART, self.apart))
        roomy = self.shares.follow(x.astype(np.float64), self._left())
        self.shares.keep_apart(self.apart)
        return any(
            one is not None and one.price <= _NOTHING and self._place(x, one) for one in (roomy, response)
        )

    def _place(self, x: Ints, response: Response) -> bool:
        """Put the shares of a response onto the grid, and take the plan."""
        shares = np.array([column.lower / GRID for column in self.parts.shares])
        shares[self.known.following.free] = response.shares
        left = max(self._left(), 0.01)
        found = on_grid(self.parts, self.ask.program, self._chosen(x), shares, seconds=left)
        if found is None:
            return False
        self._take(found)
        return True

    def _keep_apart(self) -> bool:
        """Cut away what has shares, but none that were found on the grid: the bound is what it is by then."""
        self.apart = 2 * self.apart if self.apart else _APART
        self.shares.keep_apart(self.apart)
        return self.apart <= _FARTHEST

    def _take_hint(self) -> None:
        hint, columns = self.ask.hint, self.ask.program.columns
        if hint is None or any(column.key not in hint for column in columns):
            return
        values = {column.key: hint[column.key] for column in columns}
        if all(c.lower <= values[c.key] <= c.upper for c in columns) and not self.ask.program.broken(values):
            self._take(values)

    def _take(self, values: dict[Key, int]) -> None:
        value = self.ask.goal.activity(values)
        if self.best is None or value < self._value():
            self.best = values
            self.ask.report(value, self._bound())

    def _raise(self, bound: float) -> None:
        if bound > self.bound:
            self.bound = bound
            self.ask.report(None if self.best is None else self._value(), self._bound())

    def _value(self) -> int:
        return self.ask.goal.activity(self.best or {})

    def _bound(self) -> float | None:
        if self.bound == -inf:
            return None
        bound = self.bound * self.unit + self.ask.goal.constant
        return bound if self.best is None else min(bound, float(self._value()))

    def _chosen(self, x: Ints) -> dict[Key, int]:
        return {column.key: int(value) for column, value in zip(self.parts.chosen, x.tolist(), strict=True)}

    def _left(self) -> float:
        return self.end - self.clock.monotonic_s()

    def _over(self) -> bool:
        if self._left() <= 0 or self.ask.cancelled():
            return True
        bound = self._bound()
        if self.best is None or bound is None:
            return False
        return proves(self._value(), bound, self.ask.gap) or not self.ask.goal.terms

    def _outcome(self) -> Outcome:
        if self.best is None:
            return Outcome(Termination.TIMED_OUT, bound=self._bound())
        bound = self._bound() if self.ask.goal.terms else float(self.ask.goal.constant)
        return graded(self.ask, self.best, bound)
