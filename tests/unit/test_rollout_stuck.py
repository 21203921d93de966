"""Fleets that cannot move: what forbids it, and the least that would let them."""

from __future__ import annotations

import pytest

from models.problem import Problem
from models.solution import Solution
from planner.rollout import roll_out
from planner.rollout.slack import with_slack
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem, a_solution, an_incumbent


def full_swap(size: int) -> tuple[Problem, Solution]:
    """Two services, each with one replica of ``size`` GPUs that fills a pool, want each other's pool."""
    figures = {"gpus_per_pod": size, "rated_rps": 10.0}
    candidates = [
        a_candidate("chat", "a", "east", current=1, **figures),
        a_candidate("chat", "a", "west", **figures),
        a_candidate("code", "b", "west", current=1, **figures),
        a_candidate("code", "b", "east", **figures),
    ]
    pools = [a_pool("east", 1, size), a_pool("west", 1, size)]
    seats = (an_incumbent(candidates[0], "east-0"), an_incumbent(candidates[2], "west-0"))
    problem = a_problem([a_demand("chat"), a_demand("code")], candidates, pools, incumbents=seats)
    return problem, a_solution(problem, {"chat/a@west": 1, "code/b@east": 1})


@pytest.mark.parametrize("size", [1, 2, 4])
def test_a_swap_without_room_is_stuck_by_exactly_one_replica(size: int) -> None:
    plan = roll_out(*full_swap(size))
    assert plan.waves == ()
    assert plan.stuck is not None
    assert (plan.stuck.proven, plan.stuck.smallest) == (True, True)
    assert plan.stuck.extra_gpus == {"east": size}
    assert plan.stuck.drop in ({"chat": 1.0}, {"code": 1.0})


@pytest.mark.parametrize(("extra", "stuck"), [(3, True), (4, False)])
def test_the_slack_that_is_named_does_and_less_does_not(extra: int, stuck: bool) -> None:
    problem, solution = full_swap(4)
    plan = roll_out(with_slack(problem, {problem.pools[0].id: extra}), solution)
    assert (plan.stuck is not None) is stuck


def test_the_smaller_of_two_slacks_is_named() -> None:
    """West wants two GPUs to let the small one in, east four for the large one."""
    candidates = [
        a_candidate("chat", "a", "east", current=1, gpus_per_pod=2, rated_rps=10.0),
        a_candidate("chat", "a", "west", gpus_per_pod=2, rated_rps=10.0),
        a_candidate("code", "b", "west", current=1, gpus_per_pod=4, rated_rps=10.0),
        a_candidate("code", "b", "east", gpus_per_pod=4, rated_rps=10.0),
    ]
    pools = [a_pool("east", 1, 4), a_pool("west", 1, 4)]
    seats = (an_incumbent(candidates[0], "east-0"), an_incumbent(candidates[2], "west-0"))
    problem = a_problem([a_demand("chat"), a_demand("code")], candidates, pools, incumbents=seats)
    plan = roll_out(problem, a_solution(problem, {"chat/a@west": 1, "code/b@east": 1}))
    assert plan.stuck is not None
    assert plan.stuck.extra_gpus == {"west": 2}


def test_room_on_two_nodes_is_no_room_for_one_pod() -> None:
    """Two free GPUs on each of two nodes; a pod of four needs one node, so four more GPUs and not none."""
    candidates = [
        a_candidate(variant="old", current=2, gpus_per_pod=2, rated_rps=5.0),
        a_candidate(variant="new", gpus_per_pod=4, rated_rps=10.0),
    ]
    nodes = [a_node("a", 4), a_node("b", 4)]
    incumbents = tuple({"candidate": "chat/old@east", "nodes": (node,)} for node in ("a", "b"))
    problem = a_problem(candidates=candidates, pools=[a_pool(nodes=nodes)], incumbents=incumbents)
    plan = roll_out(problem, a_solution(problem, {"chat/new@east": 1}))
    assert plan.stuck is not None
    assert (plan.stuck.extra_gpus, plan.stuck.drop) == ({"east": 4}, {"chat": 0.5})


@pytest.mark.parametrize(("rate", "drop"), [(4.0, 0.25), (5.0, 0.2), (3.5, 0.1429)])
def test_the_smallest_drop_is_that_of_one_replica(rate: float, drop: float) -> None:
    """Replicas of 1 req/s fill the pool, as many as the demand needs; one at a time is missing on the way."""
    ready = -int(-rate // 1)
    candidates = [a_candidate(variant="old", current=ready), a_candidate(variant="new")]
    problem = a_problem([a_demand(rps=rate)], candidates, [a_pool(nodes=1, gpus=ready)])
    plan = roll_out(problem, a_solution(problem, {"chat/new@east": ready}))
    assert plan.stuck is not None
    # 3.5 req/s on four replicas: without one, 3 of 3.5 are served
    assert plan.stuck.drop == {"chat": pytest.approx(drop, abs=2e-4)}
    assert plan.stuck.extra_gpus == {"east": 1}


def test_the_plan_goes_as_far_as_it_can() -> None:
    """Chat cannot change its variant in a full pool; code in another pool can."""
    candidates = [
        a_candidate("chat", "old", current=1, rated_rps=10.0),
        a_candidate("chat", "new", rated_rps=10.0),
        a_candidate("code", "old", "west", current=1, rated_rps=10.0),
        a_candidate("code", "new", "west", rated_rps=10.0),
    ]
    problem = a_problem(
        [a_demand("chat"), a_demand("code")], candidates, [a_pool("east", 1, 1), a_pool("west", 1, 2)]
    )
    plan = roll_out(problem, a_solution(problem, {"chat/new@east": 1, "code/new@west": 1}))
    assert [step.service for wave in plan.waves for step in wave.steps] == ["code"] * 3
    assert plan.stuck is not None
    assert (plan.stuck.extra_gpus, plan.proven_fewest) == ({"east": 1}, False)


def test_where_accelerators_are_not_the_matter_none_are_asked_for() -> None:
    problem, solution = full_swap(1)
    problem = problem.but(quotas=({"id": "q", "gpus": 2},))
    plan = roll_out(problem, solution)
    assert plan.stuck is not None
    assert plan.stuck.extra_gpus == {}
    assert plan.stuck.drop != {}


def test_a_minimum_is_not_given_up_for_a_while() -> None:
    problem, solution = full_swap(1)
    problem = problem.but(
        demands=tuple(demand.but(min_replicas=1) for demand in problem.demands),
        quotas=({"id": "q", "gpus": 2},),
    )
    plan = roll_out(problem, solution)
    assert plan.stuck is not None
    assert (plan.stuck.extra_gpus, plan.stuck.drop) == ({}, {})
    assert {violation.family for violation in plan.stuck.violations} >= {"bounds", "quota"}
