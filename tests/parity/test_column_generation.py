"""Column generation against HiGHS on the whole program: valid bounds, equal statuses, plans that hold."""

from __future__ import annotations

import pytest

from models.solution import Status
from planner.optimization import solve
from planner.optimization.backends.column_generation import ColumnGeneration
from planner.optimization.backends.engine import Ask, Outcome
from planner.optimization.exact import WholeProgram
from planner.optimization.protocol import SolveOptions
from planner.referee import check
from tests.random_problems import random_problem

pytestmark = pytest.mark.slow

TOLERANCE = 2e-4
"""Levels are held within 0.01 %, so later ones may differ by as much."""


class Watched(ColumnGeneration):
    """Column generation alone, whose bound is compared with its own plan each time."""

    def minimize(self, ask: Ask) -> Outcome:
        outcome = super().minimize(ask)
        if outcome.values is not None and outcome.bound is not None:
            value = ask.goal.activity(outcome.values)
            assert outcome.bound <= value + 1e-6 * max(1.0, abs(value))
            assert not ask.program.broken(outcome.values)
        return outcome


@pytest.mark.parametrize("allow_unserved", [False, True])
@pytest.mark.parametrize("first", range(0, 60, 10))
def test_bounds_are_valid_and_plans_hold(first: int, *, allow_unserved: bool) -> None:
    for seed in range(first, first + 10):
        problem = random_problem(seed, allow_unserved=allow_unserved)
        options = SolveOptions(time_limit_s=20.0, gap=1e-6)
        ours = WholeProgram(Watched(), name="column-generation")(problem, options).solution
        theirs = solve(problem, solver="pulp", options=SolveOptions(gap=0.0)).solution
        assert check(problem, ours) == ()
        if theirs.status is Status.INFEASIBLE:
            assert not ours.has_plan
        elif ours.has_plan:
            ours_first, theirs_first = ours.proof.levels[0], theirs.proof.levels[0]
            assert ours_first.bound is not None
            assert ours_first.bound <= theirs_first.value * (1 + TOLERANCE) + 1e-6


@pytest.mark.parametrize("seed", range(0, 40, 5))
def test_with_the_whole_program_behind_it_the_answer_is_the_optimum(seed: int) -> None:
    problem = random_problem(seed)
    options = SolveOptions(time_limit_s=20.0, gap=0.0)
    ours = solve(problem, solver="column-generation", options=options).solution
    theirs = solve(problem, solver="pulp", options=options).solution
    assert ours.status is theirs.status
    for mine, other in zip(ours.proof.levels, theirs.proof.levels, strict=True):
        assert mine.value == pytest.approx(other.value, rel=TOLERANCE, abs=1e-6)
