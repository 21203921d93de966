"""The family `solution`: claims that mean nothing are violations, and never an exception."""

from __future__ import annotations

import math
from typing import Any

import pytest

from models.problem import Problem, ServingPath
from models.solution import Borrowed, BucketShare, Placement, Served, Solution, Status
from planner.referee import assess, check
from tests.builders import a_bucket, a_candidate, a_demand, a_problem, a_solution

CHAT = "chat/small@east"
AGGREGATED = ServingPath.AGGREGATED


def unchecked(solution: Solution, **fields: Any) -> Solution:
    """The solution as a careless program could make it."""
    return solution.model_copy(update=fields)


def unchecked_share(share: float, bucket: str | None = None) -> Served:
    return Served.model_construct(service="chat", path=AGGREGATED, share=share, bucket=bucket)


def keys_of(problem: Problem, solution: Solution) -> list[tuple[str, ...]]:
    assess(problem, solution)
    return [one.key for one in check(problem, solution) if one.family == "solution"]


PROBLEM = a_problem(allow_unserved=True)
GOOD = a_solution(PROBLEM, {CHAT: 10})


def test_a_plan_that_means_something_has_no_claim_to_complain_of() -> None:
    assert check(PROBLEM, GOOD) == ()


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        pytest.param(
            {"counts": {CHAT: 10, "chat/none@east": 2}}, ("chat/none@east",), id="unknown candidate"
        ),
        pytest.param({"counts": {CHAT: -1}}, (CHAT,), id="negative count"),
        pytest.param({"counts": {CHAT: 1.5}}, (CHAT,), id="half a replica"),
        pytest.param({"counts": {CHAT: math.nan}}, (CHAT,), id="a count that is no number"),
        pytest.param({"nodes_added": {"moon": 1}}, ("moon",), id="unknown pool"),
        pytest.param({"nodes_added": {"east": -1}}, ("east",), id="negative nodes"),
        pytest.param(
            {"served": (Served(service="none", path=AGGREGATED, share=1.0),)},
            ("none", "aggregated"),
            id="unknown service",
        ),
        pytest.param(
            {"served": (unchecked_share(math.nan),)}, ("chat", "aggregated"), id="share that is no number"
        ),
        pytest.param({"served": (unchecked_share(math.inf),)}, ("chat", "aggregated"), id="infinite share"),
        pytest.param({"served": (unchecked_share(-0.5),)}, ("chat", "aggregated"), id="negative share"),
        pytest.param({"served": (unchecked_share(1.2),)}, ("chat",), id="more than everything"),
        pytest.param(
            {"served": (unchecked_share(0.6), unchecked_share(0.6))}, ("chat",), id="parts above the whole"
        ),
        pytest.param(
            {"served": (unchecked_share(0.5, "all"),)}, ("chat", "aggregated"), id="bucket of a mixed service"
        ),
        pytest.param(
            {"served": (Served(service="chat", path=ServingPath.DISAGGREGATED, share=0.1),)},
            ("chat", "disaggregated"),
            id="path without candidates",
        ),
        pytest.param(
            {"borrowed": (Borrowed(service="chat", share=0.1),), "served": ()},
            ("chat", "aggregated"),
            id="borrows without a host",
        ),
        pytest.param(
            {"shares": (BucketShare(candidate="x", bucket="all", share=0.1),)},
            ("x", "all"),
            id="routed to nobody",
        ),
        pytest.param(
            {"shares": (BucketShare(candidate=CHAT, bucket="all", share=0.1),)},
            (CHAT, "all"),
            id="mixed, yet routed",
        ),
        pytest.param(
            {"placements": (Placement(candidate="x", node="east-0", pods=1),)},
            ("x", "east-0"),
            id="pod of nobody",
        ),
    ],
)
def test_a_claim_that_means_nothing_is_a_violation(fields: dict[str, Any], key: tuple[str, ...]) -> None:
    assert keys_of(PROBLEM, unchecked(GOOD, **fields)) == [key]


def test_a_bucket_goes_only_where_it_can_be_served() -> None:
    rating = {"rated_rps": 20.0, "surge_rps": 20.0}
    problem = a_problem(
        [a_demand(routing="by_length", buckets=(a_bucket("short"),))],
        [a_candidate(by_bucket={"short": rating}), a_candidate(variant="deaf")],
    )
    good = BucketShare(candidate=CHAT, bucket="short", share=1.0)
    assert check(problem, a_solution(problem, {CHAT: 1}, shares=(good,))) == ()
    bad = BucketShare(candidate="chat/deaf@east", bucket="short", share=0.1)
    assert keys_of(problem, a_solution(problem, {CHAT: 1}, shares=(good, bad))) == [
        ("chat/deaf@east", "short")
    ]
    whole = (Served(service="chat", path=AGGREGATED, share=1.0),)
    assert keys_of(problem, a_solution(problem, {CHAT: 1}, served=whole, shares=(good,))) == [
        ("chat", "aggregated")
    ]


def test_pods_that_were_not_there_cannot_stay() -> None:
    placed = (
        Placement(candidate=CHAT, node="east-0", pods=8, kept=3),
        Placement(candidate=CHAT, node="east-1", pods=2),
    )
    found = [one for one in check(PROBLEM, GOOD.but(placements=placed)) if one.family == "solution"]
    assert [(one.key, one.found, one.allowed) for one in found] == [((CHAT, "east-0"), 3, 0)]


@pytest.mark.parametrize("status", [Status.INFEASIBLE, Status.TIMED_OUT, Status.FAILED])
def test_without_a_plan_there_is_nothing_to_judge(status: Status) -> None:
    problem = a_problem()
    solution = a_solution(problem, {}, served=(), status=status)
    assert check(problem, solution) == ()
    assert assess(problem, solution).violations == ()
    assert assess(problem, solution).unserved_rps == 10.0


def test_what_cannot_be_meant_is_left_out_of_the_figures() -> None:
    answer = assess(PROBLEM, unchecked(GOOD, counts={CHAT: -3, "chat/none@east": 7}))
    assert (answer.cost, answer.gpus_used, answer.candidates) == (0.0, {"east": 0}, ())
