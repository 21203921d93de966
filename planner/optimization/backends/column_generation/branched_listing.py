"""Patterns near a relaxation of the blocks that are no coverings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from planner.optimization.backends.column_generation.branched import Flat
from planner.optimization.backends.column_generation.branched_nearby import NearPatterns, near_patterns
from planner.optimization.backends.column_generation.branched_pricing import Branchings, in_parts
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.column_generation.routed import drop_dear
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key
from planner.optimization.scaling import GRID

__all__ = ["NEAR", "NearListing", "branched_near", "ends_within"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAR: Final = 48
"""Patterns of a block that are enough where not all are wanted."""

_BOXES: Final = 200_000
_FEWEST_BOXES: Final = 60
_MOST_BOXES: Final = 3_000
"""Boxes of all blocks together, and of one block at least and at most."""


@dataclass(frozen=True, slots=True)
class NearListing:
    """What is near a relaxation.

    Attributes:
        patterns: with what each costs above the cheapest one of its block.
        shadows: whole values whose shares are not on the grid: each stands for patterns that cost and use more.
        complete: blocks of which every pattern that is near enough costs and uses as much as one of these at least.
    """

    patterns: list[tuple[float, Pattern]]
    shadows: list[Pattern]
    complete: frozenset[int]


def branched_near(
    ready: Prepared,
    usage: Usage,
    relaxed: Relaxed,
    known: Sequence[Pattern],
    *,
    limits: tuple[float, int],
    without: frozenset[int] = frozenset(),
) -> NearListing:
    """The cheapest patterns of each block at the prices of a relaxation.

    Args:
        ready: the program.
        usage: its goal.
        relaxed: with its prices.
        known: patterns at hand.
        limits: how far above the cheapest one a pattern may be, and patterns of a block.
        without: blocks that are left out.
    """
    (within, most), branchings = limits, ready.branchings
    which = np.flatnonzero(~np.isin(branchings.numbers, list(without)))
    n = len(which)
    if not n:
        return NearListing([], [], frozenset())
    cost = usage.cost_of(branchings.steps)
    weights = cost - ready.branched_use @ relaxed.prices
    least = _least(branchings, relaxed.prices, known)
    boxes = min(max(_BOXES // n, _FEWEST_BOXES), _MOST_BOXES) * most // NEAR

    def work(part: Ints) -> tuple[Ints, NearPatterns]:
        part = which[part]
        return part, near_patterns(part, branchings.flat, weights, least, (within, most, boxes))

    patterns, shadows, complete = list[tuple[float, Pattern]](), list[Pattern](), set[int]()
    for part, found in in_parts(n, work):
        complete.update(branchings.numbers[part[found.complete]].tolist())
        made = zip(_patterns(ready, cost, found), found.real.tolist(), strict=True)
        for one, real in made:
            if real:
                patterns.append(one)
            else:
                shadows.append(one[1])
    return NearListing(patterns, shadows, frozenset(complete))


def ends_within(
    ready: Prepared,
    usage: Usage,
    relaxed: Relaxed,
    known: Sequence[Pattern],
    *,
    blocks: Sequence[int],
    within: float,
) -> list[Floats]:
    """Upper ends of the columns of blocks, lowered to what patterns may have that cost so much above the cheapest one.

    Args:
        ready: the program.
        usage: its goal.
        relaxed: with its prices.
        known: patterns at hand.
        blocks: their numbers among those of branch and cut.
        within: how far above the cheapest one of its block a pattern may be.
    """
    branchings = ready.branchings
    weights = usage.cost_of(branchings.steps) - ready.branched_use @ relaxed.prices
    limits = _least(branchings, relaxed.prices, known) + within
    return [_ends_below(branchings.flat, at, weights, float(limits[at])) for at in blocks]


def _ends_below(blocks: Flat, at: int, weights: Floats, limit: float) -> Floats:
    """Upper ends of the columns of a block whose patterns may cost less than a limit; inf: no pattern is known."""
    span = slice(int(blocks.columns[at]), int(blocks.columns[at + 1]))
    grid = np.where(blocks.whole[span], 1.0, float(GRID))
    lower, upper = blocks.least[span] / grid, blocks.most[span] / grid
    if blocks.routed.able[at] and limit < np.inf:
        drop_dear((at, span.start), blocks.routed, weights[span] * grid, (lower, upper), (limit, False))
        host = blocks.routed.host[span]
        upper[(host >= 0) & (upper[host] <= 0)] = 0.0
    return np.rint(upper * grid)


def _least(branchings: Branchings, prices: Floats, known: Sequence[Pattern]) -> Floats:
    """By block what the cheapest pattern at hand costs at these prices."""
    place = np.full(int(branchings.numbers.max()) + 1, -1, dtype=np.int64)
    place[branchings.numbers] = np.arange(len(branchings.numbers))
    ours = [p for p in known if p.block < len(place) and place[p.block] >= 0]
    found = np.full(len(branchings.numbers), np.inf)
    if ours:
        reduced = np.array([p.cost for p in ours]) - np.array([p.use for p in ours]) @ prices
        np.minimum.at(found, place[np.array([p.block for p in ours])], reduced)
    return found


def _patterns(ready: Prepared, cost: Floats, found: NearPatterns) -> list[tuple[float, Pattern]]:
    branchings = ready.branchings
    taken = csr_array(
        (found.counts.astype(np.float64), found.columns, found.starts),
        shape=(len(found.blocks), len(branchings.keys)),
    )
    costs = (taken @ cost).tolist()
    uses = np.asarray((taken @ ready.branched_use).toarray())
    numbers = branchings.numbers[found.blocks].tolist()
    return [
        (above, Pattern(number, costs[p], uses[p], partial(_decoded, branchings, found, p)))
        for p, (above, number) in enumerate(zip(found.above.tolist(), numbers, strict=True))
    ]


def _decoded(branchings: Branchings, found: NearPatterns, p: int) -> Mapping[Key, int]:
    s = int(found.blocks[p])
    values = dict.fromkeys((column.key for column in branchings.blocks[s][1].columns), 0)
    span = slice(int(found.starts[p]), int(found.starts[p + 1]))
    pairs = zip(found.columns[span].tolist(), found.counts[span].tolist(), strict=True)
    values.update((branchings.keys[column], count) for column, count in pairs)
    return values
