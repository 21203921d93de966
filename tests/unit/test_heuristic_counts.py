"""The published heuristics on whole problems: cycles until they rest, and services with two ways to be served."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import Problem
from models.variant import Role
from planner.optimization.heuristics import solvers
from planner.optimization.heuristics.solvers import HEURISTICS, greedy_counts, rescale_outcome
from planner.optimization.protocol import SolveOptions
from planner.optimization.solve import solve
from planner.referee import assess
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem

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


@pytest.mark.parametrize("name", HEURISTICS)
def test_so_many_requests_need_so_many_replicas_of_one(name: str) -> None:
    """Shares like 1/3 add up to a whole, so that no replica is one too many and none is kept."""
    pools, wrong = [a_pool(nodes=5)], {}
    for demand in range(1, 31):
        for running in range(40):
            problem = a_problem([a_demand(rps=float(demand))], [a_candidate(current=running)], pools)
            count = sum(HEURISTICS[name](problem).counts.values())
            if count != demand:
                wrong[demand, running] = count
    assert wrong == {}


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize(
    ("rps", "rated", "count"), [(0.3, 0.1, 3), (2.1, 0.7, 3), (1.1, 0.11, 10), (2.11, 0.7, 4), (7.7, 1.1, 7)]
)
def test_rates_are_the_decimals_that_people_wrote(name: str, rps: float, rated: float, count: int) -> None:
    problem = a_problem([a_demand(rps=rps)], [a_candidate(rated_rps=rated, current=6)])
    assert HEURISTICS[name](problem).counts == {"chat/small@east": count}


def two_services(rps: dict[str, float], gpus: int, **fields: dict[str, Any]) -> Problem:
    """Services whose replicas carry 1 req/s with one GPU, in one pool of so many GPUs; ``fields`` by service."""
    return a_problem(
        [a_demand(name, rps=rate) for name, rate in rps.items()],
        [a_candidate(name, **fields.get(name, {})) for name in rps],
        [a_pool(nodes=[a_node(gpus=gpus)])],
    )


WEIGHED = {
    "rescale-by-demand": ("rescale", two_services({"x": 100.0, "y": 10.0}, 55), (50, 5)),
    "fair-share-to-who-misses-most": (
        "fair-share",
        two_services({"x": 100.0, "y": 4.0}, 94, x={"current": 90}, y={"current": 2}),
        (92, 2),
    ),
    "rescale-by-resident-tokens": (
        "rescale",
        two_services(
            {"x": 30.0, "y": 30.0}, 40, x={"kv_tokens_per_rps": 900.0}, y={"kv_tokens_per_rps": 300.0}
        ),
        (30, 10),
    ),
    "fair-share-by-resident-tokens": (
        "fair-share",
        two_services({"x": 6.0, "y": 6.0}, 4, x={"kv_tokens_per_rps": 900.0}, y={"kv_tokens_per_rps": 300.0}),
        (4, 0),
    ),
}


@pytest.mark.parametrize(("name", "problem", "counts"), WEIGHED.values(), ids=WEIGHED)
def test_services_are_weighed_by_their_demand(name: str, problem: Problem, counts: tuple[int, int]) -> None:
    solution = solve(problem, solver=name, options=SolveOptions()).solution
    assert tuple(solution.count(candidate.id) for candidate in problem.candidates) == counts
    assert solution.proof.notes == ()


def going_round() -> Problem:
    """Each candidate is told the room that the service's maximum leaves; rescale fills both, then takes both back."""
    candidates = [
        a_candidate(variant="large", gpus_per_pod=3, current=2),
        a_candidate(rated_rps=1.5, cost=4.0, current=2, min_replicas=1),
        a_candidate("code", rated_rps=1.5),
    ]
    demands = [a_demand(rps=3.0, max_replicas=3), a_demand("code", rps=5.5, max_replicas=1)]
    return a_problem(demands, candidates, [a_pool(nodes=[a_node(gpus=9)])])


def test_cycles_that_go_round_answer_their_best_fleet_and_say_so() -> None:
    solution = solve(going_round(), solver="rescale", options=SolveOptions()).solution
    # The other fleet of the round has one large and one small replica, 2.5 req/s for the 3 of chat.
    assert solution.counts == {"chat/large@east": 2, "chat/small@east": 2, "code/small@east": 1}
    assert solution.proof.notes == (
        "did not come to rest; of 2 fleets that it passes through, the one that serves most",
    )


def test_where_the_round_starts_does_not_matter() -> None:
    start = {"chat/large@east": 1, "chat/small@east": 1, "code/small@east": 1}
    elsewhere = going_round().but(
        candidates=tuple(c.but(current=start[c.id]) for c in going_round().candidates)
    )
    assert rescale_outcome(elsewhere) == rescale_outcome(going_round())


def test_cycles_without_rest_answer_the_best_fleet_they_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = [
        a_candidate(variant="dear", cost=10.0, current=3),
        a_candidate(variant="cheap", rated_rps=8.0),
    ]
    problem = a_problem(candidates=candidates)
    rest = HEURISTICS["cost-aware"](problem)
    assert (rest.rests, rest.counts) == (True, {"chat/dear@east": 2, "chat/cheap@east": 1})
    monkeypatch.setattr(solvers, "_CYCLES", 1)
    cut = HEURISTICS["cost-aware"](problem)
    assert (cut.rests, cut.counts) == (False, {"chat/dear@east": 3, "chat/cheap@east": 1})
