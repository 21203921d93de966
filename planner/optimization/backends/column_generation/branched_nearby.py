"""Near-optimal patterns of blocks of any rows, compiled: what a fleet's choice is made among where blocks are no coverings.

The tree of branch and cut with another end: where a vertex of the relaxation is whole, it is kept, and what is left of its
box is split into boxes that hold fewer of one of its columns each. A box in which every point has at least as many of
everything as a pattern that is kept is left out: that pattern costs and uses no more.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.branched import Flat, flat, spread
from planner.optimization.backends.column_generation.branching import guide, narrowed
from planner.optimization.backends.column_generation.dictionary import (
    INFEASIBLE,
    OPTIMAL,
    Dictionary,
    new_dictionary,
    rebuild,
    reoptimize,
    safe_bound,
)
from planner.optimization.backends.column_generation.narrowing import hold, narrow
from planner.optimization.backends.column_generation.routed import drop_dear
from planner.optimization.backends.column_generation.settling import Exact, settle
from planner.optimization.backends.column_generation.tree_search import (
    Relaxed,
    fractional,
    settle_leaf,
    tighten,
    value_of,
)
from planner.optimization.program import Column, Row

__all__ = ["NearPatterns", "compile_branched_nearby", "near_patterns"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_DEEPEST: Final = 600
_REBUILT: Final = 60
_BUMPS: Final = 2


class NearPatterns(NamedTuple):
    """Patterns in compressed rows.

    Attributes:
        blocks: number of the block of each.
        above: what each costs above the least known cost of its block.
        starts: columns of pattern p are ``starts[p]:starts[p + 1]``.
        columns: those that are not 0, counted through all blocks.
        counts: their values.
        real: whether shares of the pattern are on the grid; where they are not it only stands for what costs more.
        complete: by block that was asked for, whether every pattern that is near enough has at least as many of everything
            as one of these.
    """

    blocks: Ints
    above: Floats
    starts: Ints
    columns: Ints
    counts: Ints
    real: Bools
    complete: Bools


class _Kept(NamedTuple):
    """Patterns of one block, and whole vertices that were seen.

    Attributes:
        found: patterns and vertices so far.
        x: patterns x columns.
        values: what patterns cost.
        seen: vertices x columns.
        real: by vertex, whether a pattern with just as many of everything is kept.
    """

    found: Ints
    x: Ints
    values: Floats
    seen: Floats
    real: Bools


class _Boxes(NamedTuple):
    """Open boxes, last in first out."""

    lows: Floats
    highs: Floats
    bounds: Floats


@njit(cache=True, nogil=True)
def _is_covered(kept: _Kept, low: Floats, whole: Bools) -> bool:
    """Whether all of a box has as many of everything as a vertex that was seen."""
    for p in range(kept.found[1]):
        covered = True
        for j in range(low.shape[0]):
            if whole[j] and kept.seen[p, j] > low[j] + 1e-6:
                covered = False
                break
        if covered:
            return True
    return False


@njit(cache=True, nogil=True)
def _keep(kept: _Kept, x: Ints, value: float) -> bool:
    """Take in a pattern; False where one had to make room for another, the dearer one."""
    for p in range(kept.found[0]):
        if (kept.x[p] == x).all():
            return True
    slot = kept.found[0]
    roomy = bool(slot < kept.x.shape[0])
    if roomy:
        kept.found[0] += 1
    else:
        slot = np.argmax(kept.values)
    if value < kept.values[slot]:
        kept.x[slot], kept.values[slot] = x, value
    return roomy


@njit(cache=True, nogil=True)
def _split(boxes: _Boxes, top: int, lp: Dictionary, whole: Bools, bound: float) -> int:
    """The box around a whole vertex as boxes with fewer of one of its columns each; how many boxes are open now."""
    n = whole.shape[0]
    low, high = lp.lower[:n].copy(), lp.upper[:n].copy()
    for j in range(n):
        at = np.rint(lp.x[j])
        if whole[j] and at > low[j] and top < boxes.bounds.shape[0]:
            boxes.lows[top], boxes.highs[top], boxes.bounds[top] = low, high, bound
            boxes.highs[top, j] = at - 1.0
            top += 1
            low[j] = at
    return top


@njit(cache=True, nogil=True)
def _halve(boxes: _Boxes, top: int, lp: Dictionary, j: int, bound: float) -> int:
    """Both sides of a fractional column; how many boxes are open now."""
    n = boxes.lows.shape[1]
    down = np.floor(lp.x[j])
    for side in range(2):
        boxes.lows[top], boxes.highs[top], boxes.bounds[top] = lp.lower[:n], lp.upper[:n], bound
        if side == 0:
            boxes.highs[top, j] = down
        else:
            boxes.lows[top, j] = down + 1.0
        if boxes.lows[top, j] <= boxes.highs[top, j]:
            top += 1
    return top


@njit(cache=True, nogil=True)
def _take(block: Relaxed, exact: Exact, lp: Dictionary, cost: Floats, kept: _Kept) -> tuple[float, bool]:
    """Keep the pattern of a whole vertex, and the vertex: what the pattern costs (infinite: none), whether there was room."""
    n = cost.shape[0]
    x, vertex = np.zeros(n, dtype=np.int64), lp.x[:n].copy()
    step = cost / block.grid
    as_it_is = settle_leaf(block, exact, lp, block.a.shape[0], step, x)
    done = as_it_is or settle(exact, vertex, block.grid, step, x, _BUMPS)
    lp.x[:n] = vertex
    roomy = bool(kept.found[1] < kept.seen.shape[0])
    if roomy:
        kept.seen[kept.found[1]], kept.real[kept.found[1]] = vertex, as_it_is
        kept.found[1] += 1
    if not done:
        return np.inf, roomy
    value = value_of(cost, block.grid, x)
    return value, _keep(kept, x, value) and roomy


@njit(cache=True, nogil=True)
def _list(  # noqa: PLR0915 - compiled: one loop is one search
    block: Relaxed, exact: Exact, costs: tuple[Floats, Floats], kept: _Kept, limits: tuple[float, float, int]
) -> bool:
    """Fill ``kept``; whether nothing is left out.

    ``limits`` are the least cost so far, how far above it a pattern may be, and the boxes looked at.
    """
    (cost, asked), (least, within, most) = costs, limits
    (m, n), whole = block.a.shape, block.whole
    lp = new_dictionary(n, m)
    lp.lower[:], lp.upper[:], lp.asked[:] = block.lower, block.upper, asked
    slack_basis = np.zeros(n + m, dtype=np.bool_)
    slack_basis[n:] = True
    rebuild(lp, block.a, slack_basis)
    boxes = _Boxes(np.zeros((_DEEPEST, n)), np.zeros((_DEEPEST, n)), np.full(_DEEPEST, -np.inf))
    boxes.lows[0], boxes.highs[0] = block.lower[:n], block.upper[:n]
    alike = not np.any(cost[~whole] != 0.0)
    complete = alike
    top, visited = 1, 0
    while top > 0:
        top -= 1
        limit = least + within
        if not complete and kept.found[0] == kept.x.shape[0]:
            limit = min(limit, kept.values.max())
        if boxes.bounds[top] >= limit or (alike and _is_covered(kept, boxes.lows[top], whole)):
            continue
        if visited >= most or top + n + 2 >= _DEEPEST:
            return False
        visited += 1
        if visited % _REBUILT == 0:
            rebuild(lp, block.a, slack_basis)
        lp.lower[:n], lp.upper[:n] = boxes.lows[top], boxes.highs[top]
        status = reoptimize(lp, block.a, limit)
        if status == INFEASIBLE:
            continue
        bound = max(boxes.bounds[top], safe_bound(lp, block.a, cost))
        if status != OPTIMAL or bound >= limit:
            complete = complete and bound >= limit
            continue
        tighten(lp, whole, limit - bound)
        j = fractional(lp.x, whole, cost)
        if j >= 0:
            top = _halve(boxes, top, lp, j, bound)
        else:
            value, roomy = _take(block, exact, lp, cost, kept)
            least, complete = min(least, value), complete and roomy
            top = _split(boxes, top, lp, whole, bound)
    return complete


@njit(cache=True, nogil=True)
def _of_block(  # noqa: PLR0915 - compiled: arrays are filled one by one
    s: int, blocks: Flat, cost: Floats, least: float, limits: tuple[float, int, int]
) -> tuple[Ints, Bools, bool]:
    """Patterns of one block and vertices that are none; which of them are real, and whether nothing is left out."""
    within, most, nodes = limits
    c0 = blocks.columns[s]
    n, m = cost.shape[0], blocks.rows[s + 1] - blocks.rows[s]
    exact, relaxed = spread(s, blocks, 0)
    of_units = cost * relaxed.grid
    lower, upper = relaxed.lower[:n], relaxed.upper[:n]
    if blocks.routed.able[s] and least < np.inf:
        drop_dear((s, c0), blocks.routed, of_units, (lower, upper), (least + within, False))
    left = narrow(exact, relaxed.a[:m], lower, upper)
    fixed = left.fixed.copy()
    fixed[left.columns] = 0
    k = left.columns.shape[0]
    kept = _Kept(
        np.zeros(2, dtype=np.int64),
        np.zeros((most, k), dtype=np.int64),
        np.full(most, np.inf),
        np.zeros((2 * most, k)),
        np.zeros(2 * most, dtype=np.bool_),
    )
    own, asked = of_units[left.columns], np.zeros(k)
    small = narrowed(relaxed, left)
    guide(small, own, asked)
    start = (least - value_of(of_units, relaxed.grid, fixed), within, nodes)
    complete = _list(small, left.exact, (own, asked), kept, start)
    patterns, vertices = kept.found[0], kept.found[1]
    x = np.zeros((patterns + vertices, n), dtype=np.int64)
    real = np.zeros(patterns + vertices, dtype=np.bool_)
    count = 0
    for p in range(patterns):
        x[count] = fixed
        x[count][left.columns] = kept.x[p]
        if hold(exact, x[count]):
            real[count] = True
            count += 1
    for v in range(vertices):
        if not kept.real[v]:
            x[count] = fixed
            x[count][left.columns] = np.where(small.whole, np.rint(kept.seen[v]), 0.0).astype(np.int64)
            count += 1
    return x[:count], real[:count], complete


@njit(cache=True, nogil=True)
def near_patterns(
    which: Ints, blocks: Flat, cost: Floats, least: Floats, limits: tuple[float, int, int]
) -> NearPatterns:
    """So many of the cheapest patterns of some blocks.

    Args:
        which: numbers of blocks.
        blocks: all blocks.
        cost: of one step of every column.
        least: what the cheapest known pattern of each block costs; infinite: none is known.
        limits: how far above the cheapest one a pattern may be, patterns of a block, and boxes of the search in one block.
    """
    owner, above, starts, columns, counts, all_real = [0], [0.0], [0], [0], [0], [True]
    complete = np.zeros(which.shape[0], dtype=np.bool_)
    for turn in range(which.shape[0]):
        s = int(which[turn])
        c0, c1 = blocks.columns[s], blocks.columns[s + 1]
        x, real, complete[turn] = _of_block(s, blocks, cost[c0:c1], least[s], limits)
        values = np.array([(cost[c0:c1] * x[p]).sum() for p in range(x.shape[0])])
        cheapest = least[s]
        for p in range(x.shape[0]):
            cheapest = min(cheapest, values[p] if real[p] else np.inf)
        for near in np.flatnonzero(values <= cheapest + limits[0]):
            for j in np.flatnonzero(x[near]):
                columns.append(c0 + j)
                counts.append(x[near, j])
            owner.append(s)
            above.append(values[near] - cheapest)
            starts.append(len(columns) - 1)
            all_real.append(real[near])
    return NearPatterns(
        np.array(owner)[1:],
        np.array(above)[1:],
        np.array(starts),
        np.array(columns)[1:],
        np.array(counts)[1:],
        np.array(all_real)[1:],
        complete,
    )


@cache
def compile_branched_nearby() -> None:
    """Compile (half a minute, once per machine) or load the kernel, so that no solve pays for it."""
    one = Column(("n", "one"), 0, 2)
    blocks = flat([Block([one], [Row(("rate",), {one.key: 2}, lower=1)])])
    near_patterns(np.zeros(1, dtype=np.int64), blocks, np.ones(1), np.full(1, np.inf), (1.0, 2, 4))
