"""From weights of patterns to one pattern per block: the integer master."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import highspy
import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.small import quiet_highs

__all__ = ["Choice", "choose"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Choice:
    """One pattern per block and values of the master columns."""

    value: float
    patterns: tuple[Pattern, ...]
    columns: tuple[int, ...]


def choose(master: Master, patterns: list[Pattern], *, seconds: float, gap: float) -> Choice | None:
    """The best choice among these patterns, or None when HiGHS finds none in time."""
    highs = quiet_highs()
    highs.setOptionValue("time_limit", seconds)
    highs.setOptionValue("mip_rel_gap", gap)
    kinf = highspy.kHighsInf
    for row in master.rows:
        highs.addRow(
            row.lower if row.lower > -inf else -kinf,
            row.upper if row.upper < inf else kinf,
            0,
            np.array([], dtype=np.int32),
            np.array([]),
        )
    for _ in range(master.blocks):
        highs.addRow(1.0, 1.0, 0, np.array([], dtype=np.int32), np.array([]))
    for column in master.columns:
        indices = np.array([row for row, _ in column.use], dtype=np.int32)
        highs.addCol(
            column.cost,
            column.lower,
            column.upper,
            len(indices),
            indices,
            np.array([v for _, v in column.use]),
        )
    for pattern in patterns:
        used = np.flatnonzero(pattern.use)
        indices = np.append(used, len(master.rows) + pattern.block).astype(np.int32)
        highs.addCol(pattern.cost, 0.0, 1.0, len(indices), indices, np.append(pattern.use[used], 1.0))
    n = len(master.columns) + len(patterns)
    highs.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.full(n, highspy.HighsVarType.kInteger))
    highs.run()
    info = highs.getInfo()
    if int(info.primal_solution_status) != 2:  # noqa: PLR2004 - kSolutionStatusFeasible
        return None
    x = np.array(highs.getSolution().col_value)
    chosen = tuple(
        pattern
        for pattern, weight in zip(patterns, x[len(master.columns) :], strict=True)
        if weight > 0.5  # noqa: PLR2004
    )
    columns = tuple(round(value) for value in x[: len(master.columns)])
    return Choice(float(info.objective_function_value), chosen, columns)
