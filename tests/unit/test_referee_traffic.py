"""Rows on traffic: demand, rate, headroom, survive; mixed and by length; guests on a host's replicas."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import Problem, ServingPath
from models.solution import Borrowed, BucketShare, Served, Solution
from models.variant import Role
from planner.referee import check
from tests.builders import a_bucket, a_candidate, a_demand, a_pool, a_problem, a_solution, fully_served

CHAT = "chat/small@east"
Broken = dict[tuple[str, tuple[str, ...]], tuple[float, float]]


def broken(problem: Problem, solution: Solution) -> Broken:
    return {(one.family, one.key): (one.found, one.allowed) for one in check(problem, solution)}


@pytest.mark.parametrize(
    ("demand", "candidate", "enough", "expected"),
    [
        pytest.param({"rps": 2.1}, {"rated_rps": 0.7}, 3, ("rate", 2.1, 1.4), id="three times 0.7 carry 2.1"),
        pytest.param(
            {}, {"rated_rps": 1.0, "surge_rps": 2.0}, 10, ("rate", 10.0, 9.0), id="rated, not surge"
        ),
        pytest.param(
            {"kind": "batch"},
            {"rated_rps": 0.1, "surge_rps": 2.0},
            5,
            ("rate", 10.0, 8.0),
            id="batch fills to tau",
        ),
        pytest.param(
            {"headroom": {"relative": 0.2}},
            {"rated_rps": 5.0, "surge_rps": 6.0},
            2,
            ("headroom", 12.0, 6.0),
            id="relative headroom is of the surge rate",
        ),
        pytest.param(
            {"headroom": {"burst_rps": 8.0}},
            {"rated_rps": 5.0, "surge_rps": 6.0},
            3,
            ("headroom", 18.0, 12.0),
            id="room for a burst",
        ),
        pytest.param(
            {"headroom": {"kv_tokens": 500.0}},
            {"rated_rps": 10.0, "kv_capacity_tokens": 750.0, "kv_tokens_per_rps": 100.0},
            2,
            ("headroom", 1500.0, 750.0),
            id="free KV tokens beside the resident ones",
        ),
        pytest.param(
            {"survive": {"share": 0.5, "failure_domains": ("west",)}},
            {"rated_rps": 5.0, "surge_rps": 5.0},
            2,
            ("rate", 10.0, 5.0),
            id="losing a domain where nothing runs costs nothing",
        ),
    ],
)
def test_one_replica_fewer_breaks_the_row(
    demand: dict[str, Any], candidate: dict[str, Any], enough: int, expected: tuple[str, float, float]
) -> None:
    problem = a_problem([a_demand(**demand)], [a_candidate(**candidate)])
    assert check(problem, a_solution(problem, {CHAT: enough})) == ()
    family, found, allowed = expected
    found_there = broken(problem, a_solution(problem, {CHAT: enough - 1}))
    assert found_there[family, ("chat", "aggregated", "both")] == (found, allowed)


def test_no_headroom_is_owed_for_batch() -> None:
    problem = a_problem(
        [a_demand(kind="batch", headroom={"relative": 1.0})], [a_candidate(rated_rps=1.0, surge_rps=10.0)]
    )
    assert check(problem, a_solution(problem, {CHAT: 1})) == ()


def test_headroom_is_owed_for_the_served_share_alone() -> None:
    problem = a_problem([a_demand(headroom={"burst_rps": 10.0})], [a_candidate()], allow_unserved=True)
    half = fully_served(problem, 0.5)
    assert check(problem, a_solution(problem, {CHAT: 10}, served=half)) == ()
    key = ("headroom", ("chat", "aggregated", "both"))
    assert broken(problem, a_solution(problem, {CHAT: 9}, served=half))[key] == (10.0, 9.0)


def test_unknown_kv_figures_contribute_no_tokens() -> None:
    problem = a_problem([a_demand(headroom={"kv_tokens": 1.0})], [a_candidate(rated_rps=100.0)])
    key = ("headroom", ("chat", "aggregated", "both"))
    assert broken(problem, a_solution(problem, {CHAT: 9}))[key] == (1.0, 0.0)


def test_the_largest_need_of_tokens_counts_whichever_candidate_runs() -> None:
    kv = {"rated_rps": 10.0, "kv_capacity_tokens": 1000.0}
    problem = a_problem(
        [a_demand(headroom={"kv_tokens": 500.0})],
        [
            a_candidate(kv_tokens_per_rps=50.0, **kv),
            a_candidate(variant="big", kv_tokens_per_rps=100.0, **kv),
        ],
    )
    key = ("headroom", ("chat", "aggregated", "both"))
    assert broken(problem, a_solution(problem, {CHAT: 1}))[key] == (1500.0, 1000.0)


def test_a_promise_must_be_kept_and_what_is_no_promise_need_not() -> None:
    problem = a_problem(
        [a_demand(), a_demand("extra", best_effort=True)], [a_candidate(), a_candidate("extra")]
    )
    none = a_solution(problem, {}, served=fully_served(problem, 0.25))
    rows = broken(problem.but(candidates=(), pools=()), none.but(served=()))
    assert rows == {("demand", ("chat",)): (0.0, 1.0)}
    assert check(problem.but(allow_unserved=True), a_solution(problem, {}, served=())) == ()


def test_nothing_is_owed_where_nothing_arrives() -> None:
    problem = a_problem([a_demand(rps=0.0)])
    assert check(problem, a_solution(problem, {}, served=())) == ()
    assert check(problem, a_solution(problem, {})) == ()


def test_a_burst_is_owed_even_where_nothing_arrives() -> None:
    problem = a_problem([a_demand(rps=0.0, headroom={"burst_rps": 3.0})])
    assert broken(problem, a_solution(problem, {}, served=())) == {("demand", ("chat",)): (0.0, 1.0)}
    assert broken(problem, a_solution(problem, {CHAT: 2})) == {
        ("headroom", ("chat", "aggregated", "both")): (3.0, 2.0)
    }
    assert check(problem, a_solution(problem, {CHAT: 3})) == ()


def disaggregated() -> Problem:
    return a_problem(
        [a_demand()],
        [
            a_candidate(variant="p", role=Role.PREFILL, rated_rps=5.0),
            a_candidate(variant="d", role=Role.DECODE, rated_rps=2.5),
        ],
    )


def test_each_role_of_a_path_carries_all_of_it() -> None:
    problem = disaggregated()
    assert check(problem, a_solution(problem, {"chat/p@east": 2, "chat/d@east": 4})) == ()
    assert broken(problem, a_solution(problem, {"chat/p@east": 1, "chat/d@east": 3})) == {
        ("rate", ("chat", "disaggregated", "prefill")): (10.0, 5.0),
        ("rate", ("chat", "disaggregated", "decode")): (10.0, 7.5),
    }


def test_two_paths_share_a_demand() -> None:
    problem = disaggregated()
    problem = problem.but(candidates=(*problem.candidates, a_candidate(rated_rps=4.0)))
    served = (
        Served(service="chat", path=ServingPath.AGGREGATED, share=0.8),
        Served(service="chat", path=ServingPath.DISAGGREGATED, share=0.2),
    )
    counts = {CHAT: 2, "chat/p@east": 1, "chat/d@east": 1}
    assert check(problem, a_solution(problem, counts, served=served)) == ()


def test_each_failure_domain_may_be_lost() -> None:
    problem = a_problem(
        [a_demand(survive={"share": 0.8, "failure_domains": ("east", "west")})],
        [a_candidate(), a_candidate(pool="west")],
        [a_pool(), a_pool("west")],
    )
    assert check(problem, a_solution(problem, {CHAT: 8, "chat/small@west": 8})) == ()
    assert broken(problem, a_solution(problem, {CHAT: 8, "chat/small@west": 7})) == {
        ("survive", ("chat", "aggregated", "both", "east")): (8.0, 7.0)
    }


def by_length(**demand: Any) -> Problem:
    """Short requests at 8/s and long ones at 2/s; ``small`` serves the short ones only."""
    short, long = {"rated_rps": 4.0, "surge_rps": 5.0}, {"rated_rps": 1.0, "surge_rps": 2.0}
    tokens = {"kv_tokens_per_rps": 10.0}
    return a_problem(
        [a_demand(routing="by_length", buckets=(a_bucket("short", 8.0), a_bucket("long", 2.0)), **demand)],
        [
            a_candidate(by_bucket={"short": short | tokens}, kv_capacity_tokens=50.0),
            a_candidate(
                variant="big",
                by_bucket={"short": short | tokens, "long": long | tokens},
                kv_capacity_tokens=50.0,
            ),
        ],
    )


def routed(problem: Problem, counts: dict[str, int], shares: dict[tuple[str, str], float]) -> Solution:
    parts = tuple(BucketShare(candidate=f"chat/{v}@east", bucket=b, share=a) for (v, b), a in shares.items())
    return a_solution(problem, {f"chat/{v}@east": n for v, n in counts.items()}, shares=parts)


SPLIT = {("small", "short"): 1.0, ("big", "long"): 1.0}


def test_replicas_carry_the_buckets_that_are_routed_to_them() -> None:
    problem = by_length()
    assert check(problem, routed(problem, {"small": 2, "big": 2}, SPLIT)) == ()
    assert broken(problem, routed(problem, {"small": 1, "big": 2}, SPLIT)) == {
        ("rate", ("chat", "aggregated", "both", CHAT)): (2.0, 1.0)
    }


def test_a_bucket_is_routed_as_far_as_it_is_served() -> None:
    problem = by_length()
    found = broken(problem, routed(problem, {"small": 2, "big": 3}, SPLIT | {("big", "short"): 0.5}))
    assert found == {("rate", ("chat", "aggregated", "both", "short")): (1.5, 1.0)}
    found = broken(problem, routed(problem, {"small": 2, "big": 2}, {("small", "short"): 1.0}))
    assert found == {("rate", ("chat", "aggregated", "both", "long")): (0.0, 1.0)}


@pytest.mark.parametrize(
    ("headroom", "counts", "key", "expected"),
    [
        # 8/5 = 1.6 and 2/2 = 1 replicas are busy at sigma
        pytest.param(
            {"relative": 1.0}, {"small": 4, "big": 1}, ("both", "chat/big@east"), (2.0, 1.0), id="relative"
        ),
        pytest.param({"burst_rps": 5.0}, {"small": 2, "big": 2}, ("both", CHAT), (2.4, 2.0), id="burst"),
        # 100 tokens are resident, each replica holds 50
        pytest.param({"kv_tokens": 120.0}, {"small": 2, "big": 2}, ("both",), (220.0, 200.0), id="tokens"),
    ],
)
def test_headroom_by_length(
    headroom: dict[str, float], counts: dict[str, int], key: tuple[str, ...], expected: tuple[float, float]
) -> None:
    problem = by_length(headroom=headroom)
    found = broken(problem, routed(problem, counts, SPLIT))
    assert found["headroom", ("chat", "aggregated", *key)] == expected
    assert check(problem, routed(problem, {"small": 4, "big": 4}, SPLIT)) == ()


def test_survival_by_length_may_route_anew() -> None:
    rating = {"rated_rps": 4.0, "surge_rps": 5.0}
    problem = a_problem(
        [
            a_demand(
                routing="by_length",
                buckets=(a_bucket("short", 5.0), a_bucket("long", 5.0)),
                survive={"share": 1.0, "failure_domains": ("east", "west")},
            )
        ],
        [
            a_candidate(pool="east", by_bucket={"short": rating, "long": rating}),
            a_candidate(pool="west", by_bucket={"short": rating}),
            a_candidate(variant="big", pool="west", by_bucket={"long": rating}),
        ],
        [a_pool(), a_pool("west")],
    )
    shares = (
        BucketShare(candidate=CHAT, bucket="short", share=1.0),
        BucketShare(candidate="chat/big@west", bucket="long", share=1.0),
    )
    counts = {CHAT: 2, "chat/small@west": 1, "chat/big@west": 2}
    assert check(problem, a_solution(problem, counts, shares=shares)) == ()
    fewer = counts | {"chat/small@west": 0}
    assert broken(problem, a_solution(problem, fewer, shares=shares)) == {
        ("survive", ("chat", "aggregated", "both", "east")): (0.0, 1.0)
    }


def with_guest(**candidate: Any) -> Problem:
    return a_problem(
        [a_demand(), a_demand("night", 4.0, kind="batch", best_effort=True, shares_replicas_of="chat")],
        [a_candidate(rated_rps=1.0, surge_rps=2.0, **candidate)],
    )


def borrowing(problem: Problem, share: float) -> Solution:
    own = (Served(service="chat", path=ServingPath.AGGREGATED, share=1.0),)
    return a_solution(problem, {CHAT: 10}, served=own, borrowed=(Borrowed(service="night", share=share),))


def test_guests_fill_what_the_host_leaves_up_to_saturation() -> None:
    # 20 req/s up to tau, 10 are the host's; each of the guest's takes 5 of the host's
    problem = with_guest(guest_surge_rps={"night": 0.4})
    assert check(problem, borrowing(problem, 0.5)) == ()
    assert broken(problem, borrowing(problem, 0.75)) == {
        ("rate", ("chat", "aggregated", "both", "borrowed")): (25.0, 20.0)
    }


def test_a_candidate_that_cannot_carry_a_guest_forbids_borrowing() -> None:
    problem = with_guest()
    assert broken(problem, borrowing(problem, 0.5)) == {
        ("rate", ("chat", "aggregated", "both", "night")): (2.0, 0.0)
    }


def test_guests_of_a_host_that_routes_by_length_get_the_replicas_that_are_left() -> None:
    # 1.6 of 4 small replicas and 1 of 4 big ones are busy at sigma; a replica stands for 1 req/s of the host
    problem = by_length()
    hosts = tuple(c.but(guest_surge_rps={"night": 0.5}) for c in problem.candidates)
    guest = a_demand("night", 4.0, kind="batch", best_effort=True, shares_replicas_of="chat")
    problem = problem.but(demands=(*problem.demands, guest), candidates=hosts)
    plan = routed(problem, {"small": 4, "big": 4}, SPLIT).but(served=fully_served(problem)[:2])
    assert check(problem, plan.but(borrowed=(Borrowed(service="night", share=0.675),))) == ()
    assert broken(problem, plan.but(borrowed=(Borrowed(service="night", share=0.7),))) == {
        ("rate", ("chat", "aggregated", "both", "borrowed")): (pytest.approx(8.2), 8.0)
    }


def test_a_guest_borrows_alike_for_each_of_its_buckets() -> None:
    problem = with_guest(guest_surge_rps={"night": 0.4})
    apart = borrowing(problem, 0.5).but(borrowed=(Borrowed(service="night", share=0.5, bucket="all"),))
    assert [key for family, key in broken(problem, apart) if family == "solution"] == [
        ("night", "aggregated")
    ]
