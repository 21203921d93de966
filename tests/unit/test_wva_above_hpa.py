"""WVA above HPA: what an analyzer decides arrives as a metric, late, and within what the HPA allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    MetricSource,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
)
from models.saturation import SaturationThresholds
from models.simulation import Observation, ReplicaObservation, ReplicaState, ServiceObservation
from planner.errors import ConfigurationError
from planner.simulation.autoscaling import (
    Analyzer,
    Board,
    HpaAutoscaler,
    StaticAutoscaler,
    WvaAutoscaler,
    WvaSettings,
    WvaVariant,
)
from tests.observations import a_replica, a_service, a_starting_replica, a_twin, seen

FAST = HpaBehavior(
    up=ScalingRules(policies=(ScalingPolicy(type=PolicyType.PODS, value=10, period_s=15),)),
    down=ScalingRules(stabilization_s=0),
)
ANY = HpaMetric(name="waiting", source=MetricSource.PODS, target=1)
FULL = {"kv": 0.75, "waiting": 2}
CALM = {"kv": 0.1, "waiting": 0}


def hpa(**more: Any) -> HpaSpec:
    return HpaSpec(**{"max_replicas": 10, "metrics": (ANY,), "behavior": FAST, **more})


def wva(*variants: WvaVariant, spec: HpaSpec | None = None, **settings: Any) -> WvaAutoscaler:
    known = variants or (WvaVariant(name="v", service="s"),)
    return WvaAutoscaler(
        known,
        {one.name: spec or hpa() for one in known},
        twin=a_twin(*[one.name for one in known]),
        settings=WvaSettings(**settings),
    )


def run(autoscaler: WvaAutoscaler, reading: dict[str, Any], *, cycles: int, start: int = 2) -> list[int]:
    """Replicas of ``v`` cycle by cycle, replicas being ready at once."""
    counts, count = [], start
    for cycle in range(cycles):
        replicas = [a_replica(name=f"v-{index}", **reading) for index in range(count)]
        observation = seen(15.0 * cycle, replicas, desired={"v": count})
        count = autoscaler.decide(observation, 15.0 * cycle).get("v", count)
        counts.append(count)
    return counts


class TestPercentage:
    """V1 in the loop."""

    def test_one_more_per_cycle_while_it_is_full(self) -> None:
        assert run(wva(), FULL, cycles=4) == [3, 4, 5, 6]

    def test_one_fewer_per_cycle_while_it_is_calm_down_to_one(self) -> None:
        assert run(wva(), CALM, cycles=4, start=4) == [3, 2, 1, 1]

    def test_the_hpa_keeps_its_maximum(self) -> None:
        assert run(wva(spec=hpa(max_replicas=3)), FULL, cycles=4) == [3, 3, 3, 3]

    def test_it_comes_back_from_the_maximum_of_the_hpa(self) -> None:
        """A decision above what the HPA allows would never arrive, and V1 would wait for it for ever."""
        autoscaler = wva(spec=hpa(max_replicas=3))
        full = [a_replica(name=f"v-{index}", **FULL) for index in range(3)]
        for cycle in range(3):
            assert autoscaler.decide(seen(15.0 * cycle, full), 15.0 * cycle) == {"v": 3}
        calm = [replace(one, kv_usage_max_1m=0.1, waiting_max_1m=0) for one in full]
        assert autoscaler.decide(seen(60.0, calm), 60.0) == {"v": 2}

    def test_the_hpa_keeps_its_window(self) -> None:
        patient = HpaBehavior(up=FAST.up, down=ScalingRules(stabilization_s=240))
        counts = run(wva(spec=hpa(behavior=patient)), CALM, cycles=18, start=4)
        assert counts[:16] == [4] * 16
        # WVA waits for its own decision of 3, so only one goes when the window opens.
        assert counts[16:] == [3, 3]

    def test_the_metric_is_late(self) -> None:
        assert run(wva(metric_lag_s=20), FULL, cycles=5) == [2, 2, 3, 3, 3]

    def test_it_waits_while_replicas_start(self) -> None:
        autoscaler = wva()
        replicas = [a_replica(**FULL), a_replica(**FULL), a_starting_replica()]
        assert autoscaler.decide(seen(0.0, replicas), 0.0) == {"v": 3}

    def test_it_waits_for_its_own_decision_unless_told_not_to(self) -> None:
        slow = hpa(sync_s=60)
        for keeps, decided in ((True, 3), (False, 2)):
            autoscaler = wva(spec=slow, keeps_decisions=keeps)
            full = [a_replica(**FULL)] * 2
            autoscaler.decide(seen(0.0, full, desired={"v": 2}), 0.0)
            assert autoscaler.desired == {"v": 3}
            # The HPA asked for 3 at 0 s, but somebody set the target back.
            calm = [a_replica(kv=0.5, waiting=1)] * 2
            autoscaler.decide(seen(15.0, calm, desired={"v": 2}), 15.0)
            assert autoscaler.desired == {"v": decided}

    def test_nobody_ready_is_no_decision(self) -> None:
        autoscaler = wva()
        assert autoscaler.decide(seen(0.0, [a_starting_replica()] * 2), 0.0) == {"v": 2}

    def test_the_cheaper_variant_grows_and_the_dearer_goes(self) -> None:
        cheap = WvaVariant(name="a", service="s", cost=1.0)
        dear = WvaVariant(name="b", service="s", cost=2.5)
        full = [a_replica("a", **FULL), a_replica("b", **FULL), a_replica("b", name="b-1", **FULL)]
        calm = [replace(one, kv_usage_max_1m=0.1, waiting_max_1m=0) for one in full]
        assert wva(cheap, dear).decide(seen(0.0, full), 0.0) == {"a": 2, "b": 2}
        assert wva(cheap, dear).decide(seen(0.0, calm), 0.0) == {"a": 1, "b": 1}

    @pytest.mark.parametrize(("spills", "dearer"), [(False, 1), (True, 2)])
    def test_a_cheap_variant_at_its_ceiling(self, spills: bool, dearer: int) -> None:
        """The published rule still picks the cheapest, so nothing grows; with spilling the next one does."""
        cheap = WvaVariant(name="a", service="s", cost=1.0, max_replicas=1)
        dear = WvaVariant(name="b", service="s", cost=2.5)
        full = [a_replica("a", **FULL), a_replica("b", **FULL)]
        found = wva(cheap, dear, spills=spills).decide(seen(0.0, full), 0.0)
        assert found == {"a": 1, "b": dearer}

    def test_few_gpus_go_to_the_fuller_service(self) -> None:
        twin = a_twin("a", "b")
        services = twin.services[0], twin.services[0].but(name="t")
        twin = twin.but(services=services, replicas=(twin.replicas[0], twin.replicas[1].but(service="t")))
        known = [
            WvaVariant(name="a", service="s", accelerator="H100"),
            WvaVariant(name="b", service="t", accelerator="H100"),
        ]
        autoscaler = WvaAutoscaler(
            known, {"a": hpa(), "b": hpa()}, twin=twin, settings=WvaSettings(gpus={"H100": 3})
        )
        replicas = [
            a_replica("a", kv=0.72, waiting=2),
            a_replica("b", service="t", kv=0.78, waiting=2),
        ]
        found = seen(0.0, replicas, a_service("s"), a_service("t"))
        assert autoscaler.decide(found, 0.0) == {"a": 1, "b": 2}

    def test_a_variant_at_zero_is_not_seen(self) -> None:
        asleep = WvaVariant(name="a", service="s", cost=1.0)
        awake = WvaVariant(name="b", service="s", cost=2.5)
        full = [a_replica("b", **FULL)]
        autoscaler = wva(asleep, awake)
        autoscaler.decide(seen(0.0, full, desired={"a": 0}), 0.0)
        assert autoscaler.desired == {"b": 2}
        seeing = wva(asleep, awake, visible_at_zero=True)
        seeing.decide(seen(0.0, full, desired={"a": 0}), 0.0)
        assert seeing.desired == {"a": 1, "b": 1}


def used(at_s: float, replicas: Sequence[ReplicaObservation], **more: Any) -> Observation:
    """An observation of requests of 400 + 100 tokens."""
    done = int(at_s)
    service: ServiceObservation = a_service(
        arrivals_total=done,
        completions_total=done,
        input_tokens_total=400 * done,
        output_tokens_total=100 * done,
        **more,
    )
    return seen(at_s, replicas, service)


class TestTokens:
    """V2 in the loop. A replica holds 16,000 tokens, 12,800 up to τ."""

    def decided(self, replicas: Sequence[ReplicaObservation], **more: Any) -> int:
        autoscaler = wva(analyzer=Analyzer.TOKENS)
        autoscaler.decide(used(0.0, replicas), 0.0)
        return autoscaler.decide(used(15.0, replicas, **more), 15.0)["v"]

    @pytest.mark.parametrize(
        ("case", "kv", "replicas", "count"),
        [
            # 0.68 = 0.80 x 0.85 of the cache is where one replica scales out.
            ("just-below", 0.679, 1, 1),
            ("just-above", 0.682, 1, 2),
            # 4 x 0.2 x 16,000 / 0.7 = 18,286 of 51,200: two and a half to spare.
            ("calm", 0.2, 4, 2),
            ("between", 0.6, 4, 4),
        ],
    )
    def test_tokens_decide(self, case: str, kv: float, replicas: int, count: int) -> None:
        found = [a_replica(name=f"v-{index}", kv=kv) for index in range(replicas)]
        assert self.decided(found) == count, case

    def test_what_the_router_holds_is_demand(self) -> None:
        # 8,000 resident and 40 x 500 queued tokens: 28,000 / 0.85 = 32,941 of 12,800.
        assert self.decided([a_replica(kv=0.5)], router_queue=40) == 3

    def test_replicas_on_order_are_counted(self) -> None:
        replicas = [a_replica(kv=0.79), a_starting_replica()]
        assert self.decided(replicas) == 2


class TestEnforcer:
    """Scale to zero through WVA needs an HPA that may."""

    def test_it_sleeps_after_the_retention_time_without_use(self) -> None:
        held = HpaMetric(name="router_queue", source=MetricSource.EXTERNAL, target=1)
        spec = hpa(min_replicas=0, scale_to_zero_gate=True, metrics=(held,))
        autoscaler = wva(spec=spec, scale_to_zero=True, retention_s=60)
        counts = run(autoscaler, CALM, cycles=8, start=1)
        assert counts == [1, 1, 1, 1, 0, 0, 0, 0]

    def test_without_it_one_stays(self) -> None:
        assert run(wva(), CALM, cycles=8, start=1) == [1] * 8


class TestPlain:
    """HPA and static counts."""

    def test_hpa_on_queue_and_kv(self) -> None:
        metrics = (
            HpaMetric(name="waiting", source=MetricSource.PODS, target=3),
            HpaMetric(name="kv_usage", source=MetricSource.PODS, target=0.5),
        )
        plain = HpaAutoscaler({"v": hpa(metrics=metrics)}, a_twin())
        assert plain.period_s == 15
        assert plain.decide(seen(0.0, [a_replica(kv=0.9, waiting=0)] * 2), 0.0) == {"v": 4}

    def test_a_starting_replica_has_no_metric_and_a_draining_one_is_gone(self) -> None:
        plain = HpaAutoscaler({"v": hpa()}, a_twin())
        leaving = a_replica(state=ReplicaState.DRAINING, waiting=50)
        found = seen(0.0, [a_replica(waiting=2), a_starting_replica(), leaving])
        # 2.0 over two pods, one of them silent and so idle: the ratio is 1.
        assert plain.decide(found, 0.0) == {"v": 2}

    def test_static_counts_never_change(self) -> None:
        static = StaticAutoscaler({"v": 3})
        assert static.decide(seen(0.0, []), 0.0) == static.decide(seen(9.0, [a_replica()]), 9.0) == {"v": 3}

    @pytest.mark.parametrize(
        ("specs", "says"),
        [
            ({}, "at least one HPA"),
            ({"v": hpa(), "w": hpa(sync_s=30)}, "same sync_s"),
            ({"x": hpa(), "y": hpa()}, "2 "),
        ],
    )
    def test_wrong_set_ups_are_told_at_once(self, specs: dict[str, HpaSpec], says: str) -> None:
        with pytest.raises(ConfigurationError, match=says):
            HpaAutoscaler(specs, a_twin("v", "w"))

    def test_wva_needs_an_hpa_for_each_variant(self) -> None:
        with pytest.raises(ConfigurationError, match="look at v"):
            WvaAutoscaler([WvaVariant(name="v", service="s")], {}, twin=a_twin())


class TestBoard:
    """What is remembered."""

    def test_rates_are_over_the_last_minute(self) -> None:
        board = Board()
        for second in range(0, 150, 15):
            board.post(seen(float(second), [], a_service(arrivals_total=second * (1 if second < 60 else 2))))
        assert board.external("v", "s", "arrival_rps") == pytest.approx((270 - 150) / 60)

    def test_an_old_observation_is_taken_once(self) -> None:
        board = Board()
        for _ in range(3):
            board.post(seen(5.0, [], a_service(arrivals_total=9)))
        assert board.external("v", "s", "arrival_rps") is None

    def test_eleven_minutes_are_kept(self) -> None:
        board = Board()
        for second in range(0, 3600, 15):
            board.post(seen(float(second), []))
        assert board.before(1e9).at_s == 3585 - 660

    def test_late_observations_do_not_hide_what_was_asked_for(self) -> None:
        """The scale target is read as it is, however old the metrics are."""
        plain = HpaAutoscaler({"v": hpa(behavior=HpaBehavior())}, a_twin())
        full = [a_replica(waiting=9)]
        assert plain.decide(seen(0.0, full), 30.0) == {"v": 5}
        # 9 on one of five pods, four of them silent: 1.8 on each. Growth is from 5, and a period of 15 s is over.
        assert plain.decide(seen(15.0, full), 45.0) == {"v": 9}

    def test_replicas_without_gpus_are_pending_pods(self) -> None:
        plain = HpaAutoscaler({"v": hpa()}, a_twin())
        full = [a_replica(waiting=4)]
        # Pending pods are idle where one would grow: 4 over four pods is what is wanted.
        assert plain.decide(seen(0.0, full, desired={"v": 4}), 0.0) == {"v": 4}

    def test_one_figure_of_several_pods(self) -> None:
        board = Board()
        board.post(seen(0.0, [a_replica(waiting=2), a_replica(waiting=3), a_starting_replica()]))
        assert board.external("v", "s", "waiting") == 5
        assert [one.value for one in board.pods("v", "waiting")] == [2, 3, None]


def test_thresholds_of_the_paper_grow_earlier() -> None:
    half = {"kv": 0.55, "waiting": 1}
    assert run(wva(), half, cycles=1) == [2]
    assert run(wva(thresholds=SaturationThresholds(gamma_kv=0.3)), half, cycles=1) == [3]
