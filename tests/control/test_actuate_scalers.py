"""HPAs and ScaledObjects are held at what was decided, given back, and left to people who changed them."""

from __future__ import annotations

from typing import Any

import pytest

from planner.clock import FakeClock
from planner.control.actuators.hpa import actuator as hpa_actuator
from planner.control.actuators.keda import actuator as keda_actuator
from planner.control.cluster import Api, MemoryCluster
from planner.control.cluster.kinds import HORIZONTAL_POD_AUTOSCALERS
from planner.control.protocols import OutcomeCode
from tests.control.actuator_builders import a_variant, answers, connected, decided, written
from tests.kube_objects import a_deployment, a_scaled_object, an_hpa, notes, reading


def variants(*things: Any) -> Any:
    return {each.name: each for each in reading(*things).variants}


PAUSED = "autoscaling.keda.sh/paused-replicas"


def the_hpa(cluster: MemoryCluster) -> Any:
    return next(each for each in cluster.objects() if each["kind"] == "HorizontalPodAutoscaler")


def hold(cluster: MemoryCluster, desired: int, wanted: int = 2, *, dry_run: bool = False) -> Any:
    decision = decided(a_variant("hpa", wanted), desired)
    return hpa_actuator({}, connected(cluster)).act([decision], dry_run=dry_run)[0]


class TestHpa:
    def test_a_dry_run_tells_each_field_and_writes_nothing(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        found = hold(cluster, 5, dry_run=True)
        assert found.code is OutcomeCode.WOULD
        assert (found.applied, found.changed) == (False, False)
        assert [str(each) for each in found.differences] == [
            "HorizontalPodAutoscaler prod/llama-hpa: metadata.annotations[fleetplan.dev/former-bounds]: nothing → 1:8",
            "HorizontalPodAutoscaler prod/llama-hpa: metadata.annotations[fleetplan.dev/pinned]: nothing → 5",
            "HorizontalPodAutoscaler prod/llama-hpa: spec.minReplicas: 1 → 5",
            "HorizontalPodAutoscaler prod/llama-hpa: spec.maxReplicas: 8 → 5",
        ]
        assert not cluster.writes

    def test_both_bounds_are_written_at_once_and_only_on_change(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        assert hold(cluster, 5).code is OutcomeCode.DONE
        assert hold(cluster, 5).code is OutcomeCode.SAME
        assert len(cluster.writes) == 1
        assert the_hpa(cluster)["spec"]["minReplicas"] == the_hpa(cluster)["spec"]["maxReplicas"] == 5

    def test_the_record_keeps_what_people_set(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        hold(cluster, 5)
        hold(cluster, 3)
        assert the_hpa(cluster)["metadata"]["annotations"]["fleetplan.dev/former-bounds"] == "1:8"

    def test_discovery_reads_the_bounds_of_people_while_it_is_held(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        hold(cluster, 5)
        found = variants(a_deployment(), the_hpa(cluster))["llama-hpa"]
        assert (found.min_replicas, found.max_replicas) == (1, 8)

    def test_bounds_that_people_changed_meanwhile_are_the_bounds(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        hold(cluster, 5)
        changed = the_hpa(cluster)
        changed["spec"] |= {"minReplicas": 2, "maxReplicas": 12}
        found = variants(a_deployment(), changed)["llama-hpa"]
        assert (found.min_replicas, found.max_replicas) == (2, 12)
        hold(again := MemoryCluster([a_deployment(), changed]), 6)
        assert the_hpa(again)["metadata"]["annotations"]["fleetplan.dev/former-bounds"] == "2:12"

    def test_whoever_sets_bounds_back_each_time_keeps_them(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        acting = hpa_actuator({}, connected(cluster))
        codes = []
        for desired in [5] * 6 + [6]:
            codes.append(acting.act([decided(a_variant(), desired)], dry_run=False)[0].code)
            # A tool that keeps objects as its repository has them, and leaves annotations that it does not know.
            body = the_hpa(cluster)
            body["spec"] |= {"minReplicas": 1, "maxReplicas": 8}
            body["metadata"]["managedFields"] = [
                {
                    "manager": "argocd",
                    "time": "2026-11-30T10:00:00Z",
                    "fieldsV1": {"f:spec": {"f:maxReplicas": {}}},
                }
            ]
            Api(cluster, FakeClock()).patch(HORIZONTAL_POD_AUTOSCALERS, "prod", "llama-hpa", body)
        assert codes == [OutcomeCode.DONE] * 4 + [OutcomeCode.CONFLICT] * 2 + [OutcomeCode.DONE]

    def test_the_quarrel_names_its_other_side(self) -> None:
        held = notes() | {"fleetplan.dev/former-bounds": "1:8", "fleetplan.dev/pinned": "5"}
        thing = an_hpa(least=1, most=8, annotations=held)
        owns = {"f:spec": {"f:maxReplicas": {}}}
        thing["metadata"]["managedFields"] = [{"manager": "argocd", "time": "2026", "fieldsV1": owns}]
        acting = hpa_actuator(
            {}, connected(MemoryCluster([a_deployment(), thing], before=answers(*[422] * 9)))
        )
        for _ in range(3):
            assert acting.act([decided(a_variant(), 5)], dry_run=False)[0].code is OutcomeCode.FAILED
        assert (
            "argocd sets the bounds back each time"
            in acting.act([decided(a_variant(), 5)], dry_run=False)[0].message
        )

    def test_an_hpa_that_a_plan_holds_is_left_to_it(self) -> None:
        held = notes() | {"fleetplan.dev/former-bounds": "1:8"}
        cluster = MemoryCluster([a_deployment(), an_hpa(least=4, most=4, annotations=held)])
        found = hold(cluster, 5)
        assert found.code is OutcomeCode.LEFT
        assert "held by a plan" in found.message
        assert not cluster.writes

    def test_the_last_replica_goes_and_the_first_comes_past_an_hpa_that_rests(self) -> None:
        cluster = MemoryCluster([a_deployment(replicas=2), an_hpa(least=1, most=8)])
        down = hold(cluster, 0)
        assert [each.field for each in down.differences][-1] == "spec.replicas"
        assert the_hpa(cluster)["spec"]["minReplicas"] == 2
        up = hold(cluster, 3, wanted=0)
        assert up.differences[-1].after == "3"
        assert the_hpa(cluster)["spec"]["minReplicas"] == 3

    def test_what_was_held_is_given_back(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        hold(cluster, 5)
        acting = hpa_actuator({}, connected(cluster))
        assert acting.release([a_variant()], dry_run=True)[0].code is OutcomeCode.WOULD
        assert acting.release([a_variant()], dry_run=False)[0].code is OutcomeCode.DONE
        assert acting.release([a_variant()], dry_run=False)[0].code is OutcomeCode.SAME
        assert the_hpa(cluster)["spec"]["maxReplicas"] == 8
        assert "fleetplan.dev/pinned" not in the_hpa(cluster)["metadata"]["annotations"]

    @pytest.mark.parametrize("scaler", ["keda", "variantautoscaling"])
    def test_variants_of_other_scalers_are_not_its_own(self, scaler: str) -> None:
        cluster = MemoryCluster([a_deployment()])
        found = hpa_actuator({}, connected(cluster)).act([decided(a_variant(scaler), 5)], dry_run=False)
        assert [each.code for each in found] == [OutcomeCode.LEFT]
        assert not cluster.calls

    def test_what_people_paused_is_not_touched(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa()])
        decision = decided(a_variant(paused=True), 5)
        found = hpa_actuator({}, connected(cluster)).act([decision], dry_run=False)
        assert found[0].code is OutcomeCode.LEFT
        assert not cluster.calls

    def test_an_early_version_of_the_api_is_spoken_too(self) -> None:
        cluster = MemoryCluster([a_deployment(), an_hpa(least=1, most=8)])
        hold(cluster, 5)
        assert written(cluster)[0]["apiVersion"] == "autoscaling/v2"


class TestKeda:
    def hold(self, cluster: MemoryCluster, desired: int) -> Any:
        decision = decided(a_variant("keda"), desired)
        return keda_actuator({}, connected(cluster)).act([decision], dry_run=False)[0]

    def the_object(self, cluster: MemoryCluster) -> Any:
        return next(each for each in cluster.objects() if each["kind"] == "ScaledObject")

    @pytest.mark.parametrize("count", [0, 1, 7])
    def test_it_is_held_by_kedas_annotation(self, count: int) -> None:
        cluster = MemoryCluster([a_deployment(), a_scaled_object()])
        assert self.hold(cluster, count).code is OutcomeCode.DONE
        assert self.hold(cluster, count).code is OutcomeCode.SAME
        assert self.the_object(cluster)["metadata"]["annotations"][PAUSED] == str(count)
        assert len(cluster.writes) == 1

    def test_our_own_pause_is_no_pause_of_people(self) -> None:
        cluster = MemoryCluster([a_deployment(), a_scaled_object()])
        self.hold(cluster, 4)
        assert not variants(a_deployment(), self.the_object(cluster))["llama-so"].paused
        theirs = self.the_object(cluster)
        theirs["metadata"]["annotations"][PAUSED] = "9"
        assert variants(a_deployment(), theirs)["llama-so"].paused

    def test_a_pause_of_people_stays(self) -> None:
        cluster = MemoryCluster([a_deployment(), a_scaled_object(annotations=notes() | {PAUSED: "3"})])
        found = self.hold(cluster, 5)
        assert found.code is OutcomeCode.LEFT
        assert "paused by people" in found.message
        assert not cluster.writes

    def test_it_is_given_back(self) -> None:
        cluster = MemoryCluster([a_deployment(), a_scaled_object()])
        self.hold(cluster, 4)
        acting = keda_actuator({}, connected(cluster))
        assert acting.release([a_variant("keda")], dry_run=False)[0].code is OutcomeCode.DONE
        assert self.the_object(cluster)["metadata"]["annotations"] == notes()

    def test_a_pause_that_people_set_over_ours_stays_when_it_is_given_back(self) -> None:
        cluster = MemoryCluster([a_deployment(), a_scaled_object()])
        self.hold(cluster, 4)
        theirs = self.the_object(cluster)
        theirs["metadata"]["annotations"][PAUSED] = "9"
        again = MemoryCluster([theirs])
        keda_actuator({}, connected(again)).release([a_variant("keda")], dry_run=False)
        assert self.the_object(again)["metadata"]["annotations"] == notes() | {PAUSED: "9"}


@pytest.mark.parametrize("record", ["", "8", "a:b", "1:", "-1:8", "1:8:9", "\u0661:\u0668", "9" * 40 + ":1"])
def test_a_record_that_is_none_leaves_the_bounds_as_they_are_written(record: str) -> None:
    held = notes() | {"fleetplan.dev/former-bounds": record, "fleetplan.dev/pinned": "5"}
    found = reading(a_deployment(), an_hpa(least=5, most=5, annotations=held)).variants
    assert [(each.min_replicas, each.max_replicas) for each in found] == [(5, 5)]
