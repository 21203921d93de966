"""The master problem: one pattern per block under the tying rows, as a linear program that grows.

Every tying row may be broken at a penalty, so that there always is an answer and prices are bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from typing import Final

import highspy
import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.highs import quiet_highs

__all__ = ["Master", "MasterAnswer", "MasterColumn", "TyingRow"]

Floats = NDArray[np.float64]

_LARGEST: Final = 1e6
"""Size of the largest penalty as HiGHS sees it."""


@dataclass(frozen=True, slots=True)
class TyingRow:
    """Sides of a tying row, scaled."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class MasterColumn:
    """A column of no block."""

    lower: float
    upper: float
    cost: float
    use: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class MasterAnswer:
    """What the linear program says.

    Attributes:
        value: its optimum, penalties included.
        broken: penalty-weighted use of broken rows.
        prices: of the tying rows; <= 0 where an upper side binds.
        worth: of one more block, by block.
        weights: of every pattern, in the order in which they were added.
        columns: values of the columns of no block.
    """

    value: float
    broken: float
    prices: Floats
    worth: Floats
    weights: Floats
    columns: Floats


class Master:
    """The linear program in HiGHS, warm from one answer to the next."""

    def __init__(
        self, rows: Sequence[TyingRow], columns: Sequence[MasterColumn], blocks: int, penalty: Floats
    ) -> None:
        self.rows = tuple(rows)
        self.columns = tuple(columns)
        self.blocks = blocks
        self.patterns: list[Pattern] = []
        self.penalty = penalty
        self._highs = quiet_highs()
        self._scale_goal()
        inf = highspy.kHighsInf
        lower = [row.lower if np.isfinite(row.lower) else -inf for row in rows] + [1.0] * blocks
        upper = [row.upper if np.isfinite(row.upper) else inf for row in rows] + [1.0] * blocks
        for low, high in zip(lower, upper, strict=True):
            self._highs.addRow(low, high, 0, np.array([], dtype=np.int32), np.array([]))
        self._slacks = 0
        for number, row in enumerate(rows):
            for side, sign in ((row.upper, -1.0), (row.lower, 1.0)):
                if np.isfinite(side):
                    self._add(penalty[number], 0.0, inf, [(number, sign)])
                    self._slacks += 1
        for column in columns:
            self._add(column.cost, column.lower, column.upper, column.use)
        self._first = self._slacks + len(columns)

    def _add(self, cost: float, lower: float, upper: float, use: Sequence[tuple[int, float]]) -> None:
        indices = np.array([row for row, _ in use], dtype=np.int32)
        self._highs.addCol(cost, lower, upper, len(indices), indices, np.array([value for _, value in use]))

    def add(self, patterns: Sequence[Pattern]) -> None:
        """More patterns."""
        if not patterns:
            return
        starts: list[int] = []
        indices: list[int] = []
        values: list[float] = []
        for pattern in patterns:
            starts.append(len(indices))
            used = np.flatnonzero(pattern.use)
            indices += [*used.tolist(), len(self.rows) + pattern.block]
            values += [*pattern.use[used].tolist(), 1.0]
        n = len(patterns)
        self._highs.addCols(
            n,
            np.array([pattern.cost for pattern in patterns]),
            np.zeros(n),
            np.full(n, highspy.kHighsInf),
            len(indices),
            np.array(starts, dtype=np.int32),
            np.array(indices, dtype=np.int32),
            np.array(values),
        )
        self.patterns += patterns

    def raise_penalties(self, factor: float) -> None:
        """Breaking a tying row costs so many times as much from now on."""
        self.penalty = self.penalty * factor
        self._scale_goal()
        weights = self._slack_weights()
        n = len(weights)
        self._highs.changeColsCost(n, np.arange(n, dtype=np.int32), weights)

    def _scale_goal(self) -> None:
        """Tolerances of HiGHS are absolute, and it gives up at costs beyond some size: it sees the goal in other units."""
        largest = max(float(np.abs(self.penalty).max(initial=0.0)), *(abs(c.cost) for c in self.columns), 1.0)
        self._highs.setOptionValue("user_objective_scale", -max(0, ceil(log2(largest / _LARGEST))))

    def _slack_weights(self) -> Floats:
        """The penalty of each slack, in their order."""
        return np.array(
            [
                self.penalty[number]
                for number, row in enumerate(self.rows)
                for side in (row.upper, row.lower)
                if np.isfinite(side)
            ]
        )

    def solve(self) -> MasterAnswer:
        """Solve the linear program as it stands."""
        self._highs.run()
        solution = self._highs.getSolution()
        x = np.array(solution.col_value)
        duals = np.array(solution.row_dual)
        slack = x[: self._slacks]
        return MasterAnswer(
            value=float(self._highs.getInfo().objective_function_value),
            broken=float(slack @ self._slack_weights()) if self._slacks else 0.0,
            prices=duals[: len(self.rows)],
            worth=duals[len(self.rows) :],
            weights=x[self._first :],
            columns=x[self._slacks : self._first],
        )

    def column_bound(self, prices: Floats) -> float:
        """Least contribution of the master columns at these prices."""
        total = 0.0
        for column in self.columns:
            reduced = column.cost - sum(prices[row] * value for row, value in column.use)
            if reduced:
                total += reduced * (column.lower if reduced > 0 else column.upper)
        return total

    def side_value(self, prices: Floats) -> float:
        """Σ price · side: the lower side where the price is positive, the upper one where it is negative."""
        total = 0.0
        for price, row in zip(prices, self.rows, strict=True):
            if price > 0:
                total += price * row.lower
            elif price < 0:
                total += price * row.upper
        return float(total)

    def clip(self, prices: Floats) -> Floats:
        """Prices with the signs that the sides of the rows allow."""
        clipped = prices.copy()
        for number, row in enumerate(self.rows):
            if not np.isfinite(row.lower):
                clipped[number] = min(clipped[number], 0.0)
            if not np.isfinite(row.upper):
                clipped[number] = max(clipped[number], 0.0)
        return clipped
