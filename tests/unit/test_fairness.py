"""Scarce capacity is shared out by priority class, max-min on shares inside a class."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import BucketRating, Problem
from models.scenario import Objective
from models.solution import Solution, Status
from planner.optimization import solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.builders import a_bucket, a_candidate, a_demand, a_pool, a_problem

ENGINES = pytest.mark.parametrize("solver", ["pulp", "cp-sat"])


def scarce(services: dict[str, dict[str, Any]], *, gpus: int = 0, **fields: Any) -> Problem:
    """Services by name with fields of their demand (``rate`` and ``gpus`` go to their candidate), on one node."""
    demands, candidates = [], []
    for name, given in services.items():
        own = dict(given)
        rate, size = own.pop("rate", 1.0), own.pop("size", 1)
        if rate is not None:
            candidates.append(a_candidate(name, rated_rps=rate, gpus_per_pod=size))
        demands.append(a_demand(name, **own))
    pool = a_pool(nodes=1 if gpus else 0, gpus=max(gpus, 1))
    return a_problem(demands, candidates, [pool], allow_unserved=True, **fields)


def solved(problem: Problem, solver: str) -> Solution:
    solution = solve(problem, solver=solver, options=SolveOptions(time_limit_s=30, gap=0)).solution
    assert solution.status is Status.OPTIMAL
    assert check(problem, solution) == ()
    return solution


def shares(problem: Problem, solver: str) -> dict[str, float]:
    """Served share by service."""
    figures = assess(problem, solved(problem, solver)).services
    return {f.service: pytest.approx(1 - f.unserved_share, abs=1e-9) for f in figures}


@ENGINES
@pytest.mark.parametrize(
    ("services", "gpus", "served"),
    [
        ({"a": {"rps": 4.0}, "b": {"rps": 4.0}}, 8, {"a": 1.0, "b": 1.0}),
        ({"a": {"rps": 4.0}, "b": {"rps": 4.0}}, 4, {"a": 0.5, "b": 0.5}),
        ({"a": {"rps": 8.0}, "b": {"rps": 2.0}}, 5, {"a": 0.5, "b": 0.5}),
        ({"a": {"rps": 2.0}, "b": {"rps": 4.0}}, 5, {"a": 1.0, "b": 0.75}),
        ({"a": {"rps": 2.0}, "b": {"rps": 2.0}, "c": {"rps": 2.0}}, 4, {"a": 0.5, "b": 0.5, "c": 1.0}),
        ({"a": {"rps": 4.0}, "b": {"rps": 4.0, "rate": None}}, 4, {"a": 1.0, "b": 0.0}),
        ({"a": {"rps": 4.0}, "b": {"rps": 4.0}, "c": {"rps": 9.0, "rate": None}}, 6, {"a": 0.75, "b": 0.75, "c": 0.0}),
        ({"a": {"rps": 4.0, "priority": 2}, "b": {"rps": 4.0}}, 5, {"a": 1.0, "b": 0.25}),
        ({"a": {"rps": 4.0, "priority": -1}, "b": {"rps": 4.0, "priority": 0}}, 5, {"a": 0.25, "b": 1.0}),
        ({"a": {"rps": 4.0, "kind": "batch"}, "b": {"rps": 4.0}}, 5, {"a": 0.25, "b": 1.0}),
        ({"a": {"rps": 4.0, "kind": "batch", "priority": 2}, "b": {"rps": 4.0}}, 5, {"a": 0.25, "b": 1.0}),
        ({"a": {"rps": 0.0}, "b": {"rps": 2.0}}, 1, {"a": 1.0, "b": 0.5}),
        ({"a": {"rps": 3.0, "best_effort": True}, "b": {"rps": 3.0, "best_effort": True}}, 0, {"a": 0.0, "b": 0.0}),
        ({"a": {"rps": 4.0, "max_replicas": 1}, "b": {"rps": 4.0}}, 8, {"a": 0.25, "b": 1.0}),
    ],
    ids=["ample", "half each", "shares, not rates", "whole replicas", "nobody twice", "no candidate",
         "one without a candidate does not spoil the rest", "priority", "priorities below zero", "batch last",
         "batch of a higher class", "no load", "nothing at all", "a maximum does not spoil the rest"],
)  # fmt: skip
def test_shares_are_max_min(
    services: dict[str, dict[str, Any]], gpus: int, served: dict[str, float], solver: str
) -> None:
    found = shares(scarce(services, gpus=gpus), solver)
    if "c" in served and len(set(served.values())) == 2 and min(served.values()) > 0:
        # Three that are alike on four replicas: two at a half and one whole, whichever.
        assert sorted(share.expected for share in found.values()) == pytest.approx(sorted(served.values()))
    else:
        assert found == served


@ENGINES
def test_whole_replicas_that_fit_nobody_evenly_go_where_the_worst_is_best(solver: str) -> None:
    # Two GPUs per replica of a, five GPUs: a takes two or four.
    problem = scarce({"a": {"rps": 3.0, "rate": 1.0, "size": 2}, "b": {"rps": 2.0}}, gpus=5)
    assert shares(problem, solver) == {"a": pytest.approx(2 / 3, abs=1e-4), "b": 0.5}


@ENGINES
def test_promises_come_before_best_effort(solver: str) -> None:
    problem = scarce({"a": {"rps": 4.0}, "b": {"rps": 4.0, "best_effort": True, "priority": 9}}, gpus=5)
    assert shares(problem.but(allow_unserved=False), solver) == {"a": 1.0, "b": 0.25}


@ENGINES
def test_ties_of_the_worst_are_decided_by_the_rest_and_then_by_load(solver: str) -> None:
    # One GPU, two services that each need one: serving the larger one leaves less load unserved.
    problem = scarce({"a": {"rps": 1.0}, "b": {"rps": 3.0, "rate": 3.0}}, gpus=1)
    solution = solved(problem, solver)
    assert solution.counts == {"b/small@east": 1}
    by_name = {level.name: level for level in solution.proof.levels}
    assert by_name["unserved-share/priority1"].value == 1.0
    assert by_name["unserved-load/priority1"].value == pytest.approx(1.0)
    assert by_name["unserved-load/priority1"].unit == "req/s"


@ENGINES
def test_buckets_of_a_service_that_is_routed_by_length_weigh_by_their_load(solver: str) -> None:
    rating = BucketRating(rated_rps=1.0, surge_rps=1.0)
    demand = a_demand("a", buckets=(a_bucket("short", 3.0), a_bucket("long", 1.0)), routing="by_length")
    candidate = a_candidate("a", by_bucket={"short": rating, "long": rating})
    problem = a_problem([demand], [candidate], [a_pool(nodes=1, gpus=2)], allow_unserved=True)
    assert assess(problem, solved(problem, solver)).unserved_rps == pytest.approx(2.0, abs=1e-3)


@ENGINES
def test_more_important_classes_are_solved_first_and_named(solver: str) -> None:
    problem = scarce(
        {
            "a": {"rps": 2.0, "priority": 3},
            "b": {"rps": 2.0, "kind": "batch", "priority": 3},
            "c": {"rps": 2.0},
        },
        gpus=3,
    )
    names = [level.name for level in solved(problem, solver).proof.levels]
    classes = ("priority3", "priority1", "priority3/batch")
    assert names == [
        *(f"{kind}/{label}" for label in classes for kind in ("unserved-share", "unserved-load")),
        "cost",
        "power",
        "changes",
    ]


@ENGINES
def test_nobody_may_stay_unserved_where_all_is_promised(solver: str) -> None:
    problem = a_problem(None, None, [a_pool(nodes=2)])
    (level, *_) = solved(problem, solver).proof.levels
    assert (level.name, level.value, level.gap) == ("unserved", 0.0, 0.0)


def test_service_is_what_the_first_level_asks_and_cost_what_the_second() -> None:
    problem = scarce({"a": {"rps": 4.0}}, gpus=8)
    assert solved(problem, "pulp").counts == {"a/small@east": 4}
    cheapest_first = problem.but(objective=Objective(levels=("cost", "unserved")))
    assert solved(cheapest_first, "pulp").counts == {}


def test_many_services_at_many_levels_end() -> None:
    services = {f"s{number:02}": {"rps": float(number), "rate": 1.0} for number in range(1, 16)}
    problem = scarce(services, gpus=100)
    found = [share.expected for share in shares(problem, "pulp").values()]
    assert min(found) >= 0.75
