"""HiGHS is given a time for each run, and asked a second time before it is believed that there is nothing."""

from __future__ import annotations

from math import inf

import highspy
import numpy as np
import pytest

from planner.optimization.backends.highs import add_row, has_point, quiet_highs, run_for, says_none
from planner.optimization.program import Row

X, Y = ("x",), ("y",)


def a_program(*rows: Row) -> highspy.Highs:
    highs = quiet_highs()
    highs.addVars(2, np.zeros(2), np.full(2, 9.0))
    highs.changeColsIntegrality(2, np.arange(2, dtype=np.int32), np.full(2, highspy.HighsVarType.kInteger))
    for row in rows:
        add_row(highs, row, {X: 0, Y: 1})
    return highs


@pytest.mark.parametrize("size", [1, 10**4, 10**15])
def test_rows_of_any_size_hold(size: int) -> None:
    highs = a_program(Row(("sum",), {X: size, Y: 2 * size}, lower=5 * size, upper=5 * size))
    assert not says_none(highs, inf)
    assert has_point(highs)
    x, y = highs.getSolution().col_value
    assert round(x) + 2 * round(y) == 5


def test_what_cannot_be_is_said_after_two_runs() -> None:
    highs = a_program(Row(("sum",), {X: 2, Y: 2}, lower=3, upper=3))
    assert says_none(highs, inf)
    assert highs.getOptionValue("presolve")[1] == "off"
    assert not has_point(highs)


def test_every_run_has_its_own_time() -> None:
    highs = a_program(Row(("sum",), {X: 1, Y: 1}, lower=3))
    for _ in range(3):
        assert run_for(highs, 5.0) == highspy.HighsModelStatus.kOptimal
        assert highs.getOptionValue("time_limit")[1] >= 5.0
    before = highs.getRunTime()
    run_for(highs, 7.0)
    assert highs.getOptionValue("time_limit")[1] == pytest.approx(before + 7.0)
