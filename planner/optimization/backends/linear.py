"""The linear relaxation of a program by HiGHS: a bound within a moment, for estimates that say that they are some."""

from __future__ import annotations

import highspy
import numpy as np

from planner.optimization.backends.highs import quiet_highs, run_for
from planner.optimization.program import Goal, IntegerProgram

__all__ = ["relaxed_value"]


def relaxed_value(program: IntegerProgram, goal: Goal, *, seconds: float) -> float | None:
    """The smallest value of a goal where columns need not be whole, in the goal's unit; None: none was found in time.

    Rows and goal are divided by their largest coefficient, since tolerances are absolute.
    """
    if program.impossible or seconds <= 0:
        return None
    highs = quiet_highs()
    scale = max((abs(value) for value in goal.terms.values()), default=1)
    highs.passModel(_model(program, goal, scale))
    if run_for(highs, seconds) != highspy.HighsModelStatus.kOptimal:
        return None
    return goal.in_units(highs.getInfo().objective_function_value * scale + goal.constant)


def _model(program: IntegerProgram, goal: Goal, scale: int) -> highspy.HighsLp:
    place = {column.key: number for number, column in enumerate(program.columns)}
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.columns), len(program.rows)
    lp.col_cost_ = np.array([goal.terms.get(column.key, 0) / scale for column in program.columns])
    lp.col_lower_ = np.array([column.lower for column in program.columns], dtype=float)
    lp.col_upper_ = np.array([column.upper for column in program.columns], dtype=float)
    lower, upper, starts, columns, values = [], [], [0], [], []
    for row in program.rows:
        largest = max((abs(value) for value in row.terms.values()), default=1)
        lower.append(-highspy.kHighsInf if row.lower is None else row.lower / largest)
        upper.append(highspy.kHighsInf if row.upper is None else row.upper / largest)
        columns += [place[key] for key in row.terms]
        values += [value / largest for value in row.terms.values()]
        starts.append(len(columns))
    lp.row_lower_, lp.row_upper_ = np.array(lower), np.array(upper)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(starts)
    lp.a_matrix_.index_ = np.array(columns)
    lp.a_matrix_.value_ = np.array(values)
    return lp
