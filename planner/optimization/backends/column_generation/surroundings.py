"""A choice among all that is near the relaxation: patterns of small reduced cost, and large blocks as they are.

A plan costs the Lagrangian bound plus the reduced costs of its patterns. So a plan within the gap is made of patterns
whose reduced costs are small, and for a fleet all of those can be listed in no time. A block of very many replicas has
too many to list; it stands in the choice whole, where its linear relaxation is tight anyhow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.branched_listing import NEAR, branched_near
from planner.optimization.backends.column_generation.covering import Weights
from planner.optimization.backends.column_generation.coverings import Coverings
from planner.optimization.backends.column_generation.finish import NOBODY, Choice, Ending, Whole, choose
from planner.optimization.backends.column_generation.items import CoveringBlock
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.nearby import nearby
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.column_generation.sifting import reduced_costs
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.highs import Listener
from planner.optimization.program import Key

__all__ = ["Nearby", "Surroundings", "surroundings"]

Floats = NDArray[np.float64]

_DISTANCES: Final = (2.0, 8.0)
"""Largest reduced costs of the patterns of a choice, in units of what each block may cost more than its part of the bound."""

_MOST_GAP: Final = 1e-2
"""Gap that this is measured by at most: it would be too many patterns."""

_LARGE: Final = 60
"""Replicas from which a block stands whole."""

_MOST: Final = 64
_NODES: Final = 3_000
"""Patterns of a block, and nodes of the search for them."""

_SUPPORT: Final = 1e-9


@dataclass(frozen=True)
class Surroundings:
    """All blocks that are coverings, as arrays; rows that limit replicas are rows of negative coverage.

    Attributes:
        blocks: of the program.
        coverings: those that are.
    """

    blocks: tuple[Block, ...]
    coverings: Coverings

    def aged(self) -> Surroundings:
        """Blocks that are the very same are good for the next descent too."""
        return self


def surroundings(ready: Prepared, before: Surroundings | None) -> Surroundings:
    """The blocks of a program as arrays; what is the same as before is taken over."""
    blocks = ready.shape.blocks
    if before is not None and len(before.blocks) == len(blocks):
        if all(new is old for new, old in zip(blocks, before.blocks, strict=True)):
            return before
        known = {
            number: form
            for number, form in before.coverings.blocks
            if blocks[number] is before.blocks[number]
        }
    else:
        known = {}
    forms = [
        (number, known.get(number) or _with_limits(form))
        for number, form in enumerate(ready.listable)
        if form is not None
    ]
    return Surroundings(blocks, Coverings(forms, ready.ties.position))


def _with_limits(form: CoveringBlock) -> CoveringBlock:
    """The form with its limits among its rows: use <= most is −use >= −most."""
    if not form.limits:
        return form
    limits = [({at: -value for at, value in use.items()}, -most) for use, most in form.limits]
    return replace(
        form, rows=[*form.rows, *limits], filler_rows=[*form.filler_rows, *(0 for _ in limits)], limits=[]
    )


class Nearby:
    """Patterns near a relaxation, listed once.

    Args:
        around: blocks of the program.
        ready: the program.
        usage: its goal.
        master: rows, columns of no block, and the patterns at hand.
        relaxed: with its prices and its linear program.
        gap: relative gap that is asked for.
    """

    def __init__(
        self,
        around: Surroundings,
        ready: Prepared,
        usage: Usage,
        master: Master,
        relaxed: Relaxed,
        *,
        gap: float,
    ) -> None:
        self._blocks = ready.shape.blocks
        self._usage = usage
        self._master = master
        self._bound = relaxed.bound
        # The fewer blocks, the larger the gap that is left when each of them is rounded.
        blocks = max(len(self._blocks), 1)
        self._each = min(max(gap, 1 / blocks), _MOST_GAP) * abs(relaxed.bound) / blocks
        listed = _Listed(around.coverings, ready, usage, relaxed.prices, _DISTANCES[-1] * self._each)
        self._whole = [listed.numbers[at] for at in np.flatnonzero(listed.replicas > _LARGE)]
        every = [*listed.patterns(), *_at_hand(master, relaxed, frozenset(listed.numbers))]
        limits = _DISTANCES[-1] * self._each, NEAR
        near = branched_near(ready, usage, relaxed, master.patterns, limits=limits)
        every += near.patterns
        whole = frozenset(self._whole)
        self._patterns = [(above, pattern) for above, pattern in every if pattern.block not in whole]

    def nearest(self, most: int) -> list[Pattern]:
        """So many of the patterns of least reduced cost; none of blocks that stand whole."""
        near = self._patterns
        if len(near) > most:
            above = np.fromiter((distance for distance, _ in near), dtype=np.float64, count=len(near))
            near = [near[at] for at in np.argpartition(above, most)[:most].tolist()]
        return [pattern for _, pattern in near]

    def choices(
        self, *, gap: float, seconds_left: Callable[[], float], listener: Listener = NOBODY
    ) -> Iterator[Choice]:
        """Choices among ever more patterns.

        Args:
            gap: relative gap to the bound of the relaxation that is good enough.
            seconds_left: wall time that is left.
            listener: hears of better choices on the way.
        """
        for turn, distance in enumerate(_DISTANCES):
            part = 1 / (len(_DISTANCES) - turn)
            yield choose(
                self._master,
                [pattern for above, pattern in self._patterns if above <= distance * self._each],
                ending=Ending(part * max(seconds_left(), 0.0), gap / 4, self._bound + gap * abs(self._bound)),
                whole=Whole([self._blocks[number] for number in self._whole], self._usage),
                listener=listener,
            )


def _at_hand(master: Master, relaxed: Relaxed, listed: frozenset[int]) -> list[tuple[float, Pattern]]:
    """What the linear program takes some of, and all patterns of blocks that cannot be listed, with their reduced costs."""
    answer, patterns = relaxed.answer, master.patterns
    if answer is None or not patterns:
        return []
    reduced = reduced_costs(master, answer)
    weights = np.zeros(len(patterns))
    weights[: len(answer.weights)] = answer.weights[: len(patterns)]
    return [
        (0.0 if weight > _SUPPORT else max(above, 0.0), pattern)
        for pattern, weight, above in zip(patterns, weights.tolist(), reduced.tolist(), strict=True)
        if weight > _SUPPORT or pattern.block not in listed
    ]


class _Listed:
    """Patterns of the covering blocks near the cheapest at given prices."""

    def __init__(
        self, coverings: Coverings, ready: Prepared, usage: Usage, prices: Floats, within: float
    ) -> None:
        self._coverings = coverings
        self._within = within
        self.numbers: list[int] = coverings.numbers.tolist()
        use = coverings.use(ready.ties)
        cost, filler_cost = usage.cost_of(coverings.steps), usage.cost_of(coverings.fillers)
        weights = Weights(
            np.maximum(cost - use.items @ prices, 0.0), np.maximum(filler_cost - use.fillers @ prices, 0.0)
        )
        n = len(self.numbers)
        near = self._near = nearby(coverings.arrays, weights, within, _MOST, _NODES)
        owner = self._owner = np.repeat(np.arange(n), near.sizes)
        taken = csr_array(
            (near.counts.astype(np.float64), near.items, near.starts), shape=(len(owner), len(cost))
        )
        self.replicas = np.zeros(n)
        np.maximum.at(self.replicas, owner, np.asarray(taken.sum(axis=1)).ravel())
        self._cost = usage.cost_of(coverings.bases)[owner] + taken @ cost + near.fillers * filler_cost[owner]
        fillers = csr_array(use.fillers)[owner].multiply(near.fillers[:, None])
        self._use = use.bases[owner] + np.asarray((taken @ use.items + csr_array(fillers)).toarray())
        value = taken @ weights.w + near.fillers * weights.wf[owner]
        least = np.full(n, np.inf)
        np.minimum.at(least, owner, value)
        self._above = value - least[owner]

    def patterns(self) -> list[tuple[float, Pattern]]:
        """All that are near enough, with what each costs above the cheapest one of its block."""
        return [
            (
                float(self._above[at]),
                Pattern(
                    self.numbers[self._owner[at]],
                    float(self._cost[at]),
                    self._use[at],
                    partial(self._decoded, at),
                ),
            )
            for at in np.flatnonzero(self._above <= self._within).tolist()
        ]

    def _decoded(self, at: int) -> Mapping[Key, int]:
        near, s = self._near, int(self._owner[at])
        first = int(self._coverings.starts[s])
        span = slice(near.starts[at], near.starts[at + 1])
        pairs = zip((near.items[span] - first).tolist(), near.counts[span].tolist(), strict=True)
        return self._coverings.blocks[s][1].values(pairs, int(near.fillers[at]))
