"""The choice of replicas under their own rows and the cuts so far: a small integer program in HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Final

import highspy
import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.highs import add_row, has_point, quiet_highs, says_none
from planner.optimization.backends.interruption import stopping
from planner.optimization.backends.splitting.parts import Parts
from planner.optimization.backends.splitting.shares import Cut
from planner.optimization.program import Key
from planner.optimization.protocol import Cancelled, never

__all__ = ["Choice", "Choices"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SLIGHT: Final = 1e-9
"""Coefficients of a cut below this part of its largest are taken at the end of their column's box."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Whole values of the chosen columns (None: none in time), a bound on their goal, whether there are none at all."""

    values: Ints | None
    bound: float
    impossible: bool = False


class Choices:
    """Chosen columns with their own rows, and a growing list of cuts."""

    def __init__(self, parts: Parts, goal: Floats, *, cancelled: Cancelled, seed: int) -> None:
        """``goal``: weights by chosen column, the largest 1."""
        self._parts = parts
        self._cancelled = cancelled
        self._lower = np.array([float(column.lower) for column in parts.chosen])
        self._upper = np.array([float(column.upper) for column in parts.chosen])
        self._own = 0
        self._sides: list[float] = []
        self._highs = quiet_highs()
        self._highs.HandleUserInterrupt = cancelled is not never
        self._highs.setOptionValue("random_seed", seed)
        n = len(parts.chosen)
        self._every = np.arange(n, dtype=np.int32)
        self._highs.addVars(n, self._lower, self._upper)
        self._highs.changeColsCost(n, self._every, goal)
        self._highs.changeColsIntegrality(n, self._every, np.full(n, highspy.HighsVarType.kInteger))
        self._add_own()

    def _add_own(self) -> None:
        place: dict[Key, int] = {column.key: number for number, column in enumerate(self._parts.chosen)}
        for row in self._parts.own:
            if not row.terms:
                continue
            add_row(self._highs, row, place)
            self._own += 1

    def add(self, cuts: Sequence[Cut]) -> None:
        """Take in cuts."""
        for cut in cuts:
            terms, side = cut.terms.copy(), cut.side
            slight = (np.abs(terms) <= _SLIGHT * np.abs(terms).max(initial=0.0)) & (terms != 0)
            side -= float(np.maximum(terms * self._lower, terms * self._upper)[slight].sum())
            terms[slight] = 0.0
            used = np.flatnonzero(terms).astype(np.int32)
            self._highs.addRow(side, highspy.kHighsInf, len(used), used, terms[used])
            self._sides.append(side)

    def best(self, *, gap: float, seconds: float, beyond: float = 0.0) -> Choice:
        """A choice of the least goal that keeps all cuts by at least ``beyond``."""
        if seconds <= 0:
            return Choice(None, -inf)
        self._widen(beyond)
        self._highs.setOptionValue("mip_rel_gap", gap)
        with stopping(self._cancelled, self._highs.cancelSolve):
            if says_none(self._highs, seconds):
                return Choice(None, inf, impossible=True)
        info = self._highs.getInfo()
        bound = float(info.mip_dual_bound)
        if not has_point(self._highs):
            return Choice(None, bound if isfinite(bound) else -inf)
        values = np.round(np.array(self._highs.getSolution().col_value)).astype(np.int64)
        return Choice(values, min(bound, float(info.objective_function_value)) if isfinite(bound) else -inf)

    def _widen(self, beyond: float) -> None:
        n = len(self._sides)
        if n:
            sides = np.array(self._sides)
            rows = np.arange(self._own, self._own + n, dtype=np.int32)
            self._highs.changeRowsBounds(  # type: ignore[attr-defined]
                n, rows, sides + beyond, np.full(n, highspy.kHighsInf)
            )
