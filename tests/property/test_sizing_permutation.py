"""The order in which a user lists things means nothing."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.explanation import Reason
from models.fleet import Fleet
from models.performance import Rating, RatingQuestion, Unrated
from models.scenario import Scenario
from tests.scenarios import (
    a_node_entry,
    a_pool_entry,
    a_rating,
    a_running,
    a_scenario,
    a_service,
    a_shape,
    a_variant,
    sized,
)


def rate(question: RatingQuestion) -> Rating | Unrated:
    """A smooth figure of the question, and a gap for one shape."""
    if question.input_tokens > 3500 and question.variant.parallelism.tp == 1:
        return Unrated(reason=Reason.REQUEST_DOES_NOT_FIT)
    rated = question.variant.parallelism.tp * 1000 / (question.input_tokens + 7)
    return a_rating(
        rated, surge_rps=rated * 1.1, kv_tokens_per_rps=question.input_tokens / 3, source=f"row {rated:.3}"
    )


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario with several of everything that is listed."""
    rps = st.floats(0, 50)
    shapes = [
        a_shape(f"b{i}", draw(rps), input_tokens=draw(st.integers(10, 4000)))
        for i in range(draw(st.integers(1, 4)))
    ]
    variants = [
        a_variant("one", parallelism={"tp": 1}),
        a_variant("two", parallelism={"tp": 2}, pods_per_replica=2),
        a_variant("four", parallelism={"tp": 4}, pools=("east", "west")),
    ]
    host = a_service("host", buckets=tuple(shapes), variants=tuple(variants), survive={})
    routed = a_service(
        "routed",
        buckets=tuple(shapes),
        variants=tuple(variants),
        routing="by_length",
        places={"deny_pools": draw(st.sampled_from([(), ("west",)]))},
    )
    guest = a_service(
        "guest", kind="batch", shares_replicas_of="host", variants=(), buckets=tuple(shapes[:2])
    )
    domains = st.sampled_from([None, "r0", "r1"])
    pools = [
        a_pool_entry(
            name,
            power_domain="hall",
            nodes=tuple(
                a_node_entry(f"{name}{i}", count=draw(st.integers(1, 12)), fabric_domain=draw(domains))
                for i in range(3)
            ),
        )
        for name in ("east", "west")
    ]
    running = [
        a_running(
            draw(st.integers(3, 6)),
            service=service,
            variant=variant,
            pool=pool,
            pending=draw(st.integers(0, 2)),
            details=tuple(draw(st.lists(details(pool), max_size=3))),
        )
        for service in ("host", "routed")
        for variant in ("one", "two")
        for pool in ("east", "west")
    ]
    limits = {
        "quotas": tuple({"id": f"q{i}", "gpus": i} for i in range(3)),
        "power": ({"id": "hall", "cap_w": 9e5}, {"id": "east", "cap_w": 5e5, "pools": ("west", "east")}),
    }
    return a_scenario(*running, services=(host, routed, guest), pools=tuple(pools), limits=limits)


def details(pool: str) -> st.SearchStrategy[dict[str, Any]]:
    """What is known of a replica: perhaps its nodes, perhaps its metrics."""
    nodes = st.lists(st.sampled_from([f"{pool}{i}" for i in range(3)] + [f"{pool}0-0"]), max_size=2).map(
        tuple
    )
    return st.fixed_dictionaries(
        {
            "nodes": nodes,
            "kv_usage": st.none() | st.floats(0, 1),
            "queue": st.none() | st.floats(0, 9),
        }
    )


def shuffled(scenario: Scenario, rng: random.Random) -> Scenario:
    """The same scenario with every list whose order means nothing in another order."""

    def mixed(values: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(rng.sample(values, len(values)))

    services = [
        service.but(
            buckets=mixed(service.buckets),
            variants=mixed(tuple(variant.but(pools=mixed(variant.pools)) for variant in service.variants)),
        )
        for service in scenario.services
    ]
    limits = scenario.limits
    power = tuple(domain.but(pools=mixed(domain.pools)) for domain in limits.power)
    running = tuple(row.but(details=mixed(row.details)) for row in scenario.fleet.running)
    return scenario.but(
        services=mixed(tuple(services)),
        pools=mixed(tuple(pool.but(nodes=mixed(pool.nodes)) for pool in scenario.pools)),
        fleet=Fleet(running=mixed(running)),
        limits=limits.but(quotas=mixed(limits.quotas), power=mixed(power)),
    )


@given(scenario=scenarios(), rng=st.randoms(use_true_random=False))
def test_a_permuted_scenario_is_the_same_problem(scenario: Scenario, rng: random.Random) -> None:
    one, other = sized(scenario, rate), sized(shuffled(scenario, rng), rate)
    # Where a problem is from names the very text; all that solvers read must be equal.
    assert one.but(derived_from="").fingerprint == other.but(derived_from="").fingerprint


@given(scenario=scenarios())
def test_nothing_that_runs_is_lost(scenario: Scenario) -> None:
    problem = sized(scenario, rate)
    for row in scenario.fleet.running:
        there = [
            c
            for c in problem.candidates
            if (c.service, c.variant, c.pool) == (row.service, row.variant, row.pool)
        ]
        assert sum(candidate.on_order for candidate in there) == row.on_order


@given(scenario=scenarios())
def test_every_candidate_surges_at_least_to_its_rate_and_seats_fit_counts(scenario: Scenario) -> None:
    problem = sized(scenario, rate)
    seated = dict.fromkeys(problem.candidate, 0)
    for incumbent in problem.incumbents:
        seated[incumbent.candidate] += incumbent.count
    for candidate in problem.candidates:
        assert candidate.surge_rps >= candidate.rated_rps
        assert seated[candidate.id] <= candidate.current
