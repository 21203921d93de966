"""A small linear program as a dictionary: dense, boxed, and solved by a compiled dual simplex.

Minimize  c·x  subject to  s = A·x,  with a finite box around every x and every s. A basis writes some of these
variables as sums of the others (the nonbasic ones, each at an end of its box), and so does it with the goal. Since
every box is finite, any basis is dual feasible as soon as each nonbasic variable stands at the end that its reduced
cost asks for: after a change of boxes (branching) or of costs (new prices) the dual simplex goes on from where it is.

The bound that leaves here does not trust the dictionary: multipliers of the rows are read from it, and the bound is
computed from the rows as they were given. It is valid for any multipliers.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["INFEASIBLE", "OPTIMAL", "Dictionary", "new_dictionary", "rebuild", "reoptimize", "safe_bound"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OPTIMAL: Final = 0
INFEASIBLE: Final = 1
CUT_SHORT: Final = 2

_FEASIBLE: Final = 1e-9
_CLOSE: Final = 1e-8
_PIVOT: Final = 1e-7
_MOST_PIVOTS: Final = 2_000
_TURNS: Final = 4
"""Turns after which the goal is put beside the cutoff."""
_SURE: Final = 1e-8
"""A row that cannot be kept by less than this is no proof."""


class Dictionary(NamedTuple):
    """State of the linear program; rows beyond those in use are room for cuts.

    Attributes:
        cells: basic variables as sums of nonbasic ones, rows x columns.
        asked: cost of every column that it is made for; it may differ a little from the true one, bounds do not.
        reduced: the goal as a sum of nonbasic variables.
        basis: variable of each row; structurals are 0..n-1, the activity of row i is n + i.
        nonbasis: variable of each column.
        x: value of every variable.
        lower: lower end of every box.
        upper: upper end of every box.
    """

    cells: Floats
    asked: Floats
    reduced: Floats
    basis: Ints
    nonbasis: Ints
    x: Floats
    lower: Floats
    upper: Floats


@njit(cache=True, nogil=True)
def new_dictionary(columns: int, rows: int) -> Dictionary:
    """Room for so many columns and rows."""
    return Dictionary(
        np.zeros((rows, columns)),
        np.zeros(columns),
        np.zeros(columns),
        np.zeros(rows, dtype=np.int64),
        np.zeros(columns, dtype=np.int64),
        np.zeros(columns + rows),
        np.zeros(columns + rows),
        np.zeros(columns + rows),
    )


@njit(cache=True, nogil=True)
def _pivot(lp: Dictionary, rows: int, r: int, q: int) -> None:
    """Swap the basic variable of row r with the nonbasic one of column q."""
    cells, reduced = lp.cells, lp.reduced
    n = reduced.shape[0]
    inverse = 1.0 / cells[r, q]
    for j in range(n):
        cells[r, j] *= -inverse
    cells[r, q] = inverse
    for i in range(rows):
        factor = cells[i, q]
        if i != r and factor != 0.0:
            cells[i, q] = 0.0
            for j in range(n):
                cells[i, j] += factor * cells[r, j]
    factor = reduced[q]
    if factor != 0.0:
        reduced[q] = 0.0
        for j in range(n):
            reduced[j] += factor * cells[r, j]
    lp.basis[r], lp.nonbasis[q] = lp.nonbasis[q], lp.basis[r]


@njit(cache=True, nogil=True)
def rebuild(lp: Dictionary, a: Floats, wanted: NDArray[np.bool_]) -> None:
    """The dictionary of a basis from the rows as they were given.

    Args:
        lp: is filled; boxes and values are left alone.
        a: rows in use x columns.
        wanted: which variables are to be basic; what would be singular stays out.
    """
    rows, n = a.shape
    lp.cells[:rows] = a
    lp.reduced[:] = lp.asked
    lp.basis[:rows] = np.arange(n, n + rows)
    lp.nonbasis[:] = np.arange(n)
    for q in range(n):
        if not wanted[q]:
            continue
        best, largest = -1, 1e-6
        for r in range(rows):
            size = abs(lp.cells[r, q])
            if lp.basis[r] >= n and not wanted[lp.basis[r]] and size > largest:
                best, largest = r, size
        if best >= 0:
            _pivot(lp, rows, best, q)


@njit(cache=True, nogil=True)
def _place(lp: Dictionary, rows: int) -> None:
    """Every nonbasic variable at the end that its reduced cost asks for; the basic ones follow."""
    n = lp.reduced.shape[0]
    for q in range(n):
        j = lp.nonbasis[q]
        if lp.reduced[q] > 0.0:
            lp.x[j] = lp.lower[j]
        elif lp.reduced[q] < 0.0:
            lp.x[j] = lp.upper[j]
        elif lp.x[j] != lp.upper[j]:
            lp.x[j] = lp.lower[j]
    for r in range(rows):
        lp.x[lp.basis[r]] = 0.0
    for q in range(n):
        value = lp.x[lp.nonbasis[q]]
        if value != 0.0:
            for r in range(rows):
                lp.x[lp.basis[r]] += lp.cells[r, q] * value


@njit(cache=True, nogil=True)
def _leaving(lp: Dictionary, rows: int) -> int:
    """The row whose variable is farthest outside its box; -1 where all are inside."""
    worst, most = -1, _FEASIBLE
    for r in range(rows):
        j = lp.basis[r]
        outside = max(lp.lower[j] - lp.x[j], lp.x[j] - lp.upper[j])
        outside /= max(1.0, abs(lp.x[j]))
        if outside > most:
            worst, most = r, outside
    return worst


@njit(cache=True, nogil=True)
def _entering(lp: Dictionary, r: int, sign: float, excess: float, flipped: NDArray[np.bool_]) -> int:
    """Column that enters for row r (long step: what runs through its whole box is flipped); -1 for none."""
    n = lp.reduced.shape[0]
    flipped[:] = False
    while True:
        best, least, steepest = -1, np.inf, 0.0
        for q in range(n):
            j = lp.nonbasis[q]
            slope = sign * lp.cells[r, q]
            if flipped[q] or lp.upper[j] <= lp.lower[j]:
                continue
            at_lower = lp.x[j] == lp.lower[j]
            if (at_lower and slope > _PIVOT) or (not at_lower and slope < -_PIVOT):
                ratio = abs(lp.reduced[q]) / abs(slope)
                if ratio < least - 1e-12 or (ratio <= least + 1e-12 and abs(slope) > steepest):
                    best, least, steepest = q, ratio, abs(slope)
        if best < 0:
            return -1
        j = lp.nonbasis[best]
        reach = steepest * (lp.upper[j] - lp.lower[j])
        if reach >= excess - _CLOSE * max(1.0, excess):
            return best
        excess -= reach
        flipped[best] = True


@njit(cache=True, nogil=True)
def _move(lp: Dictionary, rows: int, q: int, by: float) -> None:
    lp.x[lp.nonbasis[q]] += by
    for i in range(rows):
        if lp.cells[i, q] != 0.0:
            lp.x[lp.basis[i]] += lp.cells[i, q] * by


@njit(cache=True, nogil=True)
def _hopeless(lp: Dictionary, a: Floats, r: int, sign: float, goal: float) -> bool:
    """Whether row r stays short of its box at the best ends of all others, by more than rounding can explain.

    What the row of the dictionary says is put beside the rows as they were given: by as much as they differ at most,
    it may be wrong.
    """
    n = lp.reduced.shape[0]
    differs = np.zeros(n)
    best, size = 0.0, abs(goal)
    for q in range(n):
        j = lp.nonbasis[q]
        slope = lp.cells[r, q]
        if slope == 0.0:
            continue
        if j < n:
            differs[j] -= slope
        else:
            differs -= slope * a[j - n]
        part = sign * slope * (lp.upper[j] if sign * slope > 0.0 else lp.lower[j])
        best += part
        size += abs(part)
    if lp.basis[r] < n:
        differs[lp.basis[r]] += 1.0
    else:
        differs += a[lp.basis[r] - n]
    error = 1e-12 * size
    for j in range(n):
        error += abs(differs[j]) * max(abs(lp.lower[j]), abs(lp.upper[j]))
    return best + error < sign * goal - _SURE * max(1.0, abs(goal))


@njit(cache=True, nogil=True)
def reoptimize(lp: Dictionary, a: Floats, cutoff: float) -> int:
    """Dual simplex until it is optimal, proven infeasible, above the cutoff, or cut short (the basis is dual feasible).

    Returns:
        OPTIMAL, INFEASIBLE or CUT_SHORT; the last also where the goal has reached the cutoff.
    """
    rows, n = a.shape
    flipped = np.zeros(n, dtype=np.bool_)
    _place(lp, rows)
    for turn in range(_MOST_PIVOTS):
        r = _leaving(lp, rows)
        if r < 0:
            return OPTIMAL
        if turn % _TURNS == 0:
            value = 0.0
            for q in range(n):
                value += lp.reduced[q] * lp.x[lp.nonbasis[q]]
            if value > cutoff:
                return CUT_SHORT
        j = lp.basis[r]
        low = lp.x[j] < lp.lower[j]
        goal = lp.lower[j] if low else lp.upper[j]
        sign = 1.0 if low else -1.0
        q = _entering(lp, r, sign, abs(goal - lp.x[j]), flipped)
        if q < 0:
            return INFEASIBLE if _hopeless(lp, a, r, sign, goal) else CUT_SHORT
        for other in range(n):
            if flipped[other]:
                k = lp.nonbasis[other]
                by = lp.upper[k] - lp.x[k] if lp.x[k] == lp.lower[k] else lp.lower[k] - lp.x[k]
                _move(lp, rows, other, by)
                lp.x[k] = (
                    lp.upper[k] if abs(lp.x[k] - lp.upper[k]) < abs(lp.x[k] - lp.lower[k]) else lp.lower[k]
                )
        _move(lp, rows, q, (goal - lp.x[j]) / lp.cells[r, q])
        lp.x[j] = goal
        _pivot(lp, rows, r, q)
    return CUT_SHORT


@njit(cache=True, nogil=True)
def safe_bound(lp: Dictionary, a: Floats, cost: Floats) -> float:
    """Least goal over the boxes at the multipliers of the dictionary, from the rows as they were given."""
    n = cost.shape[0]
    left = cost.copy()
    total, size = 0.0, 0.0
    for q in range(n):
        i = lp.nonbasis[q] - n
        y = lp.reduced[q]
        if i < 0 or y == 0.0:
            continue
        for j in range(n):
            left[j] -= y * a[i, j]
        part = y * (lp.lower[n + i] if y > 0.0 else lp.upper[n + i])
        total += part
        size += abs(part)
    for j in range(n):
        part = left[j] * (lp.lower[j] if left[j] > 0.0 else lp.upper[j])
        total += part
        size += abs(part)
    return total - 1e-12 * size
