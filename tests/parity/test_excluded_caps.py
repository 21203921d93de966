"""Caps of unserved shares that column generation excludes, against HiGHS on the whole program: there is no plan at any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from planner.optimization.backends.column_generation import ColumnGeneration
from planner.optimization.backends.engine import Ask, Termination
from planner.optimization.backends.pulp import PulpHighs
from planner.optimization.fairness import coarsest
from planner.optimization.formulation import formulate
from planner.optimization.program import Goal, IntegerProgram, Key, Row
from planner.optimization.scaling import GRID
from tests.random_problems import random_problem

pytestmark = pytest.mark.slow

Question = tuple[IntegerProgram, list[Mapping[Key, int]], range]


def questions(seeds: range) -> Iterator[Question]:
    """Programs with shares that may stay unserved, and caps in whole percents."""
    for seed in seeds:
        formulation = formulate(random_problem(seed, allow_unserved=True))
        index = formulation.index
        demands = tuple(one for one in index.problem.demands if not index.problem.promised(one))
        if demands:
            shares = list(coarsest(index, demands).values())
            whole = GRID * max(sum(terms.values()) for terms in shares)
            yield formulation.program, shares, range(0, whole, whole // 100)


def excluded(question: Question) -> int | None:
    program, shares, caps = question
    ask = Ask(program, Goal("excess", {}), seconds=20.0, gap=0.0)
    return ColumnGeneration().excluded_caps(ask, shares, caps)


def has_plan(program: IntegerProgram, shares: list[Mapping[Key, int]], cap: int) -> bool:
    rows = [Row(("unserved", str(number)), terms, upper=cap) for number, terms in enumerate(shares)]
    ask = Ask(program.plus(rows=rows), Goal("feasible", {}), seconds=20.0, gap=0.0)
    return PulpHighs().minimize(ask).termination is not Termination.INFEASIBLE


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_there_is_no_plan_at_a_cap_that_is_excluded(first: int) -> None:
    for question in questions(range(first, first + 20)):
        count = excluded(question)
        if count:
            program, shares, caps = question
            assert not has_plan(program, shares, caps[count - 1])


def test_caps_are_excluded_at_all() -> None:
    counts = [excluded(question) for question in questions(range(60))]
    assert any(counts)
    assert any(count == 0 for count in counts)
