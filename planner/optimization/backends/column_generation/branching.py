"""Branch and cut for small blocks, compiled: a least-cost choice under any rows, with a bound that is valid.

The relaxation lets shares be real (they live on a fine grid) and branches on whole columns alone, so its bound holds
for the block as formulated; values are settled on the grid exactly before they count. One dictionary serves the whole
tree: the dual simplex goes on from wherever the last node left it. Nodes that are not looked at any more leave the
bound of their parent behind.
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
    new_dictionary,
    rebuild,
    reoptimize,
    safe_bound,
)
from planner.optimization.backends.column_generation.rounding_cuts import round_row
from planner.optimization.backends.column_generation.settling import Exact, settle

__all__ = ["CUTS", "KNOWN", "Memory", "Relaxed", "branch_and_cut"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

CUTS: Final = 16
"""Room for cuts by block."""

KNOWN: Final = 12
"""Values by block that are kept from one turn to the next."""

_ROUNDS: Final = 12
_WHOLE: Final = 1e-6
_NODES_UNTIL_REBUILT: Final = 40
_DEEPEST: Final = 400
_GRID_NODES: Final = 24
"""Nodes below a choice of replicas that the grid of shares does not allow."""

_FIRST_NODES: Final = 4
"""Nodes whose fractional vertices are rounded up to a choice; later ones only where they are whole."""

_BUMPS: Final = 4
_UP_FIRST: Final = 0.3
_STALE: Final = 3
_NOTHING: Final = 1e-12


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
def _value(cost: Floats, grid: Floats, x: Ints) -> float:
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
            value = _value(cost, grid, memory.known[k])
            if value > dearest:
                slot, dearest = k, value
    memory.known[slot] = x


@njit(cache=True, nogil=True)
def _offer(memory: Memory, cost: Floats, grid: Floats, x: Ints, best: float) -> float:
    """The better of the best value and that of x, which is remembered if it is the better one."""
    value = _value(cost, grid, x)
    if best == np.inf or value < best - 1e-12 * abs(best):
        _remember(memory, cost, grid, x)
        return value
    return best


@njit(cache=True, nogil=True)
def _add_cut(block: Relaxed, lp: Dictionary, memory: Memory, row: Floats, side: float) -> None:
    """One more row, written in the variables that are nonbasic now."""
    n = row.shape[0]
    i = memory.counts[0]
    memory.counts[0] += 1
    size = np.abs(row).max()
    top = 0.0
    for j in range(n):
        block.a[i, j] = row[j] / size
        top += block.a[i, j] * (block.upper[j] if row[j] > 0.0 else block.lower[j])
    block.lower[n + i], block.upper[n + i] = side / size, top + 1.0
    lp.lower[n + i], lp.upper[n + i] = side / size, top + 1.0
    place = np.full(n + i, -1, dtype=np.int64)
    for r in range(i):
        place[lp.basis[r]] = r
    for q in range(n):
        lp.cells[i, q] = 0.0
    for q in range(n):
        j = lp.nonbasis[q]
        if j < n:
            lp.cells[i, q] += block.a[i, j]
    for j in range(n):
        if block.a[i, j] != 0.0 and place[j] >= 0:
            lp.cells[i] += block.a[i, j] * lp.cells[place[j]]
    lp.basis[i] = n + i


@njit(cache=True, nogil=True)
def _aggregate(block: Relaxed, lp: Dictionary, rows: int, out: Floats) -> float:
    """The rows summed by their multipliers at this vertex, as one row with a lower side."""
    n = out.shape[0]
    out[:] = 0.0
    side = 0.0
    for q in range(n):
        i = lp.nonbasis[q] - n
        y = lp.reduced[q]
        if i < 0 or abs(y) < _NOTHING:
            continue
        side += y * (block.lower[n + i] if y > 0.0 else block.upper[n + i])
        for j in range(n):
            out[j] += y * block.a[i, j]
    largest = np.abs(out).max()
    for j in range(n):
        if abs(out[j]) < 1e-11 * largest:
            # What rounding left over: taken out at its best, so that the row stays valid.
            side -= out[j] * (block.upper[j] if out[j] > 0.0 else block.lower[j])
            out[j] = 0.0
    return side - 1e-10 * max(1.0, abs(side))


@njit(cache=True, nogil=True)
def _separate(block: Relaxed, lp: Dictionary, memory: Memory) -> int:
    """Add cuts that the vertex breaks; how many."""
    n = block.whole.shape[0]
    given = block.sided.shape[0]
    boxes = (block.lower[:n], block.upper[:n], block.whole)
    x = lp.x[:n].copy()
    found = np.zeros(n)
    row = np.zeros(n)
    rows = memory.counts[0]
    added = 0
    for i in range(-1, given):
        for way in range(2):
            if memory.counts[0] >= block.a.shape[0]:
                return added
            if i < 0:
                if way == 1:
                    continue
                side = _aggregate(block, lp, rows, row)
            elif not block.sided[i, way]:
                continue
            else:
                sign = 1.0 if way == 0 else -1.0
                row[:] = sign * block.a[i]
                side = block.lower[n + i] if way == 0 else -block.upper[n + i]
            top = round_row(row, side, boxes, x, found)
            if top > -np.inf:
                _add_cut(block, lp, memory, found, top)
                added += 1
    return added


@njit(cache=True, nogil=True)
def _purge(block: Relaxed, memory: Memory) -> None:
    """Forget cuts that did not bind at the root of the last turn, once there is little room."""
    n = block.whole.shape[0]
    given = block.sided.shape[0]
    if memory.counts[0] < given + (block.a.shape[0] - given) // 2:
        return
    kept = given
    for i in range(given, memory.counts[0]):
        if memory.basic[n + i]:
            continue
        block.a[kept] = block.a[i]
        block.lower[n + kept], block.upper[n + kept] = block.lower[n + i], block.upper[n + i]
        memory.basic[n + kept] = False
        kept += 1
    memory.counts[0] = kept
    memory.basic[n + kept :] = True


@njit(cache=True, nogil=True)
def _fractional(x: Floats, whole: Bools, cost: Floats) -> int:
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
def _tighten(lp: Dictionary, whole: Bools, slack: float) -> None:
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
def _settle_leaf(block: Relaxed, exact: Exact, lp: Dictionary, rows: int, step: Floats, x: Ints) -> bool:
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


@njit(cache=True, nogil=True)
def _cutoff(best: float, gap: float) -> float:
    return best - gap * abs(best) if best < np.inf else np.inf


@njit(cache=True, nogil=True)
def _root(block: Relaxed, lp: Dictionary, memory: Memory, cost: Floats, cutoff: float) -> tuple[int, float]:
    """The relaxation with cuts, as far as they help: how it ended, and its bound."""
    n = cost.shape[0]
    _purge(block, memory)
    rebuild(lp, block.a[: memory.counts[0]], cost, memory.basic)
    lp.lower[:] = block.lower
    lp.upper[:] = block.upper
    bound = -np.inf
    status = OPTIMAL
    stale = 0
    for _ in range(_ROUNDS):
        status = reoptimize(lp, block.a[: memory.counts[0]], cutoff)
        if status == INFEASIBLE:
            return status, np.inf
        new = safe_bound(lp, block.a[: memory.counts[0]], cost)
        stale = stale + 1 if new < bound + 1e-5 * abs(bound) else 0
        bound = max(bound, new)
        if (
            status != OPTIMAL
            or bound >= cutoff
            or stale >= _STALE
            or _fractional(lp.x, block.whole, cost) < 0
        ):
            break
        if not _separate(block, lp, memory):
            break
    memory.basic[:] = False
    for r in range(memory.counts[0]):
        memory.basic[lp.basis[r]] = True
    memory.basic[n + memory.counts[0] :] = True
    return status, bound


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
    settled = _settle_leaf(block, exact, lp, memory.counts[0], step, x)
    lp.x[:n] = vertex
    if settled:
        return -1, _offer(memory, cost, block.grid, x, best)
    if settle(exact, vertex, block.grid, step, x, _BUMPS):
        best = _offer(memory, cost, block.grid, x, best)
    return _off_grid(vertex, block.whole, block.grid), best


@njit(cache=True, nogil=True)
def _round_vertex(
    block: Relaxed, exact: Exact, memory: Memory, lp: Dictionary, cost: Floats, best: float
) -> float:
    """The best value once a vertex with fractions is rounded up."""
    n = cost.shape[0]
    x = np.zeros(n, dtype=np.int64)
    if settle(exact, lp.x[:n], block.grid, cost / block.grid, x, _BUMPS):
        return _offer(memory, cost, block.grid, x, best)
    return best


@njit(cache=True, nogil=True)
def _search(  # noqa: PLR0915 - one loop is one search
    block: Relaxed,
    exact: Exact,
    memory: Memory,
    lp: Dictionary,
    cost: Floats,
    start: tuple[float, float, float, int],
) -> tuple[float, int]:
    """Depth-first search below the root; ``start`` is its bound, the best value, the gap and how many nodes."""
    root, best, gap, most = start
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
        if tree.bounds[top] >= _cutoff(best, gap) or visited >= most or top + 2 >= _DEEPEST:
            low = min(low, tree.bounds[top])
            continue
        visited += 1
        below = tree.on_grid[top]
        grids += below
        if visited % _NODES_UNTIL_REBUILT == 0:
            rebuild(lp, a, cost, memory.basic)
        lp.lower[:n], lp.upper[:n] = tree.lows[top], tree.highs[top]
        status = reoptimize(lp, a, _cutoff(best, gap))
        if status == INFEASIBLE:
            continue
        bound = max(tree.bounds[top], safe_bound(lp, a, cost))
        j = -1
        if status == OPTIMAL and bound < _cutoff(best, gap):
            j = _fractional(lp.x, whole, cost)
            if j < 0:
                j, best = _try_vertex(block, exact, memory, lp, cost, best)
                below = True
            elif visited < _FIRST_NODES:
                best = _round_vertex(block, exact, memory, lp, cost, best)
        if j < 0 or bound >= _cutoff(best, gap) or (below and grids > _GRID_NODES):
            low = min(low, bound)
            continue
        if whole[j]:
            _tighten(lp, whole, best - bound)
        top = _push(tree, top, lp, j, 1.0 if whole[j] else block.grid[j], (bound, below))
    return min(low, best), visited


@njit(cache=True, nogil=True)
def branch_and_cut(
    block: Relaxed, exact: Exact, memory: Memory, cost: Floats, limits: tuple[float, int]
) -> tuple[float, int]:
    """The least cost of a block; what was found on the way is in the memory.

    Args:
        block: the relaxation.
        exact: the same block in the integers of the program.
        memory: cuts, values and the basis of earlier turns; moved on.
        cost: of one unit of every column.
        limits: relative gap at which it counts as solved (stays inside the bound), and nodes.

    Returns:
        A valid lower bound (infinite where no point was found possible), and the nodes looked at.
    """
    gap, most = limits
    lp = new_dictionary(cost.shape[0], block.a.shape[0])
    best = np.inf
    for k in range(memory.counts[1]):
        best = min(best, _value(cost, block.grid, memory.known[k]))
    status, bound = _root(block, lp, memory, cost, _cutoff(best, gap))
    if status == INFEASIBLE:
        return np.inf, 1
    if bound >= _cutoff(best, gap):
        return min(bound, best), 1
    best = _round_vertex(block, exact, memory, lp, cost, best)
    _tighten(lp, block.whole, best - bound)
    return _search(block, exact, memory, lp, cost, (bound, best, gap, most))
