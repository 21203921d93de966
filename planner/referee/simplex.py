"""A small linear program solver: the referee needs one where traffic is routed and pods are packed.

Dense tableau, floating point. What it answers is used as a hint and verified in exact arithmetic by its callers,
or only where it proves by a clear margin that something cannot be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["maximize"]

_EPSILON: Final = 1e-9
_PATIENCE: Final = 50
"""Pivots without progress after which Bland's rule takes over, which cannot cycle."""


def maximize(
    objective: Sequence[float], rows: Sequence[Sequence[float]], limits: Sequence[float]
) -> list[float]:
    """The columns x >= 0 that make ``objective · x`` largest with ``rows · x <= limits``.

    Args:
        objective: one coefficient per column.
        rows: one dense row of coefficients per limit.
        limits: right sides, none negative, so that x = 0 is a start; the program must be bounded.

    Returns:
        The value of each column at an optimal corner.
    """
    width, height = len(objective), len(rows)
    table = [
        [*map(float, row), *(1.0 if i == j else 0.0 for j in range(height)), float(limit)]
        for i, (row, limit) in enumerate(zip(rows, limits, strict=True))
    ]
    gains = [*map(float, objective), *([0.0] * (height + 1))]
    basis = list(range(width, width + height))
    stalled = 0
    while (entering := _entering(gains, careful=stalled > _PATIENCE)) is not None:
        leaving = _leaving(table, basis, entering)
        if leaving is None:
            break
        stalled = stalled + 1 if table[leaving][-1] <= _EPSILON else 0
        _pivot(table, gains, (leaving, entering))
        basis[leaving] = entering
    values = [0.0] * (width + height)
    for row, column in zip(table, basis, strict=True):
        values[column] = row[-1]
    return values[:width]


def _entering(gains: Sequence[float], *, careful: bool) -> int | None:
    """The column to bring in: the best gain, or (careful) the first one."""
    candidates = range(len(gains) - 1)
    if careful:
        return next((j for j in candidates if gains[j] > _EPSILON), None)
    best = max(candidates, key=gains.__getitem__)
    return best if gains[best] > _EPSILON else None


def _leaving(table: Sequence[Sequence[float]], basis: Sequence[int], entering: int) -> int | None:
    """The row that limits the entering column first; ties go to the smallest column in the basis."""
    ratios = [
        (row[-1] / row[entering], basis[i], i) for i, row in enumerate(table) if row[entering] > _EPSILON
    ]
    if not ratios:
        return None
    least = min(ratio for ratio, _, _ in ratios)
    return min((column, i) for ratio, column, i in ratios if ratio <= least + _EPSILON * max(1.0, least))[1]


def _pivot(table: list[list[float]], gains: list[float], at: tuple[int, int]) -> None:
    leaving, entering = at
    scale = table[leaving][entering]
    pivot_row = [value / scale for value in table[leaving]]
    table[leaving] = pivot_row
    filled = [(j, value) for j, value in enumerate(pivot_row) if value]
    for i, row in enumerate(table):
        if i != leaving and row[entering]:
            _subtract(row, row[entering], filled)
            row[-1] = max(row[-1], 0.0)
    _subtract(gains, gains[entering], filled)


def _subtract(row: list[float], factor: float, filled: Sequence[tuple[int, float]]) -> None:
    for j, value in filled:
        row[j] -= factor * value
