"""The gauge: one series for each variant, gone with it, said by the leader alone, and readable by Prometheus."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from models.hardware import Node, Pool
from models.observation import EngineObservation, Observation
from planner.control.actuators import Actuators, actuators_from
from planner.control.actuators.gauge import GaugeActuator, actuator
from planner.control.cluster import MemoryCluster
from planner.control.protocols import SHORT, OutcomeCode
from tests.control.actuator_builders import a_variant, connected, decided

DESIRED = "wva_desired_replicas"


def a_gauge(*clusters: MemoryCluster, leading: bool = True, **options: Any) -> GaugeActuator:
    made = actuator(options, connected(*(clusters or (MemoryCluster(),))))
    made.lead(leading=leading)
    return made


def series(
    gauge: GaugeActuator | Actuators, name: str = DESIRED, cluster: str | None = None
) -> dict[Any, float]:
    text = gauge.exposition(cluster).decode()
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


def labels(name: str = "llama-hpa", accelerator: str = "H100", **more: str) -> Any:
    known = {"variant_name": name, "namespace": "prod", "accelerator_type": accelerator} | more
    return tuple(sorted(known.items()))


def seen(*variants: Any, **more: Any) -> Observation:
    return Observation(at_s=1e9, variants=variants, **more)


class TestTheCount:
    def test_it_is_what_was_decided(self) -> None:
        gauge = a_gauge()
        found = gauge.act([decided(a_variant(), 5)], dry_run=False)[0]
        assert (found.code, found.changed) == (OutcomeCode.DONE, True)
        assert str(found.differences[0]) == "series prod/llama-hpa: wva_desired_replicas: nothing → 5"
        assert series(gauge) == {labels(): 5}

    def test_the_same_again_is_no_change(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(), 5)], dry_run=False)
        found = gauge.act([decided(a_variant(), 5)], dry_run=False)[0]
        assert (found.code, found.applied, found.changed) == (OutcomeCode.SAME, True, False)

    def test_a_dry_run_has_a_name_that_nobody_follows(self) -> None:
        gauge = a_gauge()
        assert gauge.act([decided(a_variant(), 5)], dry_run=True)[0].code is OutcomeCode.WOULD
        assert series(gauge) == {}
        assert series(gauge, "fleetplan_dry_run_desired_replicas") == {labels(): 5}

    def test_another_accelerator_makes_no_second_series(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(accelerator=""), 5)], dry_run=False)
        assert series(gauge) == {labels(accelerator="unresolved"): 5}
        gauge.act([decided(a_variant(accelerator="H200"), 6)], dry_run=False)
        assert series(gauge) == {labels(accelerator="H200"): 6}

    def test_what_is_not_decided_on_keeps_its_count(self) -> None:
        gauge = a_gauge()
        first, second = a_variant(name="a"), a_variant(name="b")
        gauge.act([decided(first, 5), decided(second, 3)], dry_run=False)
        gauge.saw(seen(first, second))
        gauge.act([decided(first, 6)], dry_run=False)
        assert series(gauge) == {labels("a"): 6, labels("b"): 3}

    def test_a_series_goes_with_its_variant(self) -> None:
        gauge = a_gauge()
        first, second = a_variant(name="a"), a_variant(name="b")
        gauge.act([decided(first, 5), decided(second, 3)], dry_run=False)
        gauge.saw(seen(first))
        assert series(gauge) == {labels("a"): 5}

    def test_not_seen_is_not_gone(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(), 5)], dry_run=False)
        gauge.saw(seen(complete=False))
        assert series(gauge) == {labels(): 5}

    def test_a_variant_without_a_target_has_no_series(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(), 5)], dry_run=False)
        found = gauge.act([decided(a_variant(wanted=None), 5)], dry_run=False)[0]
        assert found.code is OutcomeCode.GONE
        assert series(gauge) == {}


class TestTheLeader:
    def test_nothing_is_said_before_it_leads(self) -> None:
        gauge = a_gauge(leading=False)
        found = gauge.act([decided(a_variant(), 5)], dry_run=False)[0]
        assert (found.code, found.message) == (OutcomeCode.LEFT, "another controller leads")
        assert gauge.exposition().strip() == b""

    def test_everything_is_gone_when_it_leads_no_more_and_does_not_come_back_by_itself(self) -> None:
        gauge = a_gauge()
        gauge.saw(seen(a_variant()))
        gauge.act([decided(a_variant(), 5)], dry_run=False)
        gauge.lead(leading=False)
        assert gauge.exposition().strip() == b""
        gauge.lead(leading=True)
        assert series(gauge) == {}


class TestSeveralClusters:
    def test_each_scrapes_its_own_and_no_two_series_are_alike(self) -> None:
        gauge = a_gauge(MemoryCluster(), MemoryCluster())
        both = [decided(a_variant(cluster=name), count) for name, count in (("east", 5), ("west", 7))]
        gauge.act(both, dry_run=False)
        assert series(gauge) == {labels(cluster="east"): 5, labels(cluster="west"): 7}
        assert series(gauge, cluster="west") == {labels(cluster="west"): 7}
        assert series(gauge, cluster="mars") == {}

    def test_one_of_several_controllers_signs(self) -> None:
        connections = connected(MemoryCluster())
        signed = actuator(
            {}, type(connections)(clock=connections.clock, apis=connections.apis, instance="blue")
        )
        signed.lead(leading=True)
        signed.act([decided(a_variant(), 5)], dry_run=False)
        assert series(signed) == {labels(controller_instance="blue"): 5}


class TestCompanions:
    def test_current_replicas_and_ratio(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(wanted=4, ready=3, pending=1), 6)], dry_run=False)
        assert series(gauge, "wva_current_replicas") == {labels(): 4}
        assert series(gauge, "wva_desired_ratio") == {labels(): 1.5}

    def test_the_ratio_of_none_is_what_is_desired(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(wanted=0), 3)], dry_run=False)
        assert series(gauge, "wva_desired_ratio") == {labels(): 3}

    def test_scalings_are_counted_once_for_each_change(self) -> None:
        gauge = a_gauge()
        for desired in (5, 5, 3, 3):
            gauge.act([decided(a_variant(), desired, reason="Load")], dry_run=False)
        counts = series(gauge, "wva_replica_scaling_total")
        assert sorted((dict(key)["direction"], value) for key, value in counts.items()) == [
            ("down", 1),
            ("up", 1),
        ]

    def test_limits_are_counted(self) -> None:
        gauge = a_gauge()
        gauge.act([decided(a_variant(), 5, facts={SHORT: 2})], dry_run=False)
        assert list(series(gauge, "wva_decisions_limited_total").values()) == [1]

    def test_kv_caches_are_summed_only_where_all_of_them_are_known(self) -> None:
        gauge = a_gauge()
        known = EngineObservation(
            instance="p:8000", namespace="prod", pod="p", variant="llama-hpa", age_s=5, kv_tokens=1000, kv_usage=0.25
        )  # fmt: skip
        gauge.saw(seen(a_variant(), engines=(known,)))
        assert list(series(gauge, "wva_kv_cache_tokens_used").values()) == [250]
        gauge.saw(seen(a_variant(), engines=(known, known.but(instance="q:8000", pod="q", kv_usage=None))))
        assert series(gauge, "wva_kv_cache_tokens_used") == {}
        assert list(series(gauge, "wva_metrics_pods_discovered").values()) == [2]

    def test_freshness_is_that_of_the_oldest(self) -> None:
        gauge = a_gauge()
        engine = EngineObservation(instance="p:1", namespace="prod", variant="llama-hpa", age_s=5)
        for ages, status in (((5,), "fresh"), ((5, 100), "stale"), ((5, None), "missing"), ((), "missing")):
            engines = tuple(engine.but(instance=f"p:{place}", age_s=age) for place, age in enumerate(ages))
            gauge.saw(seen(a_variant(), engines=engines))
            found = series(gauge, "wva_metrics_freshness_status")
            assert [dict(key)["status"] for key in found] == [status]

    def test_accelerators_are_counted_by_type(self) -> None:
        gauge = a_gauge()
        pool = Pool(id="p", accelerator="H100", nodes=(Node(id="n", gpus=8, count=2),))
        gauge.saw(seen(pools=(pool,)))
        assert series(gauge, "wva_available_gpus") == {(("accelerator_type", "H100"),): 16}
        assert list(series(gauge, "wva_gpu_discovery_up").values()) == [1]

    def test_what_the_token_analyzer_says_is_told_of_variants_that_it_judged(self) -> None:
        gauge = a_gauge()
        facts = {
            "demand_tokens": 600.0,
            "capacity_tokens": 1000,
            "required_tokens": 0.0,
            "spare_tokens": 142.9,
        }
        gauge.act(
            [decided(a_variant(name="a"), 5, facts=facts), decided(a_variant(name="b"), 5)], dry_run=False
        )
        assert list(series(gauge, "wva_saturation_utilization").values()) == [0.6]
        assert list(series(gauge, "wva_required_capacity").values()) == [0.0]
        assert list(series(gauge, "wva_spare_capacity").values()) == [142.9]

    def test_no_capacity_is_no_utilization(self) -> None:
        gauge = a_gauge()
        facts = {"demand_tokens": 600.0, "capacity_tokens": 0}
        gauge.act([decided(a_variant(), 5, facts=facts)], dry_run=False)
        assert series(gauge, "wva_saturation_utilization") == {}

    def test_what_is_decided_between_two_cycles_leaves_the_others_decided(self) -> None:
        gauge = a_gauge()
        both = [a_variant(name="a"), a_variant(name="b", model="other")]
        gauge.saw(seen(*both))
        gauge.act([decided(each, 5) for each in both], dry_run=False)
        gauge.act([decided(both[0], 6)], dry_run=False)
        assert list(series(gauge, "wva_saturation_metrics_up").values()) == [1, 1]
        assert list(series(gauge, "wva_models_processed").values()) == [2]

    def test_they_can_be_left_out(self) -> None:
        gauge = a_gauge(companions=False)
        gauge.act([decided(a_variant(), 5)], dry_run=False)
        names = {family.name for family in text_string_to_metric_families(gauge.exposition().decode())}
        assert names == {DESIRED}


ANY_TEXT = st.text(st.characters(), max_size=80)
"""Lone surrogates among its letters."""


@given(ANY_TEXT, ANY_TEXT)
def test_no_name_of_others_breaks_the_text(name: str, accelerator: str) -> None:
    gauge = a_gauge()
    variant = a_variant().model_copy(update={"name": name, "accelerator": accelerator})
    gauge.saw(seen(variant, pools=()))
    gauge.act([decided(variant, 5)], dry_run=False)
    assert list(series(gauge).values()) == [5]


def test_the_fleet_passes_leadership_and_text_on() -> None:
    fleet = actuators_from([("gauge", {})], connected(MemoryCluster()))
    fleet.lead(leading=True)
    fleet.act([decided(a_variant(), 4)], dry_run=False)
    assert series(fleet) == {labels(): 4}


@pytest.mark.parametrize("desired", [-3, 0])
def test_no_count_is_below_zero(desired: int) -> None:
    gauge = a_gauge()
    gauge.act([decided(a_variant(), desired)], dry_run=False)
    assert series(gauge) == {labels(): 0}
