"""Smaller programs have the same optimum, and their answers are answers of the program as it was asked."""

from __future__ import annotations

import random

import pytest

from planner.optimization.backends.presolve import reduced
from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row, assemble
from tests.engines import Enumerating, an_ask

Y: Key = ("y", "s")


def a_service(rng: random.Random) -> tuple[IntegerProgram, Goal]:
    """One service that owes a share, on three candidates in two pools, with starts that may or may not weigh."""
    names: list[Key] = [("n", name) for name in "abc"]
    rates = {key: rng.choice((1, 2, 2, 3, 4)) for key in names}
    columns = [Column(key, 0, rng.choice((1, 2, 4))) for key in names]
    columns += [Column(("start", key[1]), 0, 4) for key in names]
    columns.append(Column(Y, rng.choice((0, 1)), 3))
    rows = [
        Row(("rate",), {**rates, Y: -2}, lower=0),
        Row(("headroom",), {**{key: rng.choice((0, 1, 2)) for key in names}, Y: -1}, lower=-1),
        Row(("gpus", "p"), {names[0]: rng.choice((1, 2)), names[1]: rng.choice((1, 2, 4))}, upper=rng.choice((2, 4))),
        Row(("gpus", "q"), {names[2]: 1}, upper=rng.choice((0, 2))),
        Row(("power",), {key: rng.choice((1, 2, 3)) for key in names}, upper=rng.choice((4, 9))),
        *(Row(("start", key[1]), {("start", key[1]): 1, key: -1}, lower=-1) for key in names),
    ]  # fmt: skip
    terms: dict[Key, int] = {Y: -rng.choice((0, 5, 9))} | {key: rng.choice((0, 1, 2, 3)) for key in names}
    if rng.random() < 0.5:
        terms |= {("start", key[1]): rng.choice((0, 1)) for key in names}
    return assemble(columns, rows), Goal("cost", {key: value for key, value in terms.items() if value})


@pytest.mark.parametrize("seed", range(40))
def test_the_optimum_stays_and_the_answer_holds(seed: int) -> None:
    program, goal = a_service(random.Random(seed))  # noqa: S311 - cases, not secrets
    small = reduced(program, goal)
    whole, less = (Enumerating().minimize(an_ask(one, goal)) for one in (program, small.program))
    assert whole.termination is less.termination
    if whole.values is not None and less.values is not None:
        answer = small.whole(less.values)
        assert not program.broken(answer)
        assert all(column.lower <= answer[column.key] <= column.upper for column in program.columns)
        assert goal.activity(answer) == goal.activity(whole.values)


def test_what_the_cases_reduce() -> None:
    cases = [a_service(random.Random(seed)) for seed in range(40)]  # noqa: S311 - cases, not secrets
    found = [reduced(program, goal) for program, goal in cases]
    assert sum(bool(small.settled) for small in found) > 10
    assert sum(bool(small.stands_in) for small in found) > 5


def a_pair(*, most: int = 9) -> IntegerProgram:
    """Two of ``d`` carry what one of ``c`` carries, in the same pool."""
    c, d = ("n", "c"), ("n", "d")
    rows = (Row(("rate",), {c: 4, d: 2}, lower=7), Row(("gpus",), {c: 2, d: 1}, upper=8))
    return IntegerProgram((Column(c, 0, 9), Column(d, 0, most)), rows)


@pytest.mark.parametrize(
    ("most", "dearer", "left_out"), [(9, 4, True), (9, 5, True), (9, 3, False), (3, 4, False), (4, 4, True)]
)
def test_a_candidate_is_left_out_where_another_stands_in_and_is_never_short(
    most: int, dearer: int, left_out: bool
) -> None:
    goal = Goal("cost", {("n", "c"): dearer, ("n", "d"): 2})
    small = reduced(a_pair(most=most), goal)
    assert (("n", "c") in small.stands_in) is left_out
    if left_out:
        assert small.stands_in["n", "c"] == (("n", "d"), 2)
        assert small.start({("n", "c"): 1, ("n", "d"): 1}) == {("n", "c"): 0, ("n", "d"): 3}
