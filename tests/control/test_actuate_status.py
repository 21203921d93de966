"""The status of VariantAutoscalings: written on change alone, true about what was carried out, and taken from nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from models.observation import Condition
from planner.clock import FakeClock
from planner.control.actuators import Actuators, actuators_from
from planner.control.cluster import MemoryCluster
from planner.control.protocols import Decision, OutcomeCode
from tests.control.actuator_builders import a_variant, answers, connected, decided
from tests.kube_objects import a_deployment, a_variant_autoscaling

METRICS = Condition(type="MetricsAvailable", status=True, reason="MetricsFound", message="5 s old")


def a_cluster(**more: Any) -> MemoryCluster:
    return MemoryCluster([a_deployment(), a_variant_autoscaling()], **more)


def a_fleet(cluster: MemoryCluster, *before: str, clock: FakeClock | None = None) -> Actuators:
    wanted = [*((name, {}) for name in before), ("variantautoscaling", {})]
    fleet = actuators_from(wanted, connected(cluster, clock=clock or FakeClock(1_790_000_000)))
    fleet.lead(leading=True)
    return fleet


def to(desired: int, *conditions: Condition, **more: Any) -> Decision:
    return decided(a_variant("variantautoscaling", conditions=conditions, **more), desired)


def status(cluster: MemoryCluster) -> Any:
    return next(each for each in cluster.objects() if each["kind"] == "VariantAutoscaling")["status"]


def test_it_says_what_was_decided_and_that_it_got_out() -> None:
    cluster = a_cluster()
    found = a_fleet(cluster, "gauge").act([to(5, METRICS)], dry_run=False)
    assert [each.code for each in found] == [OutcomeCode.DONE, OutcomeCode.DONE]
    written = status(cluster)
    assert written["desiredOptimizedAlloc"] == {
        "numReplicas": 5, "accelerator": "H100", "lastRunTime": "2026-09-21T14:13:20Z",
    }  # fmt: skip
    assert written["actuation"] == {"applied": True}
    assert [(each["type"], each["status"], each["reason"]) for each in written["conditions"]] == [
        ("MetricsAvailable", "True", "MetricsFound"),
        ("OptimizationReady", "True", "OptimizationSucceeded"),
    ]


def test_an_hour_without_change_is_one_write() -> None:
    clock = FakeClock(1_790_000_000)
    cluster = a_cluster()
    fleet = a_fleet(cluster, "gauge", clock=clock)
    for cycle in range(240):
        fleet.act([to(5, METRICS.but(message=f"{cycle} s old"))], dry_run=False)
        clock.advance(15)
    assert len(cluster.writes) == 1


@pytest.mark.parametrize(
    "changed",
    [
        to(6, METRICS),
        to(5, METRICS, accelerator="H200"),
        to(5, METRICS.but(status=False, reason="MetricsMissing")),
        to(5, METRICS.but(reason="MetricsStale")),
    ],
    ids=["count", "accelerator", "gate", "reason"],
)
def test_whatever_changes_is_written(changed: Decision) -> None:
    cluster = a_cluster()
    fleet = a_fleet(cluster)
    fleet.act([to(5, METRICS)], dry_run=False)
    fleet.act([changed], dry_run=False)
    assert len(cluster.writes) == 2


def test_a_gate_that_turns_tells_when_and_one_that_stays_told_before() -> None:
    clock = FakeClock(1_790_000_000)
    cluster = a_cluster()
    fleet = a_fleet(cluster, clock=clock)
    fleet.act([to(5, METRICS)], dry_run=False)
    clock.advance(60)
    fleet.act([to(5, METRICS.but(status=False, reason="MetricsMissing"))], dry_run=False)
    times = {each["type"]: each["lastTransitionTime"] for each in status(cluster)["conditions"]}
    assert times == {"MetricsAvailable": "2026-09-21T14:14:20Z", "OptimizationReady": "2026-09-21T14:13:20Z"}


def test_a_count_that_did_not_get_out_is_not_applied() -> None:
    """The published autoscaler said so although the metric was not emitted."""
    cluster = MemoryCluster([a_variant_autoscaling()], before=answers(422))
    fleet = a_fleet(cluster, "scale")
    found = fleet.act([to(5, METRICS)], dry_run=False)
    assert [each.code for each in found] == [OutcomeCode.GONE, OutcomeCode.FAILED]
    fleet.act([to(5, METRICS)], dry_run=False)
    assert status(cluster)["actuation"] == {"applied": False}


@pytest.mark.parametrize("accelerator", ["", "L"])
def test_an_accelerator_that_the_crd_would_refuse_has_a_name(accelerator: str) -> None:
    cluster = a_cluster()
    a_fleet(cluster).act([to(5, accelerator=accelerator)], dry_run=False)
    assert status(cluster)["desiredOptimizedAlloc"]["accelerator"] == "unresolved"


def test_variants_of_other_scalers_have_none() -> None:
    cluster = a_cluster()
    assert a_fleet(cluster).act([decided(a_variant("hpa"), 5)], dry_run=False) == ()
    assert not cluster.calls


def test_the_status_is_taken_from_nobody() -> None:
    cluster = a_cluster()
    a_fleet(cluster).act([to(5)], dry_run=False)
    assert cluster.writes[0].query["force"] == "false"
    assert cluster.writes[0].path.endswith("/variantautoscalings/llama-va/status")


def many(count: int) -> Sequence[Decision]:
    return [to(5, name=f"v{number}") for number in range(count)]


def test_many_of_one_namespace_are_read_in_one_call() -> None:
    cluster = MemoryCluster([a_variant_autoscaling(f"v{number}") for number in range(40)])
    fleet = a_fleet(cluster)
    fleet.act(many(40), dry_run=False)
    assert len(cluster.writes) == 40
    seen = len(cluster.calls)
    fleet.act(many(40), dry_run=False)
    assert len(cluster.calls) == seen + 1


def test_each_is_read_by_itself_where_rules_do_not_allow_all() -> None:
    cluster = MemoryCluster(
        [a_variant_autoscaling(f"v{number}") for number in range(6)], denied=[("list", "variantautoscalings")]
    )
    found = a_fleet(cluster).act(many(6), dry_run=False)
    assert [each.code for each in found] == [OutcomeCode.DONE] * 6


@pytest.mark.parametrize(
    "spoiled", [None, 7, "x", [], {"conditions": 3}, {"conditions": [None, {"type": 4}]}], ids=str
)
def test_a_status_that_is_none_is_written_anew(spoiled: Any) -> None:
    thing = a_variant_autoscaling() | {"status": spoiled}
    cluster = MemoryCluster([thing])
    assert a_fleet(cluster).act([to(5, METRICS)], dry_run=False)[0].code is OutcomeCode.DONE
    assert status(cluster)["desiredOptimizedAlloc"]["numReplicas"] == 5
