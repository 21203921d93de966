"""Near-optimal coverings of many blocks at once, compiled: what a fleet's choice is made among.

The search of ``covering`` with another end: not the cheapest covering, but so many of the cheapest ones, all within some
distance of the cheapest. No item is left out for one that is as good at these prices: it may use another pool.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.covering import Blocks, Weights

__all__ = ["Near", "compile_nearby", "nearby"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Near(NamedTuple):
    """Coverings in compressed rows.

    Attributes:
        sizes: how many of each block.
        starts: items of covering p are ``starts[p]:starts[p + 1]``.
        items: numbers of items.
        counts: how many of each.
        fillers: filler steps of each covering.
    """

    sizes: Ints
    starts: Ints
    items: Ints
    counts: Ints
    fillers: Floats


@njit(cache=True, nogil=True)
def _ratios(blocks: Blocks, weights: Weights, s: int, main: int) -> Floats:
    """Cost per coverage of the main row, by item; infinite where an item does not help."""
    lo, hi = blocks.starts[s], blocks.starts[s + 1]
    ratio = np.full(hi - lo, np.inf)
    for j in range(lo, hi):
        if blocks.u[j] > 0 and blocks.a[main, j] > 0.0:
            ratio[j - lo] = weights.w[j] / blocks.a[main, j]
    return ratio


@njit(cache=True, nogil=True)
def _helps(blocks: Blocks, s: int, j: int) -> bool:
    """Whether an item covers something that is owed."""
    first = blocks.row_starts[s]
    for r in range(blocks.row_starts[s + 1] - first):
        if blocks.u[j] > 0 and blocks.a[r, j] > 0.0 and blocks.b[first + r] > 0.0:
            return True
    return False


@njit(cache=True, nogil=True)
def _main_row(blocks: Blocks, weights: Weights, s: int) -> int:
    """The row that costs most to cover; -1 where nothing is owed."""
    main, most = -1, 0.0
    first = blocks.row_starts[s]
    for r in range(blocks.row_starts[s + 1] - first):
        if blocks.b[first + r] > 0.0:
            cost = _ratios(blocks, weights, s, r).min() * blocks.b[first + r]
            if main < 0 or cost > most:
                main, most = r, cost
    return main


@njit(cache=True, nogil=True)
def _filled(blocks: Blocks, s: int, left: Floats) -> float:
    """Fewest filler steps that cover the rest; infinite where they cannot."""
    steps = 0.0
    first = blocks.row_starts[s]
    for r in range(left.shape[0]):
        if left[r] > 0.0:
            if blocks.af[first + r] <= 0.0:
                return np.inf
            steps = max(steps, np.ceil(left[r] / blocks.af[first + r] - 1e-12))
    return steps if steps <= blocks.uf[s] else np.inf


@njit(cache=True, nogil=True)
def _wanted(blocks: Blocks, j: int, left: Floats) -> int:
    """The most of an item that still covers something and breaks nothing."""
    most = 0.0
    for r in range(left.shape[0]):
        if left[r] > 0.0 and blocks.a[r, j] > 0.0:
            most = max(most, np.ceil(left[r] / blocks.a[r, j] - 1e-12))
    for r in range(left.shape[0]):
        if blocks.a[r, j] < 0.0:
            most = min(most, np.floor(left[r] / blocks.a[r, j] + 1e-12))
    return int(min(blocks.u[j], np.int64(max(most, 0.0))))


@njit(cache=True, nogil=True)
def _useful(blocks: Blocks, s: int, ratio: Floats) -> Ints:
    """The candidates of a block that help to cover, the cheapest per unit first."""
    order = np.argsort(ratio, kind="mergesort")
    usable = 0
    for place in range(order.shape[0]):
        if _helps(blocks, s, blocks.starts[s] + order[place]):
            order[usable] = order[place]
            usable += 1
    return order[:usable]


@njit(cache=True, nogil=True)
def _keep(kept: Ints, order: Ints, x: Ints, steps: int) -> None:
    """Write one covering into its row."""
    kept[:] = 0
    for d in range(x.shape[0]):
        kept[order[d]] = x[d]
    kept[-1] = steps


@njit(cache=True, nogil=True)
def _search(  # noqa: PLR0915 - compiled: one loop is one search
    blocks: Blocks, weights: Weights, s: int, limits: tuple[int, float, int], kept: Ints, values: Floats
) -> int:
    """The cheapest coverings of one block into rows of ``kept`` (the last column is the filler); how many there are."""
    most, within, nodes = limits
    lo = blocks.starts[s]
    first, rows = blocks.row_starts[s], blocks.row_starts[s + 1] - blocks.row_starts[s]
    main = _main_row(blocks, weights, s)
    if main < 0:
        kept[0] = 0
        return 1
    ratio = _ratios(blocks, weights, s, main)
    order = _useful(blocks, s, ratio)
    usable = order.shape[0]
    filler = weights.wf[s] / blocks.af[first + main] if blocks.af[first + main] > 0.0 else np.inf
    left, cost = np.zeros((usable + 1, rows)), np.zeros(usable + 1)
    x = np.zeros(usable + 1, dtype=np.int64)
    left[0] = blocks.b[first : first + rows]
    found, worst, least, visited, depth, entering = 0, np.inf, np.inf, 0, 0, True
    while depth >= 0:
        if entering:
            visited += 1
            if depth == 0 or x[depth - 1] > 0:
                steps = _filled(blocks, s, left[depth])
                value = cost[depth] + weights.wf[s] * steps if steps < np.inf else np.inf
                if value < worst and value <= least + within:
                    least = min(least, value)
                    slot = found if found < most else int(np.argmax(values[:found]))
                    found = max(found, slot + 1)
                    _keep(kept[slot], order, x[:depth], int(steps))
                    values[slot] = value
                    if found == most:
                        worst = values[:found].max()
            rate = min(ratio[order[depth]] if depth < usable else np.inf, filler)
            extra = left[depth, main] * rate if left[depth, main] > 0.0 else 0.0
            hopeless = cost[depth] + extra >= min(worst, least + within + 1e-9)
            if depth == usable or hopeless or not np.any(left[depth] > 0.0):
                depth -= 1
                entering = False
                continue
            x[depth] = _wanted(blocks, lo + order[depth], left[depth])
        else:
            if x[depth] == 0 or visited > nodes:
                depth -= 1
                continue
            x[depth] -= 1
        j = lo + order[depth]
        for r in range(rows):
            left[depth + 1, r] = left[depth, r] - blocks.a[r, j] * x[depth]
        cost[depth + 1] = cost[depth] + weights.w[j] * x[depth]
        depth += 1
        entering = True
    return found


@njit(cache=True, nogil=True)
def nearby(blocks: Blocks, weights: Weights, within: float, most: int, nodes: int) -> Near:
    """So many of the cheapest coverings of each block.

    Args:
        blocks: what is to be covered; a row that only limits has negative coverage.
        weights: reduced costs, none negative.
        within: how far above the cheapest one a covering may be.
        most: coverings of a block.
        nodes: of the search in one block.
    """
    n = blocks.starts.shape[0] - 1
    sizes, starts = np.zeros(n, dtype=np.int64), [0]
    items, counts, fillers = [0], [0], [0.0]
    for s in range(n):
        lo, hi = blocks.starts[s], blocks.starts[s + 1]
        kept, values = np.zeros((most, hi - lo + 1), dtype=np.int64), np.full(most, np.inf)
        found = _search(blocks, weights, s, (most, within, nodes), kept, values)
        for p in range(found):
            for j in range(hi - lo):
                if kept[p, j] > 0:
                    items.append(lo + j)
                    counts.append(kept[p, j])
            starts.append(len(items) - 1)
            fillers.append(float(kept[p, hi - lo]))
        sizes[s] = found
    return Near(sizes, np.array(starts), np.array(items)[1:], np.array(counts)[1:], np.array(fillers)[1:])


@cache
def compile_nearby() -> None:
    """Compile (some seconds, once per machine) or load the kernel, so that no solve pays for it."""
    one, starts = np.ones(1), np.array([0, 1], dtype=np.int64)
    blocks = Blocks(starts, starts, np.ones((1, 1)), np.ones(1, dtype=np.int64), one, one, one)
    nearby(blocks, Weights(one, one), 1.0, 2, 4)
