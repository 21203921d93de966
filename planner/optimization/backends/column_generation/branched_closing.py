"""Closing the gap where blocks are no coverings: all near patterns of most blocks, and the largest ones as they are.

A plan cheaper than the Lagrangian bound plus θ has no pattern of reduced cost above θ (Baldacci, Christofides and Mingozzi
2008). Of most blocks those patterns are few and are listed. A block that has too many stands in the choice with its own
columns, those that reduced costs leave it, and with what every turn of pricing at prices π proved of it: cost − π·use >= bound.
Without those rows its linear relaxation would give away more than is to be closed. With θ as large as what is left between
plan and bound the best choice is optimal; with a smaller one the bound rises by θ, or to the best choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.branched_choice import ChoiceModel, Ending, WholeBlock
from planner.optimization.backends.column_generation.branched_listing import (
    NearListing,
    branched_near,
    ends_within,
)
from planner.optimization.backends.column_generation.closing import Closed
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxed, Told
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key
from planner.optimization.protocol import Cancelled, never

__all__ = ["BranchedClosing"]

Floats = NDArray[np.float64]

_MOST: Final = 400
"""Patterns of a block that are listed at most."""

_WHOLE: Final = 6
"""Blocks that stand there as they are, at most."""

_TURNS: Final = 40
"""Turns of pricing that are told of a block at most, the last ones."""

_FIRST: Final = 0.3
"""The first θ, as a share of the gap that is asked for."""

_SMALLEST: Final = 64.0
"""The first θ is this part of what is wanted at least."""

_GROWTH: Final = 2.0
_FARTHEST: Final = 0.01
"""Largest θ, as a share of the bound."""

_ABOVE: Final = 1e-9

_PART: Final = 0.5
"""Share of the time left that one choice may take."""


@dataclass(frozen=True)
class BranchedClosing:
    """All blocks of a program under one goal.

    Attributes:
        ready: the program.
        usage: its goal.
        master: rows that tie blocks, columns of no block, and patterns at hand.
        told: what pricing proved of blocks turn by turn.
        cancelled: whether whoever asked wants an end.
    """

    ready: Prepared
    usage: Usage
    master: Master
    told: Sequence[Told]
    cancelled: Cancelled = never

    @cached_property
    def _cost(self) -> Floats:
        """Of one step of each column."""
        return self.usage.cost_of(self.ready.branchings.steps)

    @cached_property
    def useful(self) -> bool:
        """Whether all blocks are of this kind, and more of a column never costs or uses less."""
        branchings = self.ready.branchings
        if (
            not self.told
            or len(branchings.blocks) < self.master.blocks
            or np.isfinite(self.ready.ties.lower).any()
        ):
            return False
        cost, use = self._cost, self.ready.branched_use.data
        return bool(cost.any() and (cost >= 0).all() and (use >= 0).all())

    def close(
        self,
        relaxed: Relaxed,
        value: float,
        *,
        gap: float,
        constant: float,
        seconds_left: Callable[[], float],
        report: Callable[[Mapping[Key, int] | None, float], None],
    ) -> Closed:
        """List and choose until the gap is closed, or time or room is up; as in :class:`Closing`.

        ``report`` hears of a better plan, or of none, and of the bound so far after every choice.
        """
        best: Mapping[Key, int] | None = None
        crowded: frozenset[int] = frozenset()
        start = bound = relaxed.bound
        theta = max(_FIRST * gap * abs(start), (value - start) / _SMALLEST if value < inf else 0.0)
        while self.useful and seconds_left() > 0 and not self.cancelled():
            enough = value - gap * abs(value + constant) + _ABOVE * abs(value) if value < inf else inf
            wanted = min(enough - start, _FARTHEST * abs(start))
            theta = min(theta, wanted)
            target = bound + gap * abs(bound + constant)
            near = self._near(relaxed, theta, crowded)
            crowded = frozenset(self.ready.branchings.numbers.tolist()) - near.complete
            if len(crowded) > _WHOLE or seconds_left() <= 0:
                break
            part = _PART if theta < wanted else 1.0
            ending = Ending(part * seconds_left(), value, target, start + theta, self.cancelled)
            found = self._turn(relaxed, near, theta, ending)
            bound = max(bound, min(found.bound, start + theta))
            better = found.values is not None and found.value < value and self.ready.keeps(found.values)
            if better:
                value, best = found.value, found.values
            report(found.values if better else None, bound)
            if theta >= wanted or (value < inf and bound >= value - gap * abs(value + constant)):
                break
            theta *= _GROWTH
        return Closed(best, bound)

    def _near(self, relaxed: Relaxed, theta: float, crowded: frozenset[int]) -> NearListing:
        """Patterns up to θ; of blocks that had too many up to a smaller one none are listed."""
        known, limits = self.master.patterns, (theta, _MOST)
        return branched_near(self.ready, self.usage, relaxed, known, limits=limits, without=crowded)

    def _turn(self, relaxed: Relaxed, near: NearListing, theta: float, ending: Ending) -> _Found:
        """The best choice among patterns up to θ."""
        real = [pattern for _, pattern in near.patterns if pattern.block in near.complete]
        shadows = [pattern for pattern in near.shadows if pattern.block in near.complete]
        wholes = self._wholes(relaxed, near.complete, theta)
        chosen = self._model([*real, *shadows], wholes).best(ending)
        bound = chosen.bound
        if chosen.found and not {id(p) for p in chosen.patterns}.isdisjoint(map(id, shadows)):
            missing = near.complete - {pattern.block for pattern in real}
            real += [pattern for pattern in self.master.patterns if pattern.block in missing]
            chosen = self._model(real, wholes).best(ending)
        if not chosen.found:
            return _Found(None, inf, bound)
        return _Found(chosen.values(self.ready.shape), chosen.value, bound)

    def _model(self, patterns: Sequence[Pattern], wholes: Sequence[WholeBlock]) -> ChoiceModel:
        model = ChoiceModel(self.master, _unbeaten(patterns))
        for whole in wholes:
            model.add_whole(whole)
        return model

    def _wholes(self, relaxed: Relaxed, listed: frozenset[int], theta: float) -> list[WholeBlock]:
        """The blocks that are not listed, with the columns that patterns up to θ may have."""
        branchings, known = self.ready.branchings, self.master.patterns
        which = [at for at, (number, _) in enumerate(branchings.blocks) if number not in listed]
        ends = (
            ends_within(self.ready, self.usage, relaxed, known, blocks=which, within=theta) if which else []
        )
        found = list[WholeBlock]()
        for at, most in zip(which, ends, strict=True):
            span = slice(int(branchings.flat.columns[at]), int(branchings.flat.columns[at + 1]))
            told = [(one.prices, float(one.each[at])) for one in self.told[-_TURNS:]]
            use = np.asarray(self.ready.branched_use[span].toarray())
            found.append(WholeBlock(branchings.blocks[at][1], most, self._cost[span], use, told))
        return found


@dataclass(frozen=True, slots=True)
class _Found:
    values: Mapping[Key, int] | None
    value: float
    bound: float


def _unbeaten(patterns: Sequence[Pattern]) -> list[Pattern]:
    """Patterns of which no cheaper one of the same block uses as little of everything."""
    by_block: dict[int, list[Pattern]] = {}
    for pattern in patterns:
        by_block.setdefault(pattern.block, []).append(pattern)
    found = list[Pattern]()
    for group in by_block.values():
        group.sort(key=lambda pattern: pattern.cost)
        use = np.array([pattern.use for pattern in group])
        beaten = np.zeros(len(group), dtype=bool)
        for rival in range(len(group)):
            if not beaten[rival]:
                beaten[rival + 1 :] |= (use[rival + 1 :] >= use[rival]).all(axis=1)
                found.append(group[rival])
    return found
