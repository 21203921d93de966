"""The published heuristics on whole problems: cycles until they rest, and services with two ways to be served."""

from __future__ import annotations

import pytest

from models.problem import Problem
from models.variant import Role
from planner.optimization.heuristics.solvers import HEURISTICS, greedy_counts
from planner.optimization.protocol import SolveOptions
from planner.optimization.solve import solve
from planner.referee import assess
from tests.builders import a_candidate, a_demand, a_pool, a_problem

WHOLE, PREFILL, DECODE = "chat/whole@east", "chat/p@west", "chat/d@west"


def test_greedy_gives_back_what_growth_made_too_much() -> None:
    candidates = [
        a_candidate(variant="dear", cost=10.0, current=3),
        a_candidate(variant="cheap", rated_rps=8.0),
    ]
    # 7 req/s are missing and one cheap replica carries 8, so that a dear one may go.
    assert greedy_counts(a_problem(candidates=candidates)) == {"chat/dear@east": 2, "chat/cheap@east": 1}


def test_greedy_rests_where_it_started() -> None:
    problem = a_problem(candidates=[a_candidate(current=10), a_candidate(variant="big", rated_rps=4.0)])
    assert greedy_counts(problem) == {"chat/small@east": 10}


def both_paths(most: int) -> Problem:
    """10 req/s; at most so many whole replicas at 1 req/s, prefill at 2 and decode at 1 req/s beside them."""
    candidates = [
        a_candidate(variant="whole", max_replicas=most),
        a_candidate(variant="p", pool="west", role=Role.PREFILL, rated_rps=2.0),
        a_candidate(variant="d", pool="west", role=Role.DECODE),
    ]
    return a_problem([a_demand()], candidates, [a_pool(), a_pool("west")])


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize(
    ("most", "counts"),
    [(6, {WHOLE: 6, PREFILL: 2, DECODE: 4}), (12, {WHOLE: 10})],
    ids=["the-rest", "nothing-is-left"],
)
def test_the_share_that_one_path_leaves_is_asked_of_the_other(
    name: str, most: int, counts: dict[str, int]
) -> None:
    problem = both_paths(most)
    solution = solve(problem, solver=name, options=SolveOptions()).solution
    assert solution.counts == counts
    assessment = assess(problem, solution)
    assert (assessment.unserved_rps, assessment.violations) == (0, ())


def test_a_heuristic_serves_what_would_not_survive_a_loss() -> None:
    demand = a_demand(survive={"share": 1.0, "failure_domains": ("east",)})
    problem = a_problem([demand])
    assessment = assess(problem, solve(problem, solver="greedy", options=SolveOptions()).solution)
    assert assessment.unserved_rps == 0
    assert [violation.family for violation in assessment.violations] == ["survive"]
