"""Blocks read as covering problems: what is owed is what is served, also where the unserved share is known."""

from __future__ import annotations

import pytest

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.items import covering_block
from planner.optimization.program import Column, Key, Row

N: Key = ("n", "a/v@p")
Y: Key = ("y", "a")
Z: Key = ("z", "a")
DEMAND = Row(("demand", "a"), {Y: 1, Z: 1}, 10, 10)
RATE = Row(("rate", "a"), {N: 4, Y: -1}, lower=0)


def a_block(z: tuple[int, int], *more: Row) -> Block:
    return Block([Column(N, 0, 9), Column(Y, 0, 10), Column(Z, *z)], [DEMAND, RATE, *more])


@pytest.mark.parametrize(
    ("block", "owed", "fillers"),
    [
        (a_block((0, 10)), 10, 10),
        (a_block((3, 3)), 7, 0),
        (a_block((0, 3)), 10, 3),
        (a_block((2, 5)), 8, 3),
        (a_block((0, 10), Row(("unserved", "a"), {Z: 1}, upper=0)), 10, 0),
        (a_block((0, 10), Row(("unserved", "a"), {Z: 1}, lower=4, upper=4)), 6, 0),
        (a_block((0, 10), Row(("least", "a"), {Y: 1}, lower=8)), 10, 2),
    ],
    ids=["free", "fixed", "capped", "between", "held at none", "held", "least served"],
)
def test_what_is_owed_is_the_most_that_may_be_served(block: Block, owed: int, fillers: int) -> None:
    found = covering_block(block)
    assert found is not None
    ((coverage, due),) = found.rows
    assert (coverage, due) == ({0: 4}, owed)
    assert (found.filler.most if found.filler else 0) == fillers
    served = found.values(iter([(0, 2)]), 0)
    assert served[Y] + served[Z] == 10


def test_limits_that_contradict_leave_no_covering_problem() -> None:
    assert covering_block(a_block((0, 3), Row(("unserved", "a"), {Z: 1}, lower=4, upper=4))) is None
