"""The largest shares that counts carry, and the fleet as it runs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from models.problem import Problem, ServingPath
from models.solution import Borrowed, Served
from models.variant import Role
from planner.referee import assess, best_service, check, state_of, state_with
from tests.builders import a_bucket, a_candidate, a_demand, a_pool, a_problem

CHAT = "chat/small@east"


def shares(problem: Problem, counts: dict[str, int]) -> dict[tuple[str, str, str | None], float]:
    return {
        (one.service, one.path.value, one.bucket): one.share for one in best_service(problem, counts).served
    }


def only(share: float, path: str = "aggregated") -> dict[tuple[str, str, str | None], float]:
    return {("chat", path, None): share} if share else {}


@pytest.mark.parametrize(
    ("demand", "candidate", "replicas", "share"),
    [
        ({}, {}, 10, 1.0),
        ({}, {}, 20, 1.0),
        ({}, {}, 3, 0.3),
        ({}, {}, 0, 0.0),
        ({"rps": 3.0}, {}, 1, 0.3333),
        ({"rps": 2.1}, {"rated_rps": 0.7}, 3, 1.0),
        ({"rps": 0.0}, {}, 0, 1.0),
        ({"headroom": {"relative": 0.25}}, {}, 10, 0.8),
        ({"headroom": {"burst_rps": 10.0}}, {}, 10, 0.5),
        ({"headroom": {"kv_tokens": 100.0}}, {"kv_capacity_tokens": 15.0, "kv_tokens_per_rps": 5.0}, 5, 0.5),
        ({"survive": {"failure_domains": ("east",)}}, {}, 10, 0.0),
        ({"kind": "batch", "headroom": {"relative": 0.25}}, {"rated_rps": 0.1, "surge_rps": 1.0}, 8, 0.8),
    ],
)
def test_the_largest_share_that_counts_carry(
    demand: dict[str, Any], candidate: dict[str, Any], replicas: int, share: float
) -> None:
    problem = a_problem([a_demand(**demand)], [a_candidate(**candidate)])
    assert shares(problem, {CHAT: replicas}) == only(share)


def test_the_scarcest_role_decides() -> None:
    problem = a_problem(
        candidates=[a_candidate(variant="p", role=Role.PREFILL), a_candidate(variant="d", role=Role.DECODE)]
    )
    assert shares(problem, {"chat/p@east": 9, "chat/d@east": 4}) == only(0.4, "disaggregated")


def test_the_second_path_takes_what_the_first_leaves() -> None:
    roles = [a_candidate(variant="p", role=Role.PREFILL), a_candidate(variant="d", role=Role.DECODE)]
    problem = a_problem(candidates=[a_candidate(), *roles])
    counts = {CHAT: 3, "chat/p@east": 9, "chat/d@east": 9}
    assert shares(problem, counts) == only(0.3) | only(0.7, "disaggregated")


SHORT, LONG = {"rated_rps": 4.0, "surge_rps": 4.0}, {"rated_rps": 1.0, "surge_rps": 1.0}


def by_length(**demand: Any) -> Problem:
    """8 short req/s and 2 long ones; ``small`` cannot serve the long ones."""
    return a_problem(
        [a_demand(routing="by_length", buckets=(a_bucket("long", 2.0), a_bucket("short", 8.0)), **demand)],
        [
            a_candidate(by_bucket={"short": SHORT}),
            a_candidate(variant="big", by_bucket={"short": SHORT, "long": LONG}),
        ],
        allow_unserved=True,
    )


@pytest.mark.parametrize(
    ("demand", "small", "big", "expected"),
    [
        ({}, 2, 2, {"long": 1.0, "short": 1.0}),
        ({}, 0, 4, {"long": 1.0, "short": 1.0}),
        ({}, 0, 2, {"long": 0.5, "short": 0.5}),
        ({}, 2, 0, {"short": 1.0}),
        ({}, 9, 1, {"long": 0.5, "short": 1.0}),
        ({"headroom": {"relative": 1.0}}, 0, 4, {"long": 0.5, "short": 0.5}),
        ({"headroom": {"burst_rps": 10.0}}, 0, 4, {"long": 0.5, "short": 0.5}),
        ({"survive": {"failure_domains": ("east",)}}, 8, 8, {}),
        ({"survive": {"failure_domains": ("west",)}}, 0, 2, {"long": 0.5, "short": 0.5}),
    ],
)
def test_buckets_are_routed_so_that_the_least_served_gets_most(
    demand: dict[str, Any], small: int, big: int, expected: dict[str, float]
) -> None:
    counts = {CHAT: small, "chat/big@east": big}
    problem = by_length(**demand)
    assert {bucket: share for (_, _, bucket), share in shares(problem, counts).items()} == expected
    assert check(problem, state_with(problem, counts)) == ()


def with_guests(**fields: Any) -> Problem:
    """Up to tau a replica carries 2 of the host's req/s, or 1 of a guest's."""
    guest = {"kind": "batch", "shares_replicas_of": "chat"} | fields
    return a_problem(
        [a_demand(), a_demand("night", 5.0, **guest), a_demand("study", 5.0, **(guest | {"priority": 2}))],
        [
            a_candidate(rated_rps=1.0, surge_rps=2.0, guest_surge_rps={"night": 1.0, "study": 1.0}),
            a_candidate("night", rated_rps=1.0),
        ],
        allow_unserved=True,
    )


def lent(problem: Problem, counts: dict[str, int]) -> dict[str, float]:
    return {one.service: one.share for one in best_service(problem, counts).borrowed}


def test_guests_borrow_by_priority() -> None:
    # 20 - 10 req/s of the host are left, which are 5 of a guest's
    assert lent(with_guests(), {CHAT: 10}) == {"study": 1.0}
    assert lent(with_guests(), {CHAT: 12}) == {"study": 1.0, "night": 0.4}


def test_guests_of_one_priority_are_brought_to_one_level() -> None:
    equal = with_guests()
    equal = equal.but(demands=tuple(demand.but(priority=1) for demand in equal.demands))
    assert lent(equal, {CHAT: 10}) == {"night": 0.5, "study": 0.5}
    assert lent(equal, {CHAT: 10, "night/small@east": 2}) == {"night": 0.3, "study": 0.7}


def test_a_guest_that_routes_by_length_is_lifted_where_it_is_served_least() -> None:
    # its own replica carries all of the short requests and none of the long ones: no loan lifts both
    guest = a_demand(
        "night",
        kind="batch",
        routing="by_length",
        buckets=(a_bucket("long", 1.0), a_bucket("short", 2.0)),
        shares_replicas_of="chat",
    )
    own = a_candidate("night", by_bucket={"short": SHORT})
    host = a_candidate(rated_rps=1.0, surge_rps=2.0, guest_surge_rps={"night": 1.0})
    problem = a_problem([a_demand(), guest], [host, own], allow_unserved=True)
    assert lent(problem, {CHAT: 10}) == {"night": 1.0}
    assert lent(problem, {CHAT: 10, own.id: 1}) == {}
    assert check(problem, state_with(problem, {CHAT: 10})) == ()


def test_guests_of_a_host_that_routes_by_length_get_what_is_left() -> None:
    guest = a_demand("night", 8.0, kind="batch", shares_replicas_of="chat")
    problem = by_length()
    hosts = tuple(c.but(guest_surge_rps={"night": 1.0}) for c in problem.candidates)
    problem = problem.but(demands=(*problem.demands, guest), candidates=hosts)
    # 4 of 8 replicas are busy
    counts = {CHAT: 4, "chat/big@east": 4}
    assert lent(problem, counts) == {"night": 0.5}
    assert check(problem, state_with(problem, counts)) == ()


def test_the_fleet_as_it_runs_is_what_is_on_order() -> None:
    problem = a_problem(candidates=[a_candidate(current=3, pending=2)])
    state = state_of(problem)
    assert state.counts == {CHAT: 5}
    assert state.served == (Served(service="chat", path=ServingPath.AGGREGATED, share=0.5),)
    assert state.derived_from == problem.fingerprint
    assert assess(problem, state).changes == 0
    assert [(v.family, v.found) for v in check(problem, state)] == [("demand", 0.5)]
    assert check(problem.but(allow_unserved=True), state) == ()


def test_a_state_with_guests_and_added_nodes_is_judged_like_a_plan() -> None:
    pool = a_pool(nodes=0, growth={"gpus_per_node": 8, "max_nodes": 2})
    problem = with_guests().but(pools=(pool,))
    state = state_with(problem, {CHAT: 12}, nodes_added={"east": 2})  # type: ignore[dict-item]
    assert state.borrowed == (Borrowed(service="study", share=1.0), Borrowed(service="night", share=0.4))
    assert check(problem, state) == ()


@pytest.mark.parametrize("seed", range(60))
def test_states_break_no_row_on_traffic_and_no_larger_share_would_do(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    problem, counts = a_random_state(rng)
    state = state_with(problem, counts)
    assert [v for v in check(problem, state) if v.family in ("rate", "headroom", "survive", "solution")] == []
    for one in state.served:
        if one.bucket is None and one.share < 1:
            more = tuple(s.but(share=round(s.share + 1e-4, 4)) if s is one else s for s in state.served)
            assert check(problem, state.but(served=more)) != ()


def a_random_state(rng: random.Random) -> tuple[Problem, dict[str, int]]:
    def figure(low: float, high: float) -> float:
        return round(rng.uniform(low, high), 3)

    names = ("long", "short", "tiny")
    candidates = []
    for role, variant, pool in [(r, v, p) for r in Role for v in "ab" for p in ("east", "west")]:
        ratings = {
            name: {
                "rated_rps": (rated := figure(0.5, 3)),
                "surge_rps": rated * 1.5,
                "kv_tokens_per_rps": figure(1, 50),
            }
            for name in names
            if rng.random() < 0.8
        }
        kv = {"kv_capacity_tokens": figure(100, 900), "kv_tokens_per_rps": figure(1, 50)}
        rated = figure(0.5, 3)
        candidates.append(
            a_candidate(
                variant=f"{role}-{variant}",
                pool=pool,
                role=role,
                rated_rps=rated,
                surge_rps=rated * 1.5,
                by_bucket=ratings,
                **kv,
            )
        )
    if rng.random() < 0.5:
        candidates = [c for c in candidates if c.role is Role.BOTH]
    demand = a_demand(
        routing=rng.choice(["mixed", "by_length"]),
        buckets=tuple(a_bucket(name, figure(1, 6)) for name in names),
        kind=rng.choice(["online", "online", "batch"]),
        headroom=rng.choice([{}, {"relative": 0.3}, {"burst_rps": 2.5}, {"kv_tokens": 150.0}]),
        survive=rng.choice([None, {"share": 0.6, "failure_domains": ("east", "west")}]),
    )
    problem = a_problem([demand], candidates, [a_pool(nodes=9), a_pool("west", nodes=9)], allow_unserved=True)
    return problem, {c.id: rng.randint(0, 5) for c in problem.candidates}
