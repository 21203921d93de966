"""A plan of almost the same cost with fewer changes."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import CostUnit, Problem
from models.scenario import ObjectiveLevel
from models.solution import Solution, Status
from planner.errors import ConfigurationError
from planner.optimization.protocol import SolveOptions
from planner.optimization.solvers import pulp_highs
from planner.rollout import fewest_moves, fewest_moves_problem
from tests.builders import a_candidate, a_demand, a_problem, a_solution

OLD, NEW = "chat/old@east", "chat/new@east"


def fleet(old_cost: float = 1.005, **fields: Any) -> Problem:
    """Four replicas of a variant that run, beside another that is a little cheaper."""
    candidates = [
        a_candidate(variant="old", current=4, cost=old_cost),
        a_candidate(variant="new", cost=1.0, startup_cost=0.0),
    ]
    return a_problem([a_demand(rps=4.0)], candidates, **fields)


def solve(problem: Problem) -> Solution:
    return pulp_highs()(problem, SolveOptions(time_limit_s=20)).solution


@pytest.mark.parametrize("unit", [CostUnit.USD_PER_H, CostUnit.RELATIVE])
def test_half_a_percent_is_not_worth_eight_changes(unit: CostUnit) -> None:
    problem = fleet(cost_unit=unit)
    best = solve(problem)
    assert best.counts == {NEW: 4}
    other = fewest_moves(problem, best, solve)
    assert other is not None
    assert other.counts == {OLD: 4}
    assert other.derived_from == problem.fingerprint


@pytest.mark.parametrize("unit", [CostUnit.USD_PER_H, CostUnit.RELATIVE])
def test_within_nothing_there_is_nothing_better(unit: CostUnit) -> None:
    problem = fleet(cost_unit=unit)
    assert fewest_moves(problem, solve(problem), solve, within=0.0) is None


def test_two_percent_more_is_too_much() -> None:
    """One replica of four may stay: 0.5 % more; two would be 1 %, which is within."""
    problem = fleet(old_cost=1.02)
    other = fewest_moves(problem, solve(problem), solve)
    assert other is not None
    assert other.counts == {OLD: 2, NEW: 2}


def test_a_budget_that_is_less_stays() -> None:
    problem = fleet(spend_usd_per_h=4.01)
    derived = fewest_moves_problem(problem, a_solution(problem, {NEW: 4}))
    assert derived.spend_usd_per_h == 4.01
    assert derived.objective.levels[:2] == (ObjectiveLevel.UNSERVED, ObjectiveLevel.CHANGES)


def test_relative_costs_get_no_budget_but_a_tolerance() -> None:
    problem = fleet(cost_unit=CostUnit.RELATIVE)
    derived = fewest_moves_problem(problem, a_solution(problem, {NEW: 4}), within=0.05)
    assert derived.spend_usd_per_h is None
    assert derived.objective.tolerance == 0.05
    assert derived.objective.levels[1:3] == (ObjectiveLevel.COST, ObjectiveLevel.CHANGES)


@pytest.mark.parametrize(
    ("status", "within", "message"),
    [
        (Status.INFEASIBLE, 0.01, "has no plan"),
        (Status.OPTIMAL, -0.1, "a share"),
        (Status.OPTIMAL, 2.0, "a share"),
    ],
)
def test_what_means_nothing_is_refused(status: Status, within: float, message: str) -> None:
    problem = fleet()
    with pytest.raises(ConfigurationError, match=message):
        fewest_moves_problem(problem, a_solution(problem, {NEW: 4}).but(status=status), within)
