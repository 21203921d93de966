"""Branch and cut for small blocks, compiled: a least-cost choice under any rows, with a bound that is valid.

The relaxation lets shares be real (they live on a fine grid), so its bound holds for the block as formulated; values
are settled on the grid exactly before they count. At the root the relaxation is cut, and what reduced costs fix is
taken out; the tree is searched in what is left.
"""

from __future__ import annotations

from typing import Final

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
from planner.optimization.backends.column_generation.narrowing import Narrow, hold, narrow
from planner.optimization.backends.column_generation.rounding_cuts import round_row
from planner.optimization.backends.column_generation.settling import OPEN, Exact
from planner.optimization.backends.column_generation.tree_search import (
    Memory,
    Relaxed,
    fractional,
    offer,
    round_vertex,
    search,
    tighten,
    value_of,
)
from planner.optimization.scaling import GRID

__all__ = ["CUTS", "KNOWN", "branch_and_cut", "branch_and_cut_left", "guide", "narrowed", "relaxed_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CUTS: Final = 16
"""Room for cuts by block."""

KNOWN: Final = 12
"""Values by block that are kept from one turn to the next."""

_ROUNDS: Final = 12
_STALE: Final = 3
_NOTHING: Final = 1e-12
_TRACE: Final = 1e-7


@njit(cache=True, nogil=True)
def _cutoff(best: float, gap: float) -> float:
    return best - gap * abs(best) if best < np.inf else np.inf


@njit(cache=True, nogil=True)
def guide(block: Relaxed, cost: Floats, asked: Floats) -> None:
    """Costs with a trace of what a share takes up of replicas: without it all shares tie, and the simplex circles."""
    n = cost.shape[0]
    asked[:] = cost
    for i in range(block.sided.shape[0]):
        rate = np.inf
        for j in range(n):
            if block.whole[j] and block.a[i, j] > 0.0 and cost[j] > 0.0:
                rate = min(rate, cost[j] / block.a[i, j])
        if rate < np.inf and block.sided[i, 0]:
            for j in range(n):
                if not block.whole[j] and block.a[i, j] < 0.0:
                    asked[j] -= _TRACE * rate * block.a[i, j]


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
def _root(block: Relaxed, lp: Dictionary, memory: Memory, cost: Floats, cutoff: float) -> tuple[int, float]:
    """The relaxation with cuts, as far as they help: how it ended, and its bound."""
    n = cost.shape[0]
    _purge(block, memory)
    rebuild(lp, block.a[: memory.counts[0]], memory.basic)
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
        if status != OPTIMAL or bound >= cutoff or stale >= _STALE or fractional(lp.x, block.whole, cost) < 0:
            break
        if not _separate(block, lp, memory):
            break
    memory.basic[:] = False
    for r in range(memory.counts[0]):
        memory.basic[lp.basis[r]] = True
    memory.basic[n + memory.counts[0] :] = True
    return status, bound


@njit(cache=True, nogil=True)
def narrowed(block: Relaxed, left: Narrow) -> Relaxed:
    """The relaxation of what is left of a block."""
    n, k, m = block.whole.shape[0], left.columns.shape[0], left.rows.shape[0]
    given = left.exact.low.shape[0]
    a = np.zeros((m, k))
    lower, upper = np.zeros(k + m), np.zeros(k + m)
    grid = block.grid[left.columns]
    lower[:k] = left.exact.least / grid
    upper[:k] = left.exact.most / grid
    free = np.zeros(n, dtype=np.bool_)
    free[left.columns] = True
    for r in range(m):
        i = left.rows[r]
        shift = 0.0
        for j in range(n):
            if not free[j] and block.a[i, j] != 0.0:
                shift += block.a[i, j] * left.fixed[j] / block.grid[j]
        a[r] = block.a[i][left.columns]
        lower[k + r], upper[k + r] = block.lower[n + i] - shift, block.upper[n + i] - shift
    return Relaxed(a, lower, upper, block.sided[left.rows[:given]], block.whole[left.columns], grid)


@njit(cache=True, nogil=True)
def _search_what_is_left(
    block: Relaxed,
    exact: Exact,
    memory: Memory,
    lp: Dictionary,
    cost: Floats,
    start: tuple[float, float, float, int],
) -> tuple[float, int]:
    """Search the block without what reduced costs have fixed; values found are written back."""
    n, rows = cost.shape[0], memory.counts[0]
    left = narrow(exact, block.a[:rows], lp.lower[:n], lp.upper[:n])
    small = narrowed(block, left)
    x = left.fixed.copy()
    x[left.columns] = 0
    constant = value_of(cost, block.grid, x)
    k, m = left.columns.shape[0], left.rows.shape[0]
    basic = np.zeros(k + m, dtype=np.bool_)
    basic[:k] = memory.basic[left.columns]
    for r in range(m):
        basic[k + r] = memory.basic[n + left.rows[r]]
    own = Memory(np.array([m, 0]), np.zeros((KNOWN, k), dtype=np.int64), basic)
    own_cost = cost[left.columns]
    own_lp = new_dictionary(k, m)
    own_lp.lower[:], own_lp.upper[:] = small.lower, small.upper
    own_lp.asked[:] = lp.asked[left.columns]
    rebuild(own_lp, small.a, basic)
    bound, best, slack, most = start
    most = most * n * rows // max(1, k * m)  # nodes of a smaller block are cheaper
    found, nodes = search(
        small, left.exact, own, own_lp, own_cost, (bound - constant, best - constant, slack, most)
    )
    for known in range(own.counts[1]):
        x = left.fixed.copy()
        x[left.columns] = own.known[known]
        if hold(exact, x):
            best = offer(memory, cost, block.grid, x, best)
    return min(found + constant, best), nodes


@njit(cache=True, nogil=True)
def branch_and_cut(
    block: Relaxed, exact: Exact, memory: Memory, cost: Floats, limits: tuple[float, int, float]
) -> tuple[float, int]:
    """The least cost of a block; what was found on the way is in the memory.

    Args:
        block: the relaxation.
        exact: the same block in the integers of the program.
        memory: cuts, values and the basis of earlier turns; moved on.
        cost: of one unit of every column.
        limits: relative gap at which it counts as solved (stays inside the bound), nodes, and a cost above which nothing is
            looked for.

    Returns:
        A valid lower bound (infinite where no point was found possible), and the nodes looked at.
    """
    gap, most, best = limits
    lp = new_dictionary(cost.shape[0], block.a.shape[0])
    guide(block, cost, lp.asked)
    for k in range(memory.counts[1]):
        best = min(best, value_of(cost, block.grid, memory.known[k]))
    status, bound = _root(block, lp, memory, cost, _cutoff(best, gap))
    if status == INFEASIBLE:
        return np.inf, 1
    if bound >= _cutoff(best, gap):
        return min(bound, best), 1
    best = round_vertex(block, exact, memory, lp, cost, best)
    tighten(lp, block.whole, best - bound)
    slack = gap * abs(best if best < np.inf else bound)
    return _search_what_is_left(block, exact, memory, lp, cost, (bound, best, slack, most))


@njit(cache=True, nogil=True)
def relaxed_of(exact: Exact, room: int) -> Relaxed:
    """The relaxation of a block, its rows scaled to a largest coefficient of 1, with so much room for cuts."""
    m, n = exact.a.shape
    grid = np.where(exact.whole, 1.0, float(GRID))
    a = np.zeros((m + room, n))
    lower, upper = np.zeros(n + m + room), np.zeros(n + m + room)
    lower[:n], upper[:n] = exact.least / grid, exact.most / grid
    sided = np.zeros((m, 2), dtype=np.bool_)
    for i in range(m):
        size = 0.0
        for j in range(n):
            a[i, j] = exact.a[i, j] * grid[j]
            size = max(size, abs(a[i, j]))
        size = size if size > 0.0 else 1.0
        bottom, top = -1.0, 1.0
        for j in range(n):
            a[i, j] /= size
            bottom += a[i, j] * (lower[j] if a[i, j] > 0.0 else upper[j])
            top += a[i, j] * (upper[j] if a[i, j] > 0.0 else lower[j])
        sided[i, 0], sided[i, 1] = exact.low[i] > -OPEN, exact.high[i] < OPEN
        lower[n + i] = exact.low[i] / size if sided[i, 0] else bottom
        upper[n + i] = exact.high[i] / size if sided[i, 1] else top
    return Relaxed(a, lower, upper, sided, exact.whole, grid)


@njit(cache=True, nogil=True)
def branch_and_cut_left(
    left: Narrow, memory: Memory, cost: Floats, limits: tuple[float, int, float]
) -> tuple[float, int, Ints]:
    """The least cost of a block of which most columns are fixed by now: only what is left is spread out.

    Cuts of what is left say nothing of the rest, and are not kept; the basis is, as far as it is of what is left.

    Args:
        left: what is left of the block.
        memory: the basis of earlier turns, of the whole block; moved on.
        cost: of one unit of every column of the whole block.
        limits: as in :func:`branch_and_cut`.

    Returns:
        Bound (without what is fixed) and nodes, and values of the columns that are left, pattern by pattern.
    """
    gap, most, best = limits
    n, k, m = cost.shape[0], left.columns.shape[0], left.rows.shape[0]
    own = Memory(
        np.array([m, 0]), np.zeros((KNOWN, k), dtype=np.int64), np.ones(k + m + CUTS, dtype=np.bool_)
    )
    own.basic[:k], own.basic[k : k + m] = memory.basic[left.columns], memory.basic[n + left.rows]
    most = (
        most * n * (memory.basic.shape[0] - n - CUTS) // max(1, k * m)
    )  # nodes of a smaller block are cheaper
    found, nodes = branch_and_cut(
        relaxed_of(left.exact, CUTS), left.exact, own, cost[left.columns], (gap, most, best)
    )
    memory.basic[left.columns], memory.basic[n + left.rows] = own.basic[:k], own.basic[k : k + m]
    return found, nodes, own.known[: own.counts[1]]
