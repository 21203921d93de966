"""What did not change from one problem to the next is taken over, and only that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from models.hardware import NodeGrowth
from models.problem import Problem
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import GOAL_INPUTS, changes_goal, cost_goal, power_goal
from planner.optimization.formulation.index import Index
from tests.builders import a_candidate, a_demand, a_pool, a_problem, an_incumbent

SMALL = a_candidate(cost=1.5, startup_cost=0.5, current=1, power_w=300.0)
LARGE = a_candidate(variant="large", gpus_per_pod=4, rated_rps=3.0, surge_rps=3.5, cost=5.0, power_w=900.0)


def a_fleet(**fields: Any) -> Problem:
    pools = [a_pool(nodes=3, growth=NodeGrowth(gpus_per_node=8, max_nodes=2, usd_per_node_h=3.0))]
    found = a_problem(
        [a_demand(rps=6.0), a_demand("code", rps=1.0)], [SMALL, LARGE, a_candidate("code")], pools
    )
    return found.but(**fields)


def dearer(problem: Problem) -> Problem:
    return problem.but(candidates=tuple(c.but(cost=c.cost + 1.0) for c in problem.candidates))


def busier(problem: Problem) -> Problem:
    demands = (a_demand(rps=9.0), *(d for d in problem.demands if d.service != "chat"))
    return problem.but(demands=tuple(sorted(demands, key=lambda d: d.service)))


def one_service_less(problem: Problem) -> Problem:
    return problem.but(
        demands=tuple(d for d in problem.demands if d.service != "code"),
        candidates=tuple(c for c in problem.candidates if c.service != "code"),
    )


def smaller(problem: Problem) -> Problem:
    return problem.but(pools=(a_pool(nodes=1),))


def placed(problem: Problem) -> Problem:
    node = problem.pools[0].nodes[0].id
    return problem.but(incumbents=(an_incumbent(SMALL, node),))


def bounded_changes(problem: Problem) -> Problem:
    return problem.but(max_changes=2)


CHANGES = (dearer, busier, one_service_less, smaller, placed, bounded_changes)


def all_of(index: Index) -> list[object]:
    """Every group, so that all of them are known."""
    return [
        index.by_role, index.role_keys, index.by_pool, index.unusual, index.incumbents_of, index.tracked,
        index.guests_of, [column.tolist() for column in index.figures[1:]],
    ]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_formulation_that_follows_another_is_the_one_from_nothing(
    change: Callable[[Problem], Problem],
) -> None:
    before = formulate(a_fleet())
    all_of(before.index)
    for make in (cost_goal, power_goal, changes_goal):
        before.index.once(make, GOAL_INPUTS)
    problem = change(a_fleet())
    after, anew = formulate(problem, before=before), formulate(problem)
    assert after.program == anew.program
    assert all_of(after.index) == all_of(anew.index)
    for make in (cost_goal, power_goal, changes_goal):
        assert after.index.once(make, GOAL_INPUTS) == make(anew.index)


def test_more_load_leaves_groups_and_goals_as_they_are() -> None:
    before = Index(a_fleet())
    all_of(before)
    goal = before.once(cost_goal, GOAL_INPUTS)
    after = before.followed_by(busier(a_fleet()))
    assert after.by_pool is before.by_pool
    assert after.once(cost_goal, GOAL_INPUTS) is goal
    assert after.guests_of == {}
