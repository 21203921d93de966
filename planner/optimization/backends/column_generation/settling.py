"""From a point of the relaxation to whole numbers that keep every row exactly, compiled.

Shares live on a grid; what rounding them down leaves undone is made good by grid steps where rows have room, by
serving a step less where demand may stay unserved, and by one more replica where neither is possible.
All arithmetic is in 64-bit integers; blocks whose sums could leave them are not sent here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["OPEN", "Exact", "settle"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OPEN: Final = 2**62
"""The side of a row that has none (negative for lower sides)."""

_PASSES: Final = 12
_NEARLY: Final = 1e-6


class Exact(NamedTuple):
    """The block in the integers of the program.

    Attributes:
        a: rows x columns.
        low: lower side by row.
        high: upper side by row.
        least: lower end by column.
        most: upper end by column.
        whole: columns that are no shares.
    """

    a: Ints
    low: Ints
    high: Ints
    least: Ints
    most: Ints
    whole: Bools


@njit(cache=True, nogil=True)
def _room(block: Exact, activity: Ints, j: int, sign: int, row: int) -> int:
    """Steps that column j can go up (or down) by its box and by every inequality but ``row``."""
    steps = block.most[j]
    for i in range(activity.shape[0]):
        slope = sign * block.a[i, j]
        if slope == 0 or i == row:
            continue
        if block.low[i] == block.high[i]:
            # Another equality may fall short (it is repaired in its turn); it is never exceeded.
            if slope > 0:
                steps = min(steps, max(0, block.high[i] - activity[i]) // slope)
        elif slope > 0 and block.high[i] < OPEN:
            steps = min(steps, max(0, block.high[i] - activity[i]) // slope)
        elif slope < 0 and block.low[i] > -OPEN:
            steps = min(steps, max(0, activity[i] - block.low[i]) // -slope)
    return int(steps)


@njit(cache=True, nogil=True)
def _shift(block: Exact, activity: Ints, x: Ints, j: int, by: int) -> None:
    x[j] += by
    for i in range(activity.shape[0]):
        activity[i] += block.a[i, j] * by


@njit(cache=True, nogil=True)
def _mend(block: Exact, activity: Ints, x: Ints, row: int) -> None:
    """Move shares until the row holds, as far as others allow: first towards serving, then away from it."""
    n = x.shape[0]
    for way in (1, -1):
        for j in range(n):
            missing = block.low[row] - activity[row]
            direction = 1
            if missing <= 0:
                missing = activity[row] - block.high[row]
                direction = -1
            if missing <= 0:
                return
            slope = direction * block.a[row, j]
            if block.whole[j] or slope == 0 or (slope > 0) != (way > 0):
                continue
            size = abs(slope)
            wanted = -(-missing // size)
            free = block.most[j] - x[j] if way > 0 else x[j] - block.least[j]
            by = min(wanted, free, _room(block, activity, j, way, row))
            if by > 0:
                _shift(block, activity, x, j, way * by)


@njit(cache=True, nogil=True)
def _bump(  # noqa: C901, PLR0912 - compiled: plain loops
    block: Exact, activity: Ints, x: Ints, cost: Floats, row: int
) -> bool:
    """One more of the cheapest whole column that helps the row, or helps a row its shares are held back by."""
    best, least = -1, np.inf
    m, n = block.a.shape
    direct = False
    for j in range(n):
        if block.whole[j] and block.a[row, j] != 0:
            direct = True
    for i in range(m):
        if direct and i != row:
            continue
        touched = i == row
        if not touched:
            for j in range(n):
                if not block.whole[j] and block.a[row, j] > 0 and block.a[i, j] < 0 and x[j] < block.most[j]:
                    touched = True
                    break
        if not touched or block.low[i] <= -OPEN:
            continue
        for j in range(n):
            if block.whole[j] and block.a[i, j] > 0 and x[j] < block.most[j] and cost[j] < least:
                best, least = j, cost[j]
    if best < 0:
        return False
    _shift(block, activity, x, best, 1)
    return True


@njit(cache=True, nogil=True)
def _broken(block: Exact, activity: Ints, i: int) -> bool:
    return bool(activity[i] < block.low[i] or activity[i] > block.high[i])


@njit(cache=True, nogil=True)
def _nearest(block: Exact, point: Floats, grid: Floats, x: Ints) -> None:
    """Whole columns rounded up, shares down to the grid, all inside their boxes."""
    for j in range(x.shape[0]):
        value = np.ceil(point[j] - _NEARLY) if block.whole[j] else np.floor(point[j] * grid[j] + _NEARLY)
        x[j] = min(max(np.int64(value), block.least[j]), block.most[j])


@njit(cache=True, nogil=True)
def settle(block: Exact, point: Floats, grid: Floats, cost: Floats, x: Ints, bumps: int) -> bool:
    """Whole values near a point of the relaxation that keep every row.

    Args:
        block: rows and columns.
        point: values in units of ``grid``; whole columns are taken as they are, rounded up where they are broken.
        grid: steps of one unit, by column.
        cost: of one step, by column.
        x: the answer.
        bumps: replicas that may be added at most.

    Returns:
        Whether every row holds.
    """
    m = block.a.shape[0]
    _nearest(block, point, grid, x)
    activity = np.zeros(m, dtype=np.int64)
    for i in range(m):
        activity[i] = (block.a[i] * x).sum()
    for turn in range(_PASSES):
        for i in range(m):
            if _broken(block, activity, i):
                _mend(block, activity, x, i)
        last = -1
        for i in range(m):
            if _broken(block, activity, i):
                last = i
        if last < 0:
            return True
        if turn % 2 == 1:
            if bumps == 0 or not _bump(block, activity, x, cost, last):
                return False
            bumps -= 1
    return False
