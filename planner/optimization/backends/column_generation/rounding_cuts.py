"""Mixed-integer rounding cuts of small programs, compiled.

A row  Σ a_j·n_j + Σ c_k·x_k ≥ b  over whole n ≥ 0 and real x ≥ 0 implies, for every δ > 0 with f0 = frac(b/δ) > 0,

    Σ (⌊a_j/δ⌋ + min(frac(a_j/δ), f0)/f0)·n_j + Σ max(c_k, 0)/(δ·f0)·x_k ≥ ⌈b/δ⌉

(Nemhauser and Wolsey 1990; the form for ≥). Columns are shifted to their lower ends first, and real ones whose
coefficient is negative may be complemented (x = u − x'), which gives the residual capacity inequalities of Magnanti,
Mirchandani and Vachani (1993) for n ≥ Σ t_b·a_b. Cuts speak of no prices, so they are kept from one turn to the next.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["round_row"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_LEAST_FRACTION: Final = 0.01
_DEEP_ENOUGH: Final = 1e-4
_FRACTION: Final = 1e-6
_SAFETY: Final = 1e-9
_THRESHOLDS: Final = (1e-6, 0.25, 0.5, 0.75, 1.0)


@njit(cache=True, nogil=True)
def _base(row: Floats, side: float, lower: Floats, upper: Floats, turned: Bools) -> float:
    """The right side once columns stand at their lower ends, and turned ones at their upper ends."""
    right = side
    for j in range(row.shape[0]):
        if row[j] != 0.0:
            right -= row[j] * (upper[j] if turned[j] else lower[j])
    return right


@njit(cache=True, nogil=True)
def _cut(row: Floats, right: float, delta: float, whole: Bools, turned: Bools, out: Floats) -> float:
    """Coefficients over the shifted columns into ``out``; their right side, 0 where there is no cut."""
    scaled = right / delta
    f0 = scaled - np.floor(scaled)
    if f0 < _LEAST_FRACTION or f0 > 1.0 - 1e-6:
        return 0.0
    for j in range(row.shape[0]):
        value = row[j] / delta
        if value == 0.0:
            out[j] = 0.0
        elif whole[j]:
            down = np.floor(value)
            out[j] = down + min(value - down, f0) / f0
        else:
            out[j] = max(-value if turned[j] else value, 0.0) / f0
    return float(np.ceil(scaled))


@njit(cache=True, nogil=True)
def _is_fraction(value: float) -> bool:
    step = value - np.floor(value)
    return bool(_FRACTION < step < 1.0 - _FRACTION)


@njit(cache=True, nogil=True)
def _touches_fraction(row: Floats, whole: Bools, x: Floats) -> bool:
    for k in range(row.shape[0]):  # noqa: SIM110 - compiled: no generators
        if whole[k] and row[k] != 0.0 and _is_fraction(x[k]):
            return True
    return False


@njit(cache=True, nogil=True)
def round_row(  # noqa: C901, PLR0912 - compiled: plain loops
    row: Floats, side: float, boxes: tuple[Floats, Floats, Bools], x: Floats, found: Floats
) -> float:
    """The cut of ``row · x >= side`` that x breaks most.

    Args:
        row: coefficients by column.
        side: lower side.
        boxes: lower ends, upper ends, and which columns are whole.
        x: point to cut off.
        found: the coefficients of the cut.

    Returns:
        Its lower side; -inf where x keeps all cuts.
    """
    lower, upper, whole = boxes
    n = row.shape[0]
    if not _touches_fraction(row, whole, x):
        return -np.inf
    turned = np.zeros(n, dtype=np.bool_)
    out = np.zeros(n)
    deepest, answer = _DEEP_ENOUGH, -np.inf
    last = -1
    for threshold in _THRESHOLDS:
        count = 0
        for j in range(n):
            turned[j] = not whole[j] and row[j] < 0.0 and x[j] - lower[j] > threshold * (upper[j] - lower[j])
            count += turned[j]
        if count == last:
            continue
        last = count
        right = _base(row, side, lower, upper, turned)
        for k in range(n):
            if not whole[k] or row[k] == 0.0 or not _is_fraction(x[k]):
                continue
            top = _cut(row, right, abs(row[k]), whole, turned, out)
            if top == 0.0:
                continue
            activity, norm, shift = 0.0, 0.0, 0.0
            for j in range(n):
                if out[j] != 0.0:
                    activity += out[j] * (upper[j] - x[j] if turned[j] else x[j] - lower[j])
                    shift += out[j] * (-upper[j] if turned[j] else lower[j])
                    norm += out[j] * out[j]
            depth = (top - activity) / np.sqrt(norm) if norm > 0.0 else 0.0
            if depth > deepest:
                deepest = depth
                for j in range(n):
                    found[j] = -out[j] if turned[j] else out[j]
                answer = top + shift - _SAFETY * max(1.0, abs(top))
    return answer
