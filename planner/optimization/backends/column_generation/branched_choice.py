"""The choice among listed patterns of most blocks, with the largest blocks as they are, in HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final, NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.finish import NO_CHOICE, Choice
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.highs import has_point, quiet_highs, says_none, scaled
from planner.optimization.program import Key
from planner.optimization.protocol import Cancelled, never

__all__ = ["ChoiceModel", "Ending", "WholeBlock"]

Floats = NDArray[np.float64]

_WEIGHT: Final = 1e4
"""Tolerances of HiGHS are absolute: costs are brought to a size that suits them."""

_GAP: Final = 1e-6

_WHILE: Final = 0.5
"""Wall time for a better choice after the bound is enough, s."""


class WholeBlock(NamedTuple):
    """A block as it is, with what is known of its cost.

    Attributes:
        block: its columns and rows.
        most: upper ends of its columns, none above their own.
        cost: of a step of each column.
        use: of the tying rows, columns x rows.
        told: prices of the tying rows, and what the block costs at least at them.
    """

    block: Block
    most: Floats
    cost: Floats
    use: Floats
    told: Sequence[tuple[Floats, float]]


class Ending(NamedTuple):
    """When a choice ends.

    Attributes:
        seconds: wall time.
        below: dearer choices are none; inf: all are welcome.
        target: a choice that costs no more is good enough.
        enough: a bound that is enough.
        cancelled: whether whoever asked wants an end.
    """

    seconds: float
    below: float
    target: float
    enough: float
    cancelled: Cancelled = never


class ChoiceModel:
    """The choice as it comes together; handed to HiGHS at the end.

    Args:
        master: rows that tie blocks, and columns of no block.
        patterns: of the blocks that are listed.
    """

    def __init__(self, master: Master, patterns: Sequence[Pattern]) -> None:
        self._patterns = tuple(patterns)
        self._masters = len(master.columns)
        self._keys: list[Key] = []
        dearest = max((abs(pattern.cost) for pattern in patterns), default=0.0)
        self._unit = dearest / _WEIGHT or 1.0
        self._sides = [(row.lower, row.upper) for row in master.rows]
        self._triples: list[tuple[int, int, float]] = []
        self._columns: list[tuple[float, float, float]] = []
        for column in master.columns:
            at = self._column(column.cost, float(column.lower), float(column.upper))
            self._triples += [(row, at, value) for row, value in column.use]
        row_of = {number: self._row(1.0, 1.0) for number in sorted({pattern.block for pattern in patterns})}
        for pattern in patterns:
            at = self._column(pattern.cost, 0.0, 1.0)
            used = np.flatnonzero(pattern.use).tolist()
            self._triples += [(row, at, float(pattern.use[row])) for row in used]
            self._triples.append((row_of[pattern.block], at, 1.0))

    def _column(self, cost: float, lower: float, upper: float) -> int:
        self._columns.append((cost / self._unit, lower, upper))
        return len(self._columns) - 1

    def _row(self, lower: float, upper: float) -> int:
        self._sides.append((lower, upper))
        return len(self._sides) - 1

    def add_whole(self, whole: WholeBlock) -> None:
        """A block in the place of its patterns."""
        (block, most, cost, use, told), place = whole, {}
        for j, column in enumerate(block.columns):
            place[column.key] = self._column(float(cost[j]), float(column.lower), float(most[j]))
            used = np.flatnonzero(use[j]).tolist()
            self._triples += [(row, place[column.key], float(use[j, row])) for row in used]
        self._keys += place
        for row in block.rows:
            lower, upper, values = scaled(row)
            at = self._row(lower, upper)
            self._triples += [(at, place[key], value) for key, value in zip(row.terms, values, strict=True)]
        for prices, bound in told:
            at = self._row(bound / self._unit, inf)
            weights = ((cost - use @ prices) / self._unit).tolist()
            self._triples += [
                (at, j, weight) for j, weight in zip(place.values(), weights, strict=True) if weight
            ]

    def best(self, ending: Ending) -> Choice:
        """The best choice that HiGHS finds in time."""
        if ending.below < inf:
            self._cost_at_most(ending.below)
        highs = quiet_highs()
        highs.passModel(self._model())
        highs.setOptionValue("mip_rel_gap", _GAP)
        highs.setOptionValue("objective_target", ending.target / self._unit)
        proven = self._stop_once_proven(highs, ending)
        if says_none(highs, ending.seconds):
            return replace(NO_CHOICE, bound=inf)
        info = highs.getInfo()
        bound = max([float(info.mip_dual_bound), *proven]) * self._unit
        if not has_point(highs):
            return replace(NO_CHOICE, bound=bound)
        value, x = float(info.objective_function_value) * self._unit, np.array(highs.getSolution().col_value)
        last = self._masters + len(self._patterns)
        taken = np.flatnonzero(x[self._masters : last] > 0.5)  # noqa: PLR2004 - one or none
        return Choice(
            value,
            tuple(self._patterns[i] for i in taken.tolist()),
            tuple(round(amount) for amount in x[: self._masters].tolist()),
            min(bound, value),
            {key: round(amount) for key, amount in zip(self._keys, x[last:].tolist(), strict=True)},
        )

    def _cost_at_most(self, most: float) -> None:
        at = self._row(-inf, most / self._unit)
        self._triples += [(at, column, cost) for column, (cost, _, _) in enumerate(self._columns) if cost]

    def _stop_once_proven(self, highs: highspy.Highs, ending: Ending) -> list[float]:
        """End a run whose bound is enough, but for a while in which a better choice may be found; the bound goes there."""
        proven = list[float]()

        def hear(_kind: object, _message: str, found: Any, answer: Any, _data: object) -> None:  # noqa: ANN401 - highspy
            if found.running_time > _WHILE and found.mip_dual_bound * self._unit >= ending.enough:
                proven.append(float(found.mip_dual_bound))
                answer.user_interrupt = True
            elif ending.cancelled():
                answer.user_interrupt = True

        highs.setCallback(hear, None)
        highs.startCallback(highspy.cb.HighsCallbackType.kCallbackMipInterrupt)
        return proven

    def _model(self) -> highspy.HighsLp:
        n, m = len(self._columns), len(self._sides)
        cost, lower, upper = np.array(self._columns).reshape(n, 3).T
        row, column, value = (np.array(part) for part in zip(*self._triples, strict=True))
        matrix = csc_array(coo_array((value, (row, column)), shape=(m, n)))
        sides = np.array(self._sides).reshape(m, 2)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, m
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost.copy(), lower.copy(), upper.copy()
        lp.row_lower_, lp.row_upper_ = sides[:, 0].copy(), sides[:, 1].copy()
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
        lp.a_matrix_.value_ = matrix.data
        lp.integrality_ = [highspy.HighsVarType.kInteger] * n
        return lp
