"""Whole numbers that keep every row, or the proof that there are none: branch and bound on `simplex.maximize`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from planner.referee.simplex import maximize

__all__ = ["WholeRow", "cannot_be", "whole_numbers"]

_CLOSE: Final = 1e-6
"""Distance from a whole number that is rounding. Coefficients here are small whole numbers."""


@dataclass(frozen=True, slots=True)
class WholeRow:
    """``Σ terms[j] · x[j] <= limit`` in whole numbers; columns that are not named have coefficient 0."""

    terms: Mapping[int, int]
    limit: int


def whole_numbers(upper: Sequence[int], rows: Sequence[WholeRow]) -> list[int] | None:
    """Whole numbers ``0 <= x[j] <= upper[j]`` that keep every row; None: there are none (exact).

    The rows must imply the upper bounds; stating them twice makes rounding easy and the tableau small.
    """
    stack = [([0] * len(upper), list(upper))]
    while stack:
        low, high = stack.pop()
        relaxed = _relaxed((low, high, upper), rows)
        if relaxed is None:
            continue
        nearest = [min(max(round(value), lo), hi) for value, lo, hi in zip(relaxed, low, high, strict=True)]
        if all(sum(a * nearest[j] for j, a in row.terms.items()) <= row.limit for row in rows):
            return nearest
        open_columns = [j for j in range(len(upper)) if high[j] > low[j]]
        if open_columns:
            column = max(open_columns, key=lambda j: (abs(relaxed[j] - round(relaxed[j])), -j))
            cut = min(max(math.floor(relaxed[column] + _CLOSE), low[column]), high[column] - 1)
            below, above = list(high), list(low)
            below[column], above[column] = cut, cut + 1
            stack += [(low, below), (above, high)]
    return None


def cannot_be(upper: Sequence[int], rows: Sequence[WholeRow]) -> bool:
    """Whether not even fractions keep every row: much faster to tell, and a proof that no whole numbers do."""
    return _relaxed(([0] * len(upper), upper, upper), rows) is None


def _relaxed(
    bounds: tuple[Sequence[int], Sequence[int], Sequence[int]], rows: Sequence[WholeRow]
) -> list[float] | None:
    """A point of the relaxation between the bounds, or None where it is empty.

    ``bounds`` are low, high and the first upper bounds; the rows imply the latter. With x = low + x', each row whose
    right side is negative gets it as the coefficient of a column t <= 1 instead. x' = 0, t = 0 is then a start,
    and the relaxation has a point exactly if t reaches 1.
    """
    low, high, upper = bounds
    position = {j: i for i, j in enumerate((j for j in range(len(low)) if high[j] > low[j]), start=1)}
    lines = [({0: 1.0}, 1.0)]
    lines += [({position[j]: 1.0}, float(high[j] - low[j])) for j in position if high[j] < upper[j]]
    for row in rows:
        left = row.limit - sum(a * low[j] for j, a in row.terms.items())
        terms = {position[j]: float(a) for j, a in row.terms.items() if j in position}
        lines.append((terms | {0: float(max(0, -left))}, float(max(0, left))))
    width = len(position) + 1
    table = [[terms.get(column, 0.0) for column in range(width)] for terms, _ in lines]
    answer = maximize([1.0, *([0.0] * (width - 1))], table, [limit for _, limit in lines])
    if answer[0] < 1 - _CLOSE:
        return None
    return [low[j] + (answer[position[j]] if j in position else 0.0) for j in range(len(low))]
