"""Small integer programs in HiGHS, without the way through PuLP: subproblems are asked by the thousand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import highspy
import numpy as np

from planner.optimization.backends.highs import add_row, has_point, quiet_highs, says_none
from planner.optimization.program import Column, Key, Row

__all__ = ["SmallAnswer", "SmallProgram"]

_WEIGHT: Final = 1e4


@dataclass(frozen=True, slots=True)
class SmallAnswer:
    """Values where there are some, a valid lower bound, and whether it is proven that there is no point at all."""

    values: dict[Key, int] | None
    bound: float
    infeasible: bool = False


class SmallProgram:
    """Some columns and rows, kept in HiGHS and asked with several goals."""

    def __init__(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        self._rows = tuple(rows)
        self.keys = [column.key for column in columns]
        self._highs = quiet_highs()
        position = {key: number for number, key in enumerate(self.keys)}
        for column in columns:
            self._highs.addVar(float(column.lower), float(column.upper))
        n = len(columns)
        every = np.arange(n, dtype=np.int32)
        self._highs.changeColsIntegrality(n, every, np.full(n, highspy.HighsVarType.kInteger))
        for row in rows:
            add_row(self._highs, row, position)

    def minimize(self, weights: Mapping[Key, float], *, gap: float, seconds: float = inf) -> SmallAnswer:
        """The least weighted sum of the columns."""
        n = len(self.keys)
        cost = np.array([weights.get(key, 0.0) for key in self.keys], dtype=np.float64)
        # Tolerances are absolute, so the largest weight is brought to the same size whatever the unit of the goal is.
        unit = float(np.abs(cost).max(initial=0.0)) / _WEIGHT or 1.0
        cost /= unit
        self._highs.changeColsCost(n, np.arange(n, dtype=np.int32), cost)
        self._highs.setOptionValue("mip_rel_gap", gap)
        if says_none(self._highs, seconds):
            return SmallAnswer(None, inf, infeasible=True)
        info = self._highs.getInfo()
        bound = float(info.mip_dual_bound)
        if not has_point(self._highs):
            return SmallAnswer(None, bound * unit)
        value = float(info.objective_function_value)
        bound = (min(bound, value) if np.isfinite(bound) else value) * unit
        found = self._highs.getSolution().col_value
        values = {key: round(number) for key, number in zip(self.keys, found, strict=True)}
        # Within its tolerance HiGHS may break a row: then its bound still holds, its point does not.
        return SmallAnswer(values if all(row.holds(values) for row in self._rows) else None, bound)
