"""How a program is put together, and what it says of values."""

from __future__ import annotations

import itertools
import random

import pytest

from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row, assemble

X, Y, Z = ("n", "x"), ("n", "y"), ("n", "z")
FREE = (Column(X, 0, 9), Column(Y, 0, 9), Column(Z, 0, 9))
FIXED = (Column(X, 0, 9), Column(Y, 4, 4), Column(Z, 0, 9))


@pytest.mark.parametrize(
    ("columns", "row", "becomes"),
    [
        (FREE, Row(("r",), {X: 1, Y: 2}, 3, 7), Row(("r",), {X: 1, Y: 2}, 3, 7)),
        (FREE, Row(("r",), {X: 6, Y: -9}, lower=10), Row(("r",), {X: 2, Y: -3}, lower=4)),
        (FREE, Row(("r",), {X: 6, Y: -9}, upper=10), Row(("r",), {X: 2, Y: -3}, upper=3)),
        (FREE, Row(("r",), {X: 6}, -10, -7), Row(("r",), {X: 1}, -1, -2)),
        (FREE, Row(("r",), {X: 0, Y: 5}, lower=5), Row(("r",), {Y: 1}, lower=1)),
        (FIXED, Row(("r",), {X: 3, Y: 5}, lower=23), Row(("r",), {X: 1}, lower=1)),
        (FIXED, Row(("r",), {X: 3, Y: -5}, upper=1), Row(("r",), {X: 1}, upper=7)),
        (FIXED, Row(("r",), {Y: 1}, lower=5), Row(("r",), {}, lower=1)),
    ],
    ids=["as it is", "gcd lower", "gcd upper", "gcd both", "zero term", "folded", "folded upper", "impossible"],
)  # fmt: skip
def test_rows_are_folded_and_divided(columns: tuple[Column, ...], row: Row, becomes: Row) -> None:
    program = assemble(columns, [row])
    assert program.rows == (becomes,)
    assert program.columns == columns


@pytest.mark.parametrize(
    "row", [Row(("r",), {Y: 1}, 4, 4), Row(("r",), {}, lower=0), Row(("r",), {}, upper=0), Row(("r",), {})]
)
def test_rows_without_a_choice_that_hold_are_left_out(row: Row) -> None:
    assert assemble(FIXED, [row]).rows == ()


def test_a_row_that_no_value_can_keep_stays_and_is_named() -> None:
    never = Row(("gpus", "east"), {Y: 1}, upper=3)
    program = assemble(FIXED, [never, Row(("rate", "chat"), {X: 1}, lower=1)])
    assert [row.key for row in program.impossible] == [never.key]


@pytest.mark.parametrize("seed", range(30))
def test_no_integer_point_can_tell_the_rows_apart(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    columns = tuple(
        Column(key, low, rng.randint(low, 4)) for key in (X, Y, Z) for low in [rng.randint(-2, 2)]
    )
    rows = [
        Row((str(number),), {key: rng.choice((-6, -4, 0, 2, 3, 6)) for key in (X, Y, Z)},
            rng.choice((None, -9, 0, 5)), rng.choice((None, 7, 10)))
        for number in range(3)
    ]  # fmt: skip
    program = assemble(columns, rows)
    for point in itertools.product(*(range(c.lower, c.upper + 1) for c in columns)):
        values: dict[Key, int] = dict(zip((X, Y, Z), point, strict=True))
        assert all(row.holds(values) for row in rows) is (not program.broken(values))


def test_what_is_added_later_is_divided_too() -> None:
    program = assemble(FREE, []).plus(
        (Column(("t",), 0, 5),), (Row(("level",), {X: 4, ("t",): -2}, upper=3),)
    )
    assert program.rows == (Row(("level",), {X: 2, ("t",): -1}, upper=1),)
    assert program.column["t",] == Column(("t",), 0, 5)


def test_families_are_told_and_can_be_left_out() -> None:
    rows = [Row((name, str(n)), {X: 1}, lower=n) for n, name in enumerate(("rate", "gpus", "rate", "power"))]
    program = IntegerProgram(FREE, tuple(rows))
    assert program.families == ("rate", "gpus", "power")
    assert program.without(["rate", "quota"]).families == ("gpus", "power")
    assert program.without([]).rows == program.rows


def test_broken_rows_are_found_in_exact_integers() -> None:
    huge = 10**15
    row = Row(("rate",), {X: huge, Y: -1}, lower=0)
    program = IntegerProgram(FREE, (row,))
    assert program.broken({X: 0, Y: 1, Z: 0}) == (row,)
    assert program.broken({X: 1, Y: 9, Z: 0}) == ()


@pytest.mark.parametrize(
    ("goal", "value", "in_units"),
    [
        (Goal("cost", {X: 2_500_000, Y: 1}, unit=1e-6), 7_500_001, 7.500001),
        (Goal("changes", {X: 1}, constant=-5), -2, -2.0),
        (Goal("unserved", {}, constant=4, unit=0.5), 4, 2.0),
    ],
)
def test_a_goal_has_a_value_in_the_unit_that_people_read(goal: Goal, value: int, in_units: float) -> None:
    assert goal.activity({X: 3, Y: 1}) == value
    assert goal.in_units(value) == in_units
