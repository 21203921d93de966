"""A block without the columns that reduced costs have fixed, compiled: most candidates are out after the root.

Replicas that are fixed at none leave their shares no room, and so the shares go too. What is left is a block of its
own, a fraction of the size, in which the tree is searched.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.settling import OPEN, Exact

__all__ = ["Narrow", "hold", "narrow"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Narrow(NamedTuple):
    """What is left of a block.

    Attributes:
        columns: that are kept.
        rows: that are kept, of all rows in use.
        fixed: value of every column of the block at its lower end.
        exact: the block that is left, in the integers of the program.
    """

    columns: Ints
    rows: Ints
    fixed: Ints
    exact: Exact


@njit(cache=True, nogil=True)
def hold(block: Exact, x: Ints) -> bool:
    """Whether values keep every row of a block."""
    for i in range(block.low.shape[0]):
        activity = 0
        for j in range(x.shape[0]):
            activity += int(block.a[i, j] * x[j])
        if activity < block.low[i] or activity > block.high[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _leave_no_room(block: Exact, most: Ints) -> None:
    """Upper ends of shares that rows imply once replicas are bounded:  Σ a⁺·most − |a_j|·x_j ≥ low."""
    for i in range(block.low.shape[0]):
        if block.low[i] <= -OPEN:
            continue
        room = -block.low[i]
        for j in range(most.shape[0]):
            slope = block.a[i, j]
            if slope != 0:
                room += slope * (most[j] if slope > 0 else block.least[j])
        if room < 0:
            continue
        for j in range(most.shape[0]):
            if block.a[i, j] < 0 and not block.whole[j]:
                most[j] = min(most[j], block.least[j] + room // -block.a[i, j])


@njit(cache=True, nogil=True)
def narrow(block: Exact, a: Floats, lower: Floats, upper: Floats) -> Narrow:
    """Keep the columns that have a choice, and the rows that speak of one.

    Args:
        block: rows as given.
        a: rows in use, cuts included, as the relaxation has them.
        lower: ends of the columns, tightened.
        upper: likewise.
    """
    n, m = block.least.shape[0], block.low.shape[0]
    least, most = block.least.copy(), block.most.copy()
    for j in range(n):
        if block.whole[j]:
            least[j], most[j] = np.int64(np.ceil(lower[j] - 1e-6)), np.int64(np.floor(upper[j] + 1e-6))
    _leave_no_room(block, most)
    columns = np.flatnonzero(least < most)
    kept = np.zeros(a.shape[0], dtype=np.bool_)
    for i in range(a.shape[0]):
        kept[i] = (a[i][columns] != 0.0).any()
    rows = np.flatnonzero(kept)
    given = rows[rows < m]
    exact = np.zeros((given.shape[0], columns.shape[0]), dtype=np.int64)
    low, high = block.low[given], block.high[given]
    for r in range(given.shape[0]):
        shift = 0
        for j in range(n):
            if least[j] >= most[j]:
                shift += int(block.a[given[r], j] * least[j])
        for k in range(columns.shape[0]):
            exact[r, k] = block.a[given[r], columns[k]]
        low[r] = low[r] - shift if low[r] > -OPEN else low[r]
        high[r] = high[r] - shift if high[r] < OPEN else high[r]
    return Narrow(
        columns,
        rows,
        least,
        Exact(exact, low, high, least[columns], most[columns], block.whole[columns]),
    )
