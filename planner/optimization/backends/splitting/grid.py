"""Shares of a linear program onto the grid: those that are whole already stay, HiGHS chooses for the few others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.small import SmallProgram
from planner.optimization.backends.splitting.parts import Parts
from planner.optimization.program import Column, IntegerProgram, Key, fold
from planner.optimization.scaling import GRID

__all__ = ["on_grid"]

Floats = NDArray[np.float64]

_WHOLE: Final = 1e-5
"""Grid steps from a whole number that are the rounding of floats."""

_MANY: Final = 600
"""Shares up to which all are chosen anew where those near by have no place."""

_NEAR: Final = 2
"""Grid steps up and down from where a share stands that it may go."""


def on_grid(
    parts: Parts,
    program: IntegerProgram,
    choice: Mapping[Key, int],
    shares: Floats,
    *,
    seconds: float,
) -> dict[Key, int] | None:
    """Values of the whole program near some shares; None where none are found.

    Args:
        parts: of the program.
        program: every row of it is checked in exact integers.
        choice: values of the chosen columns.
        shares: of all columns that follow, the whole grid = 1.
        seconds: wall time at most.
    """
    steps = np.asarray(shares) * GRID
    nearest = np.round(steps)
    few, all_ = list[Column](), list[Column]()
    settled = dict(choice)
    for column, step, near in zip(parts.shares, steps.tolist(), nearest.tolist(), strict=True):
        value = min(max(int(near), column.lower), column.upper)
        settled[column.key] = value
        all_.append(column)
        if abs(step - near) > _WHOLE:
            lower, upper = max(column.lower, value - _NEAR), min(column.upper, value + _NEAR)
            few.append(Column(column.key, lower, upper))
    for open_ in (few, all_ if len(all_) <= _MANY else []):
        found = _chosen(parts, settled, open_, seconds)
        if found is not None and not program.broken(found):
            return found
    return None


def _chosen(
    parts: Parts, settled: Mapping[Key, int], open_: Sequence[Column], seconds: float
) -> dict[Key, int] | None:
    """Values with those of some columns chosen anew; None where there are none."""
    names = {column.key for column in open_}
    fixed = {key: value for key, value in settled.items() if key not in names}
    rows = [fold(row, fixed) for row in parts.tied]
    if any(not row.terms and not row.holds({}) for row in rows):
        return None
    if not open_:
        return dict(fixed)
    small = SmallProgram(open_, [row for row in rows if row.terms])
    answer = small.minimize({}, gap=0.0, seconds=seconds)
    return None if answer.values is None else fixed | answer.values
