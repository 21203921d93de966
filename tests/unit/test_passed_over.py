"""Cost per req/s of candidates that were passed over, where GPUs are paid by the node."""

from __future__ import annotations

import pytest

from models.explanation import Rejection
from models.problem import Problem
from planner.optimization.explaining.passed_over import passed_over
from tests.builders import a_candidate, a_pool, a_problem, a_solution

SMALL = "chat/small@east"


def a_rented_problem(nodes: int = 0) -> Problem:
    """GPUs cost nothing by themselves in east, where nodes of 8 cost 24; west sells single replicas at 5."""
    candidates = [
        a_candidate(cost=0.0, rated_rps=2.0),
        a_candidate(variant="big", cost=0.0, gpus_per_pod=4, rated_rps=3.0),
        a_candidate(pool="west", cost=5.0, rated_rps=1.0),
    ]
    growth = {"gpus_per_node": 8, "usd_per_node_h": 24.0}
    return a_problem(candidates=candidates, pools=[a_pool(nodes=nodes, growth=growth), a_pool("west")])


def rejections(problem: Problem, added: int) -> dict[str, Rejection]:
    solution = a_solution(problem, {SMALL: 5}, nodes_added={"east": added} if added else {})
    return {f"{each.variant}@{each.pool}": each for each in passed_over(problem, solution, ())}


def test_a_replica_costs_its_part_of_a_node() -> None:
    found = rejections(a_rented_problem(), added=1)
    # 3 $/h per GPU: 1 GPU for 2 req/s in use, 4 GPUs for 3 req/s passed over
    assert found["big@east"].facts == {
        "cost_per_rps": 4.0,
        "instead": SMALL,
        "instead_cost_per_rps": 1.5,
    }
    assert found["small@west"].facts["cost_per_rps"] == 5.0


@pytest.mark.parametrize(("added", "cost"), [(0, 0.0), (1, 4.0)])
def test_nodes_of_the_pools_own_are_there_anyway(added: int, cost: float) -> None:
    assert rejections(a_rented_problem(nodes=1), added)["big@east"].facts["cost_per_rps"] == cost
