"""KEDA: when it wakes, rests and falls back, and how its HPA and its polls go together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.autoscaling import Fallback, FallbackBehavior, HpaMetric, KedaSpec, MetricSource, TargetType
from planner.errors import ConfigurationError
from planner.simulation.autoscaling import KedaAutoscaler, KedaMemory, epp_saturation, poll, pool_saturation
from tests.observations import a_replica, a_service, a_starting_replica, a_twin, seen

QUEUE = HpaMetric(name="router_queue", source=MetricSource.EXTERNAL, target=5)


def spec(**more: Any) -> KedaSpec:
    return KedaSpec(**{"triggers": (QUEUE,), "max_replicas": 10, **more})


def polled(
    told: KedaSpec, asked: int, figure: float | None, *, active_s: float | None = None, now_s: float = 1000.0
) -> int:
    memory = KedaMemory(created_s=0.0, active_s=active_s)
    return poll(told, memory, asked=asked, figures={"router_queue": figure}, now_s=now_s)[0]


@pytest.mark.parametrize(
    ("case", "told", "asked", "figure", "active_s", "replicas"),
    [
        ("wakes-to-one", spec(), 0, 1.0, None, 1),
        ("wakes-to-its-minimum", spec(min_replicas=3), 0, 1.0, None, 3),
        ("at-the-activation-threshold-sleeps-on", spec(activations={"router_queue": 5}), 0, 5.0, None, 0),
        ("above-the-activation-threshold", spec(activations={"router_queue": 5}), 0, 5.1, None, 1),
        ("active-and-running-is-the-hpas", spec(), 4, 50.0, None, 4),
        ("cooling-down", spec(), 4, 0.0, 701.0, 4),
        ("exactly-cooled-down-is-not-yet", spec(), 4, 0.0, 700.0, 4),
        ("cooled-down", spec(), 4, 0.0, 699.0, 0),
        ("never-active-has-no-cooldown", spec(), 4, 0.0, None, 0),
        ("initial-cooldown", spec(initial_cooldown_s=2000), 4, 0.0, None, 4),
        ("initial-cooldown-over", spec(initial_cooldown_s=900), 4, 0.0, None, 0),
        ("a-minimum-stays", spec(min_replicas=2), 4, 0.0, 0.0, 4),
        ("below-its-minimum", spec(min_replicas=2), 1, 0.0, 0.0, 2),
        ("rests-at-idle", spec(min_replicas=2, idle_replicas=0), 4, 0.0, 0.0, 0),
        ("wakes-from-idle-to-its-minimum", spec(min_replicas=2, idle_replicas=0), 0, 1.0, None, 2),
        ("wakes-from-idle-of-one", spec(min_replicas=3, idle_replicas=1), 1, 1.0, None, 3),
        ("idle-of-one", spec(min_replicas=3, idle_replicas=1), 3, 0.0, 0.0, 1),
        ("a-failing-trigger-changes-nothing", spec(), 4, None, 0.0, 4),
    ],
)
def test_polls(
    case: str, told: KedaSpec, asked: int, figure: float | None, active_s: float | None, replicas: int
) -> None:
    assert polled(told, asked, figure, active_s=active_s) == replicas, case


@pytest.mark.parametrize(
    ("behavior", "asked", "replicas"),
    [
        ("static", 2, 6),
        ("static", 8, 6),
        ("currentReplicas", 2, 2),
        ("currentReplicasIfHigher", 8, 8),
        ("currentReplicasIfHigher", 2, 6),
        ("currentReplicasIfLower", 8, 6),
        ("currentReplicasIfLower", 2, 2),
    ],
)
def test_fallback_after_failures_in_a_row(behavior: str, asked: int, replicas: int) -> None:
    told = spec(fallback=Fallback(replicas=6, failure_threshold=3, behavior=FallbackBehavior(behavior)))
    memory = KedaMemory(created_s=0.0)
    for _ in range(3):
        count, memory = poll(told, memory, asked=asked, figures={"router_queue": None}, now_s=0.0)
        assert count == asked
    assert poll(told, memory, asked=asked, figures={"router_queue": None}, now_s=0.0)[0] == replicas


def test_a_reading_ends_the_row_of_failures() -> None:
    told = spec(fallback=Fallback(replicas=6, failure_threshold=1))
    memory = KedaMemory(created_s=0.0)
    for figure in (None, 1.0, None):
        count, memory = poll(told, memory, asked=2, figures={"router_queue": figure}, now_s=0.0)
    assert count == 2


def test_polls_and_the_hpa_have_their_own_periods() -> None:
    keda = KedaAutoscaler({"v": spec(polling_s=10, sync_s=15)}, a_twin())
    assert keda.period_s == 5
    asked = []
    count = 0
    for second in range(0, 50, 5):
        held = 40 if second >= 5 else 0
        found = seen(
            float(second),
            [a_replica()] * count,
            a_service(router_queue=held),
            desired={"v": count},
        )
        count = keda.decide(found, float(second))["v"]
        asked.append(count)
    # Polls at 0, 10, ...: it wakes at 10; the HPA at 15 doubles one to 4, at 30 asks for ceil(40/5).
    assert asked == [0, 0, 1, 4, 4, 4, 8, 8, 8, 8]


def test_it_sleeps_after_its_cooldown() -> None:
    keda = KedaAutoscaler({"v": spec(polling_s=5, cooldown_s=30, sync_s=15)}, a_twin())
    count, slept = 1, None
    for second in range(0, 100, 5):
        held = 5 if second < 20 else 0
        found = seen(float(second), [a_replica()] * count, a_service(router_queue=held), desired={"v": count})
        count = keda.decide(found, float(second))["v"]
        slept = second if count == 0 and slept is None else slept
    # Last active at 15; later than 30 s after that is 50.
    assert slept == 50


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"min_replicas": 11}, "above max_replicas"),
        ({"idle_replicas": 0}, "must be less than min_replicas"),
        ({"activations": {"other": 1}}, "activation of other, which is no trigger"),
        (
            {"triggers": (HpaMetric(name="waiting", source=MetricSource.PODS, target=1),)},
            "where External is needed",
        ),
    ],
)
def test_a_spec_that_cannot_be_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        spec(**fields)


def test_unknown_names_are_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="v1"):
        KedaAutoscaler({"v1": spec()}, a_twin())
    typo = HpaMetric(name="router_queu", source=MetricSource.EXTERNAL, target=5)
    with pytest.raises(ConfigurationError) as raised:
        KedaAutoscaler({"v": spec(triggers=(typo,))}, a_twin())
    assert "router_queue" in str(raised.value.findings[0])


class TestPoolSaturation:
    """The router's saturation as a trigger."""

    @pytest.mark.parametrize(
        ("readings", "saturation"),
        [
            ([(0.4, 0)], 0.5),
            ([(0.0, 5)], 1.0),
            ([(0.8, 10)], 2.0),
            ([(0.8, 0), (0.0, 0)], 0.5),
            ([], 1.0),
        ],
    )
    def test_it_is_the_mean_of_the_nearer_limit(
        self, readings: list[tuple[float, int]], saturation: float
    ) -> None:
        replicas = [a_replica(kv=kv, waiting=waiting) for kv, waiting in readings]
        assert pool_saturation(replicas) == pytest.approx(saturation)

    def test_it_scales_the_pool(self) -> None:
        told = epp_saturation(10, target=0.8)
        assert told.triggers[0].target_type is TargetType.VALUE
        keda = KedaAutoscaler({"v": told}, a_twin())
        full = [a_replica(kv=0.8, waiting=10)] * 2
        # Saturation 2 at a target of 0.8: 2 x 2.5.
        assert keda.decide(seen(0.0, full), 0.0) == {"v": 4}
        growing = [*full, a_starting_replica(), a_starting_replica()]
        assert keda.decide(seen(15.0, growing), 15.0) == {"v": 5}
