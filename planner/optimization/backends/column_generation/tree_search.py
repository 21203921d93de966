"""The tree of branch and cut, compiled: depth first, on whole columns, and on shares where the grid forbids a choice.

One dictionary serves the whole tree: the dual simplex goes on from wherever the last node left it. Nodes that are not
looked at any more leave the bound of their parent behind.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.dictionary import (
    INFEASIBLE,
    OPTIMAL,
    Dictionary,
    rebuild,
    reoptimize,
    safe_bound,
)
from planner.optimization.backends.column_generation.settling import Exact, settle

__all__ = [
    "Memory",
    "Relaxed",
    "fractional",
    "offer",
    "round_vertex",
    "search",
    "settle_leaf",
    "tighten",
    "value_of",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_WHOLE: Final = 1e-6
_NODES_UNTIL_REBUILT: Final = 40
_DEEPEST: Final = 400
_GRID_NODES: Final = 24
"""Nodes below a choice of replicas that the grid of shares does not allow."""

_FIRST_NODES: Final = 4
"""Nodes whose fractional vertices are rounded up to a choice; later ones only where they are whole."""

_BUMPS: Final = 4
_UP_FIRST: Final = 0.3


class Relaxed(NamedTuple):
    """The block as real numbers: shares count from 0 to 1, rows have a largest coefficient of 1.

    Attributes:
        a: rows in use and room for cuts, x columns.
        lower: lower end of every column, then of every row's activity.
        upper: upper end likewise.
        sided: rows x (has a lower side, has an upper side) as they were given.
        whole: columns that are whole.
        grid: steps of one unit, by column.
    """

    a: Floats
    lower: Floats
    upper: Floats
    sided: Bools
    whole: Bools
    grid: Floats


class Memory(NamedTuple):
    """What a block remembers between turns.

    Attributes:
        counts: rows in use, values known.
        known: values, newest first overwritten last.
        basic: variables that were basic at the root.
    """

    counts: Ints
    known: Ints
    basic: Bools


@njit(cache=True, nogil=True)
def value_of(cost: Floats, grid: Floats, x: Ints) -> float:
    """Cost of whole values; ``cost`` is of a unit of ``grid`` steps."""
    total = 0.0
    for j in range(x.shape[0]):
        total += cost[j] * x[j] / grid[j]
    return total


@njit(cache=True, nogil=True)
def _remember(memory: Memory, cost: Floats, grid: Floats, x: Ints) -> None:
    """Keep new values; the dearest make room."""
    count = memory.counts[1]
    slot = count
    if count < memory.known.shape[0]:
        memory.counts[1] += 1
    else:
        dearest = -np.inf
        for k in range(count):
            value = value_of(cost, grid, memory.known[k])
            if value > dearest:
                slot, dearest = k, value
    memory.known[slot] = x


@njit(cache=True, nogil=True)
def offer(memory: Memory, cost: Floats, grid: Floats, x: Ints, best: float) -> float:
    """The better of the best value and that of x, which is remembered if it is the better one."""
    value = value_of(cost, grid, x)
    if best == np.inf or value < best - 1e-12 * abs(best):
        _remember(memory, cost, grid, x)
        return value
    return best


@njit(cache=True, nogil=True)
def fractional(x: Floats, whole: Bools, cost: Floats) -> int:
    """The whole column that is farthest from whole, dear ones first; -1 for none."""
    best, most = -1, 0.0
    for j in range(whole.shape[0]):
        if whole[j]:
            step = x[j] - np.floor(x[j])
            away = min(step, 1.0 - step)
            if away > _WHOLE:
                score = (0.02 + away) * (1e-9 + abs(cost[j]))
                if score > most:
                    best, most = j, score
    return best


@njit(cache=True, nogil=True)
def _off_grid(x: Floats, whole: Bools, grid: Floats) -> int:
    """The share that is farthest from a step of the grid; -1 for none."""
    best, most = -1, 1e-4
    for j in range(whole.shape[0]):
        if not whole[j]:
            step = x[j] * grid[j] - np.floor(x[j] * grid[j])
            away = min(step, 1.0 - step)
            if away > most:
                best, most = j, away
    return best


@njit(cache=True, nogil=True)
def tighten(lp: Dictionary, whole: Bools, slack: float) -> None:
    """Ends of whole columns beyond which the goal would pass the best value (reduced costs); ``slack`` is what is left."""
    n = whole.shape[0]
    for q in range(n):
        j = lp.nonbasis[q]
        if j >= n or not whole[j] or lp.upper[j] <= lp.lower[j] or lp.reduced[q] == 0.0:
            continue
        steps = np.floor(slack / abs(lp.reduced[q]) + 1e-6)
        if lp.reduced[q] > 0.0:
            lp.upper[j] = min(lp.upper[j], lp.lower[j] + steps)
        else:
            lp.lower[j] = max(lp.lower[j], lp.upper[j] - steps)


@njit(cache=True, nogil=True)
def settle_leaf(block: Relaxed, exact: Exact, lp: Dictionary, rows: int, step: Floats, x: Ints) -> bool:
    """Values on the grid for whole columns as they are; routed with a step of room in every row where that is needed."""
    n = block.whole.shape[0]
    if settle(exact, lp.x[:n], block.grid, step, x, 0):
        return True
    lower, upper = lp.lower.copy(), lp.upper.copy()
    for j in range(n):
        if block.whole[j]:
            lp.lower[j] = lp.upper[j] = np.rint(lp.x[j])
    for i in range(block.sided.shape[0]):
        if block.lower[n + i] >= block.upper[n + i]:
            continue
        room = 0.0
        for j in range(n):
            if not block.whole[j]:
                room += abs(block.a[i, j]) / block.grid[j]
        if block.sided[i, 0]:
            lp.lower[n + i] += room
        if block.sided[i, 1]:
            lp.upper[n + i] -= room
    done = reoptimize(lp, block.a[:rows], np.inf) == OPTIMAL and settle(
        exact, lp.x[:n], block.grid, step, x, 0
    )
    lp.lower[:], lp.upper[:] = lower, upper
    return done


class _Tree(NamedTuple):
    """Open nodes, last in first out: boxes of the columns, bound of the parent, whether shares were branched on."""

    lows: Floats
    highs: Floats
    bounds: Floats
    on_grid: Bools


@njit(cache=True, nogil=True)
def _push(tree: _Tree, top: int, lp: Dictionary, j: int, scale: float, node: tuple[float, bool]) -> int:
    """Both sides of column j at its value, the likelier one on top; how many nodes are open now."""
    n = tree.lows.shape[1]
    split = min(max(lp.x[j], lp.lower[j]), lp.upper[j]) * scale
    down = np.floor(split)
    up_first = split - down > _UP_FIRST
    for child in range(2):
        tree.lows[top], tree.highs[top] = lp.lower[:n], lp.upper[:n]
        if (child == 1) == up_first:
            tree.lows[top, j] = max(tree.lows[top, j], (down + 1.0) / scale)
        else:
            tree.highs[top, j] = min(tree.highs[top, j], down / scale)
        if tree.lows[top, j] <= tree.highs[top, j]:
            tree.bounds[top], tree.on_grid[top] = node
            top += 1
    return top


@njit(cache=True, nogil=True)
def _try_vertex(
    block: Relaxed, exact: Exact, memory: Memory, lp: Dictionary, cost: Floats, best: float
) -> tuple[int, float]:
    """Values from a vertex without fractions: the share to branch on if the grid does not allow them, and the best value."""
    n = cost.shape[0]
    x = np.zeros(n, dtype=np.int64)
    vertex = lp.x[:n].copy()
    step = cost / block.grid
    settled = settle_leaf(block, exact, lp, memory.counts[0], step, x)
    lp.x[:n] = vertex
    if settled:
        return -1, offer(memory, cost, block.grid, x, best)
    if settle(exact, vertex, block.grid, step, x, _BUMPS):
        best = offer(memory, cost, block.grid, x, best)
    return _off_grid(vertex, block.whole, block.grid), best


@njit(cache=True, nogil=True)
def round_vertex(
    block: Relaxed, exact: Exact, memory: Memory, lp: Dictionary, cost: Floats, best: float
) -> float:
    """The best value once a vertex with fractions is rounded up."""
    n = cost.shape[0]
    x = np.zeros(n, dtype=np.int64)
    if settle(exact, lp.x[:n], block.grid, cost / block.grid, x, _BUMPS):
        return offer(memory, cost, block.grid, x, best)
    return best


@njit(cache=True, nogil=True)
def search(  # noqa: PLR0915 - one loop is one search
    block: Relaxed,
    exact: Exact,
    memory: Memory,
    lp: Dictionary,
    cost: Floats,
    start: tuple[float, float, float, int],
) -> tuple[float, int]:
    """Depth-first search below the root; ``start`` is its bound, the best value, the gap that counts as none and how many nodes."""
    root, best, slack, most = start
    n, whole = cost.shape[0], block.whole
    a = block.a[: memory.counts[0]]
    tree = _Tree(
        np.empty((_DEEPEST, n)),
        np.empty((_DEEPEST, n)),
        np.empty(_DEEPEST),
        np.zeros(_DEEPEST, dtype=np.bool_),
    )
    tree.lows[0], tree.highs[0], tree.bounds[0] = lp.lower[:n], lp.upper[:n], root
    top, low, visited, grids = 1, np.inf, 0, 0
    while top > 0:
        top -= 1
        if tree.bounds[top] >= best - slack or visited >= most or top + 2 >= _DEEPEST:
            low = min(low, tree.bounds[top])
            continue
        visited += 1
        below = tree.on_grid[top]
        grids += below
        if visited % _NODES_UNTIL_REBUILT == 0:
            rebuild(lp, a, memory.basic)
        lp.lower[:n], lp.upper[:n] = tree.lows[top], tree.highs[top]
        status = reoptimize(lp, a, best - slack)
        if status == INFEASIBLE:
            continue
        bound = max(tree.bounds[top], safe_bound(lp, a, cost))
        j = -1
        if status == OPTIMAL and bound < best - slack:
            j = fractional(lp.x, whole, cost)
            if j < 0:
                j, best = _try_vertex(block, exact, memory, lp, cost, best)
                below = True
            elif visited < _FIRST_NODES:
                best = round_vertex(block, exact, memory, lp, cost, best)
        if j < 0 or bound >= best - slack or (below and grids > _GRID_NODES):
            low = min(low, bound)
            continue
        if whole[j]:
            tighten(lp, whole, best - bound)
        top = _push(tree, top, lp, j, 1.0 if whole[j] else block.grid[j], (bound, below))
    return min(low, best), visited
