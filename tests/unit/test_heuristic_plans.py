"""Published heuristics asked for by name: what ``plan`` shows of them beside the optimum, and which limits they break."""

from __future__ import annotations

import pytest

from models.problem import Problem
from models.report import Assessment, Comparison, Report
from models.solution import Status
from planner.planning import plan_problem
from planner.rolling import with_rollout
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem

DEAR, CHEAP = "chat/dear@east", "chat/cheap@east"


def too_much_capacity() -> Problem:
    """20 req/s of a dear replica and 10 of a cheap one run for 15: either would do with one more cheap one."""
    candidates = [
        a_candidate(variant="dear", cost=15.0, rated_rps=20.0, current=1),
        a_candidate(variant="cheap", cost=5.0, rated_rps=10.0, current=1),
    ]
    return a_problem([a_demand(rps=15.0)], candidates)


def minima_beyond_the_gpus(*services: tuple[str, int], gpus: int) -> Problem:
    """Services that must have so many replicas of one GPU, in a pool where fewer GPUs are free."""
    return a_problem(
        [a_demand(name, rps=8.0) for name, _ in services],
        [a_candidate(name, min_replicas=least) for name, least in services],
        [a_pool(nodes=[a_node(free_gpus=gpus)])],
    )


def assessed(comparison: Comparison) -> Assessment:
    assert comparison.assessment is not None
    return comparison.assessment


def planned(problem: Problem, solver: str) -> Report:
    return with_rollout(plan_problem(problem, solver=solver))


@pytest.mark.parametrize("solver", ["cost-aware", "greedy"])
def test_greedy_keeps_15_where_10_is_enough(solver: str) -> None:
    theirs, ours = planned(too_much_capacity(), solver), planned(too_much_capacity(), "auto")
    assert (assessed(theirs.answer).cost, theirs.answer.solution.counts) == (15.0, {DEAR: 1})
    assert (assessed(ours.answer).cost, ours.answer.solution.counts) == (10.0, {CHEAP: 2})
    assert ours.answer.solution.status is Status.OPTIMAL
    assert {assessed(each).unserved_rps for each in (theirs.answer, ours.answer)} == {0.0}


def test_what_greedy_keeps_stands_beside_the_optimum_and_the_other_way_round() -> None:
    report = planned(too_much_capacity(), "auto")
    costs = {each.name: assessed(each).cost for each in report.beside}
    assert (costs["cost-aware"], costs["now"]) == (15.0, 20.0)


@pytest.mark.parametrize("solver", ["greedy", "cost-aware", "fair-share", "rescale"])
def test_a_published_minimum_without_gpus_is_shown_with_the_limit_that_it_breaks(solver: str) -> None:
    report = planned(minima_beyond_the_gpus(("chat", 3), gpus=0), solver)
    assert sum(report.answer.solution.counts.values()) >= 3
    assert "gpus" in {violation.family for violation in assessed(report.answer).violations}
    assert report.rollout is None


def test_published_floors_above_a_budget_are_kept_and_the_budget_is_broken() -> None:
    report = planned(minima_beyond_the_gpus(("a", 4), ("b", 3), gpus=6), "rescale")
    assert report.answer.solution.counts == {"a/small@east": 4, "b/small@east": 3}
    (broken,) = (v for v in assessed(report.answer).violations if v.family == "gpus")
    assert (broken.found, broken.allowed) == (7, 6)


def test_minima_beyond_the_gpus_have_no_plan_of_ours() -> None:
    report = planned(minima_beyond_the_gpus(("chat", 3), gpus=2), "auto")
    assert report.answer.solution.status is Status.INFEASIBLE
    assert report.rollout is None


def test_a_heuristic_that_keeps_the_limits_is_rolled_out_though_it_leaves_demand_unserved() -> None:
    problem = a_problem([a_demand(rps=20.0)], [a_candidate(current=4)])
    report = planned(problem, "greedy")
    assert assessed(report.answer).unserved_rps == pytest.approx(4.0)
    assert report.rollout is not None
    assert [step.count for wave in report.rollout.waves for step in wave.steps] == [12]
    assert report.fewest_moves is None
