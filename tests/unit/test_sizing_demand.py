"""What becomes of services and limits, and every finding about a scenario that cannot be sized."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.hardware import Pool
from models.scenario import Scenario
from models.workload import Service
from planner.errors import ConfigurationError
from tests.scenarios import (
    a_node_entry,
    a_pool_entry,
    a_running,
    a_scenario,
    a_service,
    a_shape,
    a_variant,
    an_accelerator,
    rates,
    sized,
)


def test_a_service_becomes_a_demand() -> None:
    service = a_service(
        namespace="prod",
        team="search",
        kind="online",
        priority=7,
        best_effort=True,
        buckets=(a_shape("b", 2.0), a_shape("a", 1.0)),
        headroom={"relative": 0.2},
        min_replicas=1,
        max_replicas=9,
        variants=(a_variant("z", max_replicas=4), a_variant("y", min_replicas=1)),
        ratio=None,
    )
    (demand,) = sized(a_scenario(services=(service,))).demands
    assert (demand.namespace, demand.team, demand.priority, demand.best_effort) == ("prod", "search", 7, True)
    assert [(bucket.id, bucket.arrival_rps) for bucket in demand.buckets] == [("a", 1.0), ("b", 2.0)]
    assert (demand.min_replicas, demand.max_replicas, demand.headroom.relative) == (1, 9, 0.2)
    assert [(b.variant, b.min_replicas, b.max_replicas) for b in demand.variants] == [
        ("y", 1, None),
        ("z", 0, 4),
    ]


def test_a_variant_gives_its_candidates_role_steps_and_start() -> None:
    prefill = a_variant(
        "p", role="prefill", max_step_up=2, max_step_down=1, startup_s=65, startup_cost_usd=0.1
    )
    service = a_service(variants=(prefill, a_variant("d", role="decode")))
    candidate = sized(a_scenario(services=(service,))).candidates[1]
    assert (candidate.id, candidate.role) == ("chat/p@east", "prefill")
    assert (candidate.max_step_up, candidate.max_step_down) == (2, 1)
    assert (candidate.startup_s, candidate.startup_cost) == (65, 0.1)


def test_limits_and_origin_are_carried_over() -> None:
    limits = {
        "quotas": ({"id": "b", "gpus": 4, "accelerator": "NVIDIA-H100"}, {"id": "a", "gpus": 9}),
        "spend_usd_per_h": 50.0,
        "max_changes": 3,
        "incumbents": "movable",
    }
    scenario = a_scenario(limits=limits)
    problem = sized(scenario, allow_unserved=True)
    assert [(quota.id, quota.accelerator) for quota in problem.quotas] == [("a", None), ("b", "H100")]
    assert (problem.spend_usd_per_h, problem.max_changes, problem.incumbents_rule) == (50.0, 3, "movable")
    assert (problem.name, problem.derived_from) == ("test", scenario.fingerprint)
    assert problem.allow_unserved
    assert not sized(scenario).allow_unserved


class TestSurvive:
    """Failure domains are resolved."""

    POOLS = (
        a_pool_entry("a", failure_domain="z1"),
        a_pool_entry("b"),
        a_pool_entry("c", accelerator="A100", failure_domain="z3"),
    )

    def domains(self, **fields: Any) -> tuple[str, ...]:
        (demand,) = sized(a_scenario(services=(a_service(**fields),), pools=self.POOLS)).demands
        assert demand.survive is not None
        return tuple(demand.survive.failure_domains)

    def test_those_of_the_candidates(self) -> None:
        assert self.domains(survive={}) == ("b", "z1")

    def test_those_that_are_named(self) -> None:
        assert self.domains(survive={"failure_domains": ("z3", "b")}) == ("b", "z3")

    def test_a_promise_of_nothing_is_none(self) -> None:
        (demand,) = sized(
            a_scenario(services=(a_service(survive={"share": "0 %"}),), pools=self.POOLS)
        ).demands
        assert demand.survive is None

    def test_all_where_there_is_no_candidate(self) -> None:
        assert self.domains(survive={}, places={"deny_accelerators": ("H100",)}) == ("b", "z1", "z3")


def test_a_service_without_a_candidate_is_no_error() -> None:
    problem = sized(a_scenario(), rates({1000: Reason.SLO_NOT_MET}, lambda question: question.input_tokens))
    assert problem.candidates_of == {"chat": ()}
    assert [rejection.reason for rejection in problem.rejected] == [Reason.SLO_NOT_MET]


def batch(**fields: Any) -> Service:
    return a_service("jobs", **({"kind": "batch", "variants": (), "shares_replicas_of": "chat"} | fields))


def west(**fields: Any) -> Pool:
    return a_pool_entry("west", **fields)


def of_services(*services: Service) -> Scenario:
    return a_scenario(services=services)


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        (of_services(a_service(llm="lama-8b")), "services[0].llm: found 'lama-8b'"),
        (of_services(a_service(), a_service()), "services: found 'chat' more than once"),
        (of_services(a_service(variants=(a_variant(), a_variant()))), "services[0].variants: found 'small' more than"),
        (of_services(a_service(buckets=(a_shape(), a_shape()))), "services[0].buckets: found 'all' more than once"),
        (of_services(a_service(variants=(a_variant(accelerator="H10"),))), "services[0].variants[0].accelerator: found"),
        (of_services(a_service(variants=(a_variant(pools=("est",)),))), "services[0].variants[0].pools[0]: found 'est'"),
        (of_services(a_service(variants=(a_variant(profile="x"),))), "services[0].variants[0].profile: found 'x'"),
        (of_services(a_service(places={"deny_pools": ("x",)})), "services[0].places.deny_pools[0]: found 'x'"),
        (of_services(a_service(places={"allow_accelerators": ("x",)})), "services[0].places.allow_accelerators[0]: "),
        (of_services(a_service(survive={"failure_domains": ("x",)})), "services[0].survive.failure_domains: found 'x'"),
        (of_services(a_service(variants=(a_variant(role="decode"),))), "services[0].variants: found role decode without"),
        (of_services(a_service(variants=(a_variant(min_replicas=3),), max_replicas=2)), "services[0].max_replicas: "),
        (of_services(a_service(variants=(a_variant(max_replicas=3),), min_replicas=4)), "services[0].min_replicas: "),
        (of_services(batch()), "services[0].shares_replicas_of: found 'chat'"),
        (of_services(batch(), a_service(llm="other")), "services[0].shares_replicas_of: found 'chat', which serves other"),
        (of_services(batch(), batch(id="chat", shares_replicas_of=None, variants=(a_variant(),))), "services[0].shares_replicas_of: "),
        (a_scenario(pools=(a_pool_entry(), a_pool_entry())), "pools: found 'east' more than once"),
        (a_scenario(pools=(a_pool_entry(accelerator="x"),)), "pools[0].accelerator: found 'x'"),
        (
            a_scenario(pools=(a_pool_entry(nodes=(a_node_entry("a", count=2), a_node_entry("a-1"))),)),
            "pools[0].nodes: found 'a-1' more than once",
        ),
        (
            a_scenario(pools=(a_pool_entry(nodes=(a_node_entry("a", count=10**9),)),)),
            "pools[0].nodes: found 1000000000 nodes",
        ),
        (a_scenario(limits={"quotas": ({"id": "q", "gpus": 1, "accelerator": "x"},)}), "limits.quotas[0].accelerator: "),
        (a_scenario(limits={"power": ({"id": "h", "cap_w": 1, "pools": ("x",)},)}), "limits.power[0].pools[0]: "),
        (a_scenario(a_running(), a_running()), "fleet.running: found 'chat/small@east' more than once"),
        (a_scenario(a_running(service="cat")), "fleet.running[0].service: found 'cat'"),
        (a_scenario(a_running(variant="smal")), "fleet.running[0].variant: found 'smal'"),
        (a_scenario(a_running(pool="est")), "fleet.running[0].pool: found 'est'"),
        (
            a_scenario(a_running(pool="west"), pools=(a_pool_entry(), west(accelerator="A100"))),
            "fleet.running[0].pool: found 'west' of A100",
        ),
        (a_scenario(accelerators=(an_accelerator("X"), an_accelerator("X"))), "accelerators: found 'X' more than once"),
    ],
)  # fmt: skip
def test_what_cannot_be_sized_is_said(scenario: Scenario, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        sized(scenario)
    (finding,) = caught.value.findings
    assert str(finding).startswith(expected)


def test_everything_is_said_at_once_with_the_nearest_name() -> None:
    service = a_service(llm="lama-8b", variants=(a_variant(accelerator="H10", pools=("est",)),))
    with pytest.raises(ConfigurationError) as caught:
        sized(a_scenario(services=(service,)))
    assert [finding.suggestion for finding in caught.value.findings] == ["H100", "llama-8b", "east"]
