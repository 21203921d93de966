"""Where a variant may run, and the first reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.problem import Problem
from models.scenario import Mode
from tests.scenarios import (
    a_node_entry,
    a_pool_entry,
    a_running,
    a_scenario,
    a_service,
    a_variant,
    sized,
)

EAST = a_pool_entry(region="eu-west", cluster="blue", residency="eu")


def reasons(problem: Problem) -> list[Reason]:
    return [rejection.reason for rejection in problem.rejected]


def ids(problem: Problem) -> list[str]:
    return [str(candidate.id) for candidate in problem.candidates]


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        ({}, None),
        ({"allow_pools": ("east",), "allow_regions": ("eu-west",), "allow_clusters": ("blue",)}, None),
        ({"residency": ("eu", "uk")}, None),
        ({"deny_accelerators": ("NVIDIA-H100",)}, Reason.ACCELERATOR_NOT_ALLOWED),
        ({"allow_accelerators": ("A100",)}, Reason.ACCELERATOR_NOT_ALLOWED),
        ({"allow_accelerators": ("nvidia-h100",)}, None),
        ({"deny_pools": ("east",)}, Reason.POOL_NOT_ALLOWED),
        ({"deny_pools": ("east",), "allow_pools": ("east",)}, Reason.POOL_NOT_ALLOWED),
        ({"deny_regions": ("eu-west",)}, Reason.REGION_NOT_ALLOWED),
        ({"allow_regions": ("us-east",)}, Reason.REGION_NOT_ALLOWED),
        ({"deny_clusters": ("blue",)}, Reason.CLUSTER_NOT_ALLOWED),
        ({"allow_clusters": ("green",)}, Reason.CLUSTER_NOT_ALLOWED),
        ({"residency": ("us",)}, Reason.RESIDENCY_NOT_ALLOWED),
        ({"deny_regions": ("eu-west",), "allow_accelerators": ("A100",)}, Reason.REGION_NOT_ALLOWED),
        ({"pin_accelerator": True}, None),
    ],
)
def test_the_first_rule_that_refuses_is_the_reason(places: dict[str, Any], reason: Reason | None) -> None:
    problem = sized(a_scenario(services=(a_service(places=places),), pools=(EAST,)))
    assert reasons(problem) == ([] if reason is None else [reason])
    assert ids(problem) == (["chat/small@east"] if reason is None else [])


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        ({"allow_regions": ("eu-west",)}, Reason.REGION_NOT_ALLOWED),
        ({"allow_clusters": ("blue",)}, Reason.CLUSTER_NOT_ALLOWED),
        ({"residency": ("eu",)}, Reason.RESIDENCY_NOT_ALLOWED),
    ],
)
def test_a_pool_that_does_not_say_where_it_is_is_in_no_list(places: dict[str, Any], reason: Reason) -> None:
    assert reasons(sized(a_scenario(services=(a_service(places=places),)))) == [reason]


def test_a_rejection_tells_rule_and_value() -> None:
    places = {"deny_regions": ("eu-west",)}
    (rejection,) = sized(a_scenario(services=(a_service(places=places),), pools=(EAST,))).rejected
    assert (rejection.service, rejection.variant, rejection.pool) == ("chat", "small", "east")
    assert rejection.facts == {"region": "eu-west", "rule": "deny_regions"}


def test_no_pool_has_the_accelerator() -> None:
    (rejection,) = sized(
        a_scenario(services=(a_service(variants=(a_variant(accelerator="A100"),)),))
    ).rejected
    assert (rejection.reason, rejection.pool) == (Reason.NO_POOL_WITH_ACCELERATOR, None)
    assert rejection.facts == {"accelerator": "A100"}


def test_a_variant_that_names_a_pool_of_another_accelerator_is_told_so() -> None:
    variant = a_variant(accelerator="A100", pools=("east",))
    (rejection,) = sized(a_scenario(services=(a_service(variants=(variant,)),))).rejected
    assert (rejection.reason, rejection.pool) == (Reason.NO_POOL_WITH_ACCELERATOR, "east")
    assert rejection.facts == {"needs": "A100", "has": "H100"}


def test_pools_of_a_variant_choose_among_the_pools() -> None:
    service = a_service(variants=(a_variant("all"), a_variant("west-only", pools=("west",))))
    problem = sized(a_scenario(services=(service,), pools=(a_pool_entry("east"), a_pool_entry("west"))))
    assert ids(problem) == ["chat/all@east", "chat/all@west", "chat/west-only@west"]
    assert problem.rejected == ()


def test_aliases_mean_the_same_accelerator() -> None:
    service = a_service(llm="META/llama-8b", variants=(a_variant(accelerator="NVIDIA-H100"),))
    problem = sized(a_scenario(services=(service,), pools=(a_pool_entry(accelerator="nvidia-h100"),)))
    assert ids(problem) == ["chat/small@east"]
    assert (problem.pools[0].accelerator, problem.candidates[0].accelerator) == ("H100", "H100")
    assert problem.demands[0].llm == "llama-8b"


class TestPin:
    """``pin_accelerator``: stay on what runs now."""

    SERVICE = a_service(
        places={"pin_accelerator": True}, variants=(a_variant(), a_variant("cheap", accelerator="A100"))
    )
    POOLS = (a_pool_entry(), a_pool_entry("old", accelerator="A100"))

    def test_other_accelerators_are_out(self) -> None:
        problem = sized(a_scenario(a_running(), services=(self.SERVICE,), pools=self.POOLS))
        assert ids(problem) == ["chat/small@east"]
        assert problem.rejected[0].facts == {"accelerator": "A100", "runs_on": "H100"}
        assert reasons(problem) == [Reason.PINNED_ELSEWHERE]

    def test_what_is_on_order_pins_too(self) -> None:
        problem = sized(a_scenario(a_running(0, pending=1), services=(self.SERVICE,), pools=self.POOLS))
        assert reasons(problem) == [Reason.PINNED_ELSEWHERE]

    def test_a_service_that_runs_nowhere_is_pinned_to_nothing(self) -> None:
        problem = sized(a_scenario(a_running(0), services=(self.SERVICE,), pools=self.POOLS))
        assert ids(problem) == ["chat/cheap@old", "chat/small@east"]


class TestPodSize:
    """A pod that no node can ever hold."""

    SERVICE = a_service(variants=(a_variant(parallelism={"tp": 8}),))

    @pytest.mark.parametrize(
        ("pool", "fits"),
        [
            ({"nodes": (a_node_entry(gpus=8),)}, True),
            ({"nodes": (a_node_entry(gpus=8, foreign_gpus=8),)}, True),
            ({"nodes": (a_node_entry(gpus=4, count=9),)}, False),
            ({"nodes": ()}, False),
            ({"nodes": (a_node_entry(gpus=4),), "growth": {"gpus_per_node": 8}}, True),
            ({"nodes": (a_node_entry(gpus=4),), "growth": {"gpus_per_node": 8, "max_nodes": 0}}, False),
            ({"nodes": (), "growth": {"gpus_per_node": 4}}, False),
        ],
    )
    def test_the_largest_node_decides(self, pool: dict[str, Any], fits: bool) -> None:
        problem = sized(a_scenario(services=(self.SERVICE,), pools=(a_pool_entry(**pool),)))
        assert reasons(problem) == ([] if fits else [Reason.POD_LARGER_THAN_NODE])
        assert len(problem.candidates) == fits

    def test_an_unlimited_pool_without_nodes_has_no_node_size(self) -> None:
        scenario = a_scenario(
            services=(self.SERVICE,), pools=(a_pool_entry(nodes=()),), mode=Mode.UNCONSTRAINED
        )
        assert len(sized(scenario).candidates) == 1

    def test_pods_that_share_a_replica_may_be_smaller(self) -> None:
        service = a_service(variants=(a_variant(parallelism={"tp": 8}, pods_per_replica=2),))
        problem = sized(a_scenario(services=(service,), pools=(a_pool_entry(nodes=(a_node_entry(gpus=4),)),)))
        (candidate,) = problem.candidates
        assert (candidate.pods_per_replica, candidate.gpus_per_pod, candidate.gpus) == (2, 4, 8)


class TestFabricDomains:
    """A replica of several pods stays in one."""

    SPANNING = a_service(variants=(a_variant(parallelism={"tp": 16}, pods_per_replica=2),))

    def test_one_candidate_per_domain(self) -> None:
        nodes = (
            a_node_entry("a", count=2, fabric_domain="r1"),
            a_node_entry("b", count=2, fabric_domain="r0"),
        )
        problem = sized(a_scenario(services=(self.SPANNING,), pools=(a_pool_entry(nodes=nodes),)))
        assert ids(problem) == ["chat/small@east#r0", "chat/small@east#r1"]

    def test_a_pool_without_domains_is_one(self) -> None:
        problem = sized(a_scenario(services=(self.SPANNING,)))
        assert [candidate.fabric_domain for candidate in problem.candidates] == [None]

    def test_a_replica_of_one_pod_spans_nothing(self) -> None:
        nodes = (a_node_entry("a", fabric_domain="r1"), a_node_entry("b", fabric_domain="r0"))
        assert ids(sized(a_scenario(pools=(a_pool_entry(nodes=nodes),)))) == ["chat/small@east"]

    def test_nodes_without_a_domain_are_no_place_beside_some_with_one(self) -> None:
        nodes = (a_node_entry("a", count=2, fabric_domain="r1"), a_node_entry("b", count=2))
        problem = sized(a_scenario(services=(self.SPANNING,), pools=(a_pool_entry(nodes=nodes),)))
        assert ids(problem) == ["chat/small@east#r1"]

    def test_a_domain_of_small_nodes_is_refused_by_name(self) -> None:
        nodes = (a_node_entry("a", fabric_domain="r1"), a_node_entry("b", gpus=4, fabric_domain="r0"))
        problem = sized(a_scenario(services=(self.SPANNING,), pools=(a_pool_entry(nodes=nodes),)))
        assert ids(problem) == ["chat/small@east#r1"]
        assert problem.rejected[0].facts == {"gpus_per_pod": 8, "largest_node_gpus": 4, "fabric_domain": "r0"}


class TestPools:
    """What the cluster shows becomes what may be used."""

    def test_alike_nodes_are_named_one_by_one(self) -> None:
        pool = a_pool_entry(nodes=(a_node_entry("b", count=2), a_node_entry("a")))
        assert [node.id for node in sized(a_scenario(pools=(pool,))).pools[0].nodes] == ["a", "b-0", "b-1"]

    @pytest.mark.parametrize(
        ("node", "free", "accepts", "holds"),
        [
            ({}, 8, True, True),
            ({"foreign_gpus": 3}, 5, True, True),
            ({"cordoned": True}, 8, False, True),
            ({"tainted": True}, 8, False, True),
            ({"ready": False}, 8, False, False),
        ],
    )
    def test_what_a_node_has_for_us(
        self, node: dict[str, Any], free: int, accepts: bool, holds: bool
    ) -> None:
        pool = a_pool_entry(nodes=(a_node_entry(**node),))
        (state,) = sized(a_scenario(pools=(pool,))).pools[0].nodes
        assert (state.free_gpus, state.accepts_pods, state.holds_pods) == (free, accepts, holds)

    def test_a_pool_is_its_own_failure_domain_unless_it_says_otherwise(self) -> None:
        pools = (a_pool_entry("a"), a_pool_entry("b", failure_domain="zone-1"))
        assert [pool.failure_domain for pool in sized(a_scenario(pools=pools)).pools] == ["a", "zone-1"]
