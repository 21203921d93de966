"""Autoscalers in a run: each follows the load in its own way, keeps its bounds, and repeats itself byte for byte."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    KedaSpec,
    KpaSpec,
    MetricSource,
    ScalingRules,
)
from models.simulation import Observation, Outcome, ReplicaState, RouterSpec, TwinSpec
from planner.simulation.autoscaling import (
    Analyzer,
    HpaAutoscaler,
    KedaAutoscaler,
    KpaAutoscaler,
    StaticAutoscaler,
    WvaAutoscaler,
    WvaSettings,
    epp_saturation,
    wva_variants,
)
from planner.simulation.protocols import Autoscaler
from planner.simulation.twin import Twin
from tests.twins import a_fleet, a_replica, poisson, requests

MOST = 6
QUICK = HpaBehavior(down=ScalingRules(stabilization_s=60))
METRICS = (
    HpaMetric(name="waiting", source=MetricSource.PODS, target=3),
    HpaMetric(name="kv_usage", source=MetricSource.PODS, target=0.5),
)
BUSY = HpaMetric(name="concurrency", source=MetricSource.EXTERNAL, target=8)


def fleet(**more: Any) -> TwinSpec:
    """One variant of small replicas: about 8 requests of 1,000 + 200 tokens fill the cache."""
    fields = {"kv_blocks": 640, "max_replicas": MOST, "startup_s": 20.0, "initial_replicas": 1, **more}
    return a_fleet(a_replica(**fields), router=RouterSpec(hold_without_replica=True))


def hpa(**more: Any) -> HpaSpec:
    return HpaSpec(**{"max_replicas": MOST, "metrics": METRICS, "behavior": QUICK, **more})


def wva(spec: TwinSpec, analyzer: Analyzer) -> WvaAutoscaler:
    return WvaAutoscaler(wva_variants(spec), {"v": hpa()}, twin=spec, settings=WvaSettings(analyzer=analyzer))


POLICIES: Mapping[str, Callable[[TwinSpec], Autoscaler]] = {
    "hpa": lambda spec: HpaAutoscaler({"v": hpa()}, spec),
    "keda": lambda spec: KedaAutoscaler(
        {"v": KedaSpec(min_replicas=1, max_replicas=MOST, triggers=(BUSY,), behavior=QUICK)}, spec
    ),
    "kpa": lambda spec: KpaAutoscaler({"v": KpaSpec(target=8, min_replicas=1, max_replicas=MOST)}, spec),
    "wva": lambda spec: wva(spec, Analyzer.PERCENTAGE),
    "wva-v2": lambda spec: wva(spec, Analyzer.TOKENS),
    "epp-keda": lambda spec: KedaAutoscaler({"v": epp_saturation(MOST, behavior=QUICK)}, spec),
}


def rush(*, calm_s: float = 60.0, rush_s: float = 240.0, rate: float = 6.0) -> Any:
    """Little, then much for four minutes, then little again."""
    crowd = poisson(int(rate * rush_s), rate, inputs=(900, 1100), outputs=(150, 250))
    few = [float(second) for second in range(0, 720, 20)]
    arrivals = sorted([*few, *(calm_s + crowd.arrival_s)])
    return requests(arrivals, [1000] * len(arrivals), [200] * len(arrivals))


def run(spec: TwinSpec, autoscaler: Autoscaler, *, until_s: float = 720.0) -> tuple[list[Observation], Twin]:
    """Observations at each decision."""
    twin, seen = Twin(spec, iter([rush()])), []
    while twin.now_s < until_s:
        observation = twin.observe()
        seen.append(observation)
        for variant, count in autoscaler.decide(observation, twin.now_s).items():
            twin.scale(variant, count)
        twin.advance(twin.now_s + min(autoscaler.period_s, until_s - twin.now_s))
    return seen, twin


def ready(observation: Observation) -> int:
    return sum(one.state is ReplicaState.READY for one in observation.replicas)


@pytest.mark.parametrize("policy", POLICIES)
def test_replicas_follow_the_load_and_keep_their_bounds(policy: str) -> None:
    spec = fleet()
    seen, twin = run(spec, POLICIES[policy](spec))
    before = [ready(one) for one in seen if one.at_s <= 60]
    during = [ready(one) for one in seen if 180 <= one.at_s <= 300]
    assert max(before) <= 2
    assert max(during) >= 3
    assert all(1 <= one.desired["v"] <= MOST for one in seen)
    assert min(one.desired["v"] for one in seen if one.at_s >= 480) < max(one.desired["v"] for one in seen)
    twin.finish().check_conservation()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_run_repeats_itself(policy: str) -> None:
    spec = fleet()
    once, again = (run(spec, POLICIES[policy](spec), until_s=300.0)[0] for _ in range(2))
    assert once == again


def test_static_counts_stay() -> None:
    spec = fleet(initial_replicas=3)
    seen, _ = run(spec, StaticAutoscaler({"v": 3}, period_s=60.0))
    assert {one.desired["v"] for one in seen} == {3}


def test_keda_wakes_a_sleeping_service_and_puts_it_to_sleep() -> None:
    spec = fleet(initial_replicas=0)
    keda = KedaSpec(max_replicas=MOST, triggers=(BUSY,), polling_s=5, cooldown_s=30, behavior=QUICK)
    twin = Twin(spec, iter([requests([40.0], [1000], [200])]))
    autoscaler, asked = KedaAutoscaler({"v": keda}, spec), {}
    while twin.now_s < 150:
        now = twin.now_s
        for variant, count in autoscaler.decide(twin.observe(), now).items():
            twin.scale(variant, count)
            asked[now] = count
        twin.advance(now + autoscaler.period_s)
    assert asked[35.0] == 0
    assert asked[45.0] == 1
    assert asked[145.0] == 0
    assert twin.finish().served().outcomes[Outcome.DONE] == 1


def test_v2_needs_fewer_cycles_than_v1_for_a_rush() -> None:
    """One replica per cycle and waiting for each against all that is missing at once."""
    reached = {}
    for policy in ("wva", "wva-v2"):
        spec = fleet()
        seen, _ = run(spec, POLICIES[policy](spec), until_s=300.0)
        reached[policy] = next((one.at_s for one in seen if one.desired["v"] >= 3), 300.0)
    assert reached["wva-v2"] <= reached["wva"]
