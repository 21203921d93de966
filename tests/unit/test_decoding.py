"""From values to a solution in a canonical form."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import BucketRating, Candidate, Problem, VariantBounds
from models.solution import Borrowed, BucketShare, Served
from planner.optimization.decoding import (
    bucket_shares,
    canonical_counts,
    counts_of,
    loans,
    nodes_added,
    served_shares,
)
from planner.optimization.formulation.index import Index
from planner.optimization.solve import solve
from planner.referee import check
from tests.builders import a_bucket, a_candidate, a_demand, a_pool, a_problem, an_incumbent

RATING = BucketRating(rated_rps=1.0, surge_rps=1.0)


def trio(**changes: Any) -> tuple[Candidate, ...]:
    """Three candidates that differ in their names; ``b_...`` changes a field of the second."""
    second = {name.removeprefix("b_"): value for name, value in changes.items()}
    return (a_candidate(variant="a"), a_candidate(variant="b", **second), a_candidate(variant="c"))


@pytest.mark.parametrize(
    ("changes", "canonical"),
    [
        ({}, {"a": 3, "b": 2, "c": 1}),
        ({"b_source": "elsewhere"}, {"a": 3, "b": 2, "c": 1}),
        ({"b_cost": 2.0}, {"a": 2, "b": 3, "c": 1}),
        ({"b_power_w": 5.0}, {"a": 2, "b": 3, "c": 1}),
        ({"b_current": 1}, {"a": 2, "b": 3, "c": 1}),
        ({"b_max_replicas": 9}, {"a": 2, "b": 3, "c": 1}),
        ({"b_pool": "west", "b_id": "chat/b@west"}, {"a": 2, "b": 3, "c": 1}),
    ],
)
def test_candidates_that_only_names_tell_apart_are_filled_in_the_order_of_names(
    changes: dict[str, Any], canonical: dict[str, int]
) -> None:
    candidates = trio(**changes)
    problem = a_problem(None, candidates, [a_pool(), a_pool("west")])
    counts = {candidate.id: count for candidate, count in zip(candidates, (1, 3, 2), strict=True)}
    found = canonical_counts(problem, counts)
    assert {problem.candidate[name].variant: count for name, count in found.items()} == canonical
    assert list(found) == sorted(found)


def test_incumbents_are_not_renamed() -> None:
    candidates = trio()
    problem = a_problem(None, candidates, incumbents=(an_incumbent(candidates[1], "east-0"),))
    counts = {candidates[1].id: 2}
    assert canonical_counts(problem, counts) == counts


def test_candidates_that_are_routed_by_length_are_not_renamed() -> None:
    candidates = [candidate.but(by_bucket={"all": RATING}) for candidate in trio()]
    counts = {candidates[1].id: 2}
    assert canonical_counts(a_problem(None, candidates), counts) == counts


def test_zeros_are_left_out() -> None:
    candidates = trio()
    problem = a_problem(None, candidates)
    values = {("n", candidate.id): count for candidate, count in zip(candidates, (0, 2, 0), strict=True)}
    assert counts_of(Index(problem), values) == {candidates[1].id: 2}
    assert canonical_counts(problem, counts_of(Index(problem), values)) == {candidates[0].id: 2}


def test_nodes_that_are_added() -> None:
    problem = a_problem(None, None, [a_pool(), a_pool("west")])
    assert nodes_added(Index(problem), {("m", "west"): 2}) == {"west": 2}
    assert nodes_added(Index(problem), {("m", "west"): 0}) == {}


def test_shares_are_told_by_path_and_bucket() -> None:
    candidates = [
        a_candidate("chat", "small"),
        a_candidate("code", "p", role="prefill"),
        a_candidate("code", "d", role="decode"),
        a_candidate("code", "b"),
    ]
    problem = a_problem([a_demand("chat"), a_demand("code")], candidates)
    values = {
        ("y", "chat", "aggregated"): 10_000,
        ("y", "code", "aggregated"): 2_500,
        ("y", "code", "disaggregated"): 5_000,
    }
    assert list(served_shares(Index(problem), values)) == [
        Served(service="chat", path="aggregated", share=1.0),
        Served(service="code", path="aggregated", share=0.25),
        Served(service="code", path="disaggregated", share=0.5),
    ]


def by_length(order: tuple[str, str]) -> Problem:
    ratings = dict.fromkeys(order, RATING)
    demand = a_demand(buckets=(a_bucket("short", 3.0), a_bucket("long", 1.0)), routing="by_length")
    return a_problem(
        [demand], [a_candidate(by_bucket=ratings), a_candidate(variant="tiny", by_bucket={"short": RATING})]
    )


@pytest.mark.parametrize("order", [("short", "long"), ("long", "short")])
def test_shares_of_buckets_are_in_the_order_of_the_demand(order: tuple[str, str]) -> None:
    small, tiny = "chat/small@east", "chat/tiny@east"
    values = {("a", small, "short"): 4_000, ("a", small, "long"): 10_000, ("a", tiny, "short"): 0}
    assert list(bucket_shares(Index(by_length(order)), values)) == [
        BucketShare(candidate=small, bucket="short", share=0.4),
        BucketShare(candidate=small, bucket="long", share=1.0),
    ]


def test_loans_are_told_where_there_are_any() -> None:
    host = a_candidate(guest_surge_rps={"night": 0.5})
    guest = a_demand("night", rps=1.0, kind="batch", shares_replicas_of="chat")
    problem = a_problem([a_demand(), guest], [host])
    assert list(loans(Index(problem), {("w", "night", "aggregated"): 1_234})) == [
        Borrowed(service="night", path="aggregated", share=0.1234)
    ]
    assert list(loans(Index(problem), {("w", "night", "aggregated"): 0})) == []


def test_bounds_of_a_variant_are_of_that_variant_alone() -> None:
    candidates = trio()
    demand = a_demand(rps=2.0, variants=(VariantBounds(variant="b", min_replicas=2),))
    problem = a_problem([demand], candidates)
    counts = {candidates[1].id: 2}
    assert canonical_counts(problem, counts) == counts
    solution = solve(problem, solver="pulp").solution
    assert solution.counts == counts
    assert check(problem, solution) == ()
