"""A relaxation that was verified for a problem, put into its scenario, makes a scenario that can be planned."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from models.explanation import Relaxation
from models.report import Report
from models.scenario import Scenario
from models.solution import Status
from models.variant import Capacity, Role
from planner import load_scenario
from planner.applying import applied
from planner.errors import ConfigurationError
from planner.optimization.protocol import SolveOptions
from planner.planning import plan_problem, plan_scenario
from tests.scenarios import (
    a_node_entry,
    a_pool_entry,
    a_running,
    a_scenario,
    a_service,
    a_shape,
    a_variant,
    sized,
)

OPTIONS: Final = SolveOptions(time_limit_s=20.0)


def nodes(count: int, gpus: int = 8, **fields: Any) -> tuple[Any, ...]:
    return (a_node_entry("n", gpus, count=count, **fields),)


def chat(**fields: Any) -> Scenario:
    """One service of 10 req/s on replicas of 1 req/s each; fields of the scenario, or of its service as ``service``."""
    service = fields.pop("service", {})
    running = fields.pop("running", ())
    return a_scenario(*running, **({"services": (a_service(**service),)} | fields))


def pair(**fields: Any) -> tuple[Any, ...]:
    return (a_variant("pre", role=Role.PREFILL, **fields), a_variant("dec", role=Role.DECODE, **fields))


def busy(name: str, pool: str = "east", kv: float = 0.95, count: int = 4) -> Any:
    details = [{"kv_usage": kv, "queue": 9}] * count
    return a_running(count, variant=name, pool=pool, details=details)


SEATED: Final = [
    a_running(1, variant="small", details=({"nodes": ("a",)},)),
    a_running(1, service="code", variant="small", details=({"nodes": ("b",)},)),
]
CASES: Final[dict[str, Scenario]] = {
    "gpus": chat(pools=(a_pool_entry(nodes=nodes(1)),)),
    "gpus of several sizes": chat(
        pools=(a_pool_entry(nodes=nodes(1)),),
        services=(
            a_service("one", variants=(a_variant("v", parallelism={"tp": 3}),), buckets=(a_shape(rps=4.0),)),
            a_service("two", variants=(a_variant("v", parallelism={"tp": 2}),), buckets=(a_shape(rps=4.0),)),
        ),
    ),
    "placement": chat(
        service={"variants": (a_variant(parallelism={"tp": 8}),), "buckets": (a_shape(rps=1.0),)},
        pools=(a_pool_entry(nodes=nodes(2, 4)), a_pool_entry("west", nodes=nodes(1, foreign_gpus=1))),
    ),
    "nodes": chat(pools=(a_pool_entry(nodes=(), growth={"gpus_per_node": 4, "max_nodes": 2}),)),
    "quota": chat(limits={"quotas": [{"id": "team", "gpus": 7}]}),
    "power": chat(limits={"power": [{"id": "hall", "cap_w": 3000.0, "pools": ["east"]}]}),
    "spend": chat(limits={"spend_usd_per_h": 12.5}),
    "bounds": chat(service={"max_replicas": 6}),
    "bounds of a variant": chat(service={"variants": (a_variant(max_replicas=6),)}),
    "bounds at least": chat(service={"min_replicas": 20}),
    "change in all": chat(limits={"max_changes": 3}),
    "change of a variant": chat(service={"variants": (a_variant(max_step_up=3, max_step_down=3),)}),
    "survive": chat(
        service={"survive": {"share": 1.0}},
        pools=(a_pool_entry(nodes=nodes(1)), a_pool_entry("west", nodes=nodes(1))),
    ),
    "headroom": chat(service={"headroom": {"relative": 0.8}, "buckets": (a_shape(rps=14.0),)}),
    "headroom of a burst": chat(service={"headroom": {"burst_rps": 9}, "buckets": (a_shape(rps=14.0),)}),
    "ratio": chat(
        service={
            "variants": (
                a_variant("pre", role=Role.PREFILL, max_replicas=11),
                a_variant("dec", role=Role.DECODE, max_replicas=10),
            ),
            "buckets": (a_shape(rps=9.0),),
            "ratio": {"min": 1.5},
        },
        pools=(a_pool_entry(nodes=nodes(5)),),
    ),
    "variants": chat(
        service={
            "max_variants": 1,
            "variants": (a_variant("a", max_replicas=6), a_variant("b", max_replicas=6)),
        }
    ),
    "safe_scale_in": chat(
        service={
            "variants": (a_variant("old", parallelism={"tp": 4}), a_variant("new")),
            "buckets": (a_shape(rps=13.0),),
        },
        running=(busy("old"),),
    ),
    "incumbents": chat(
        services=(
            a_service(buckets=(a_shape(rps=1.0),)),
            a_service("code", buckets=(a_shape(rps=1.0),)),
            a_service("big", buckets=(a_shape(rps=1.0),), variants=(a_variant(parallelism={"tp": 2}),)),
        ),
        pools=(a_pool_entry(nodes=(a_node_entry("a", 2), a_node_entry("b", 2))),),
        running=SEATED,
    ),
    "bounds of a place that is denied": chat(
        service={"places": {"deny_pools": ["west"]}},
        pools=(a_pool_entry(nodes=nodes(1)), a_pool_entry("west", nodes=nodes(1))),
        running=(a_running(4, pool="west"),),
    ),
}
"""By the family whose relaxation must be among those that are found."""


def report_of(scenario: Scenario) -> Report:
    report = plan_problem(sized(scenario), options=OPTIONS)
    assert report.answer.solution.status is Status.INFEASIBLE
    return report


def assert_can_be_planned(scenario: Scenario) -> None:
    report = plan_problem(sized(scenario), options=OPTIONS)
    assert report.answer.solution.status is Status.OPTIMAL
    assert report.answer.assessment is not None
    assert report.answer.assessment.violations == ()
    assert report.answer.assessment.unserved_rps == 0


@pytest.mark.parametrize("name", CASES)
def test_what_was_verified_can_be_planned_once_it_is_applied(name: str) -> None:
    scenario = CASES[name]
    report = report_of(scenario)
    verified = [each for each in report.explanation.relaxations if each.verified]
    assert (name.split(maxsplit=1)[0] if name != "placement" else "gpus") in {
        each.family for each in verified
    }
    for relaxation in verified:
        changed = applied(scenario, report.problem, relaxation)
        assert changed != scenario
        assert_can_be_planned(changed)


def test_looser_latency_promises_are_those_that_were_told() -> None:
    scenario = load_scenario("data/scenarios/02-contention.yaml")
    tight = tuple(
        each.but(slo=each.slo.but(itl_s=0.012)) if each.id == "search" else each for each in scenario.services
    )
    scenario = scenario.but(services=tight)
    report = plan_scenario(scenario, options=OPTIONS)
    assert report.answer.solution.status is Status.INFEASIBLE
    (slo,) = [each for each in report.explanation.relaxations if each.family == "slo"]
    changed = applied(scenario, report.problem, slo)
    search = next(each for each in changed.services if each.id == "search")
    assert search.slo.itl_s == slo.facts["itl_s"]
    assert plan_scenario(changed, options=OPTIONS).answer.solution.status is Status.OPTIMAL


def test_the_shipped_power_cap_can_be_raised() -> None:
    scenario = load_scenario("data/scenarios/03-power-cap.yaml")
    report = plan_scenario(scenario, options=OPTIONS)
    assert report.explanation.relaxations
    for relaxation in report.explanation.relaxations:
        changed = applied(scenario, report.problem, relaxation)
        assert plan_scenario(changed, options=OPTIONS).answer.solution.status is Status.OPTIMAL


def random_scenario(seed: int) -> Scenario:
    """One to three services that want more than one or two small pools and some budgets give."""
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    names = ("east", "west")[: rng.randint(1, 2)]
    pools = tuple(_pool(rng, name) for name in names)
    services = tuple(_service(rng, name) for name in ("chat", "code", "search")[: rng.randint(1, 3)])
    limits: dict[str, Any] = {}
    if rng.random() < 0.4:
        limits["quotas"] = [{"id": "q", "gpus": rng.randint(2, 12)}]
    if rng.random() < 0.4:
        limits["power"] = [{"id": "hall", "cap_w": rng.choice((2000.0, 5000.0)), "pools": [*names]}]
    if rng.random() < 0.3:
        limits["spend_usd_per_h"] = rng.choice((6.0, 20.0))
    if rng.random() < 0.3:
        limits["max_changes"] = rng.randint(1, 4)
    running = [a_running(rng.randint(1, 2), variant="v0")] if services[0].id == "chat" else []
    return a_scenario(*running, services=services, pools=pools, limits=limits)


def _pool(rng: random.Random, name: str) -> Any:
    growth = None
    if rng.random() < 0.3:
        growth = {"gpus_per_node": rng.choice((2, 4)), "max_nodes": 1, "usd_per_node_h": 1.0}
    node = [a_node_entry(f"{name}-{i}", rng.choice((2, 4, 8))) for i in range(rng.randint(1, 2))]
    return a_pool_entry(name, nodes=node, growth=growth)


def _service(rng: random.Random, name: str) -> Any:
    variants = tuple(
        a_variant(
            f"v{i}",
            parallelism={"tp": rng.choice((1, 2, 3, 4))},
            capacity=Capacity(rated_rps=rng.choice((1.0, 2.5)), surge_rps=3.0),
            max_replicas=rng.choice((None, None, 4)),
            max_step_up=rng.choice((None, None, 2)),
        )
        for i in range(rng.randint(1, 2))
    )
    extra: dict[str, Any] = {}
    if rng.random() < 0.3:
        extra["headroom"] = {"relative": rng.choice((0.2, 0.5))}
    if rng.random() < 0.2:
        extra["survive"] = {"share": 0.5}
    if rng.random() < 0.2:
        extra["max_replicas"] = rng.randint(1, 4)
    return a_service(name, buckets=(a_shape(rps=rng.choice((2.0, 5.0, 9.0))),), variants=variants, **extra)


@pytest.mark.parametrize("seed", range(24))
def test_every_verified_relaxation_of_a_generated_scenario_holds(seed: int) -> None:
    scenario = random_scenario(seed)
    report = plan_problem(sized(scenario), options=OPTIONS)
    for relaxation in report.explanation.relaxations:
        if relaxation.verified:
            assert_can_be_planned(applied(scenario, report.problem, relaxation))


def test_some_generated_scenarios_have_relaxations() -> None:
    found = [plan_problem(sized(random_scenario(seed)), options=OPTIONS) for seed in range(6)]
    assert sum(len(report.explanation.relaxations) for report in found) > 2


@pytest.mark.parametrize(
    ("family", "key", "words"),
    [
        ("power", ("nowhere",), "no 'nowhere'"),
        ("gpus", ("nowhere",), "0 more GPUs"),
        ("nodes", ("east",), "does not grow"),
        ("magic", ("east",), "magic"),
        ("change", ("chat/other@east",), "no candidate"),
        ("ratio", ("chat", "min"), "without a ratio"),
    ],
)
def test_what_the_scenario_does_not_have_is_named(family: str, key: tuple[str, ...], words: str) -> None:
    scenario = chat()
    move = Relaxation(family=family, key=key, limit=1, needed=1, unit="GPUs", verified=True)
    with pytest.raises(ConfigurationError, match=words):
        applied(scenario, sized(scenario), move)
