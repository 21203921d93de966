"""Before a controller is removed, everything that it holds is given back; not while one leads."""

from __future__ import annotations

from typing import Any

import pytest

from models.controller import ControllerSettings
from planner.clock import FakeClock
from planner.control.actuators import actuators_from
from planner.control.cluster import Api, Limits, MemoryCluster
from planner.control.cluster.kinds import LEASES
from planner.control.cluster.reading import annotations_of, labels_of, name_of
from planner.control.cluster.transport import Answer, Call
from planner.control.discovery.kubernetes import DiscoveryOptions, KubernetesDiscovery
from planner.control.protocols import Decision, OutcomeCode
from planner.control.running.releasing import Released, release_all
from planner.errors import SafetyGateError
from tests.control.actuator_builders import connected
from tests.kube_objects import (
    CATALOG,
    a_deployment,
    a_namespace,
    a_node,
    a_pod,
    a_scaled_object,
    an_hpa,
    notes,
)

SERVING = "fleetplan.dev/serving"


def a_held_cluster(**more: Any) -> MemoryCluster:
    """An HPA and a ScaledObject that are held, and a pod that is on its way out."""
    deployment, other = a_deployment(), a_deployment("other")
    deployment["spec"] |= {"selector": {"matchLabels": {"app": "llama"}}, "replicas": 2}
    pods = [
        a_pod(f"llama-{each}", ("ReplicaSet", "llama-5d"), labels={"app": "llama", SERVING: "true", "pod-template-hash": "5d"})
        for each in range(2)
    ]  # fmt: skip
    service = {
        "kind": "Service", "metadata": {"name": "llama", "namespace": "prod"},
        "spec": {"selector": {"app": "llama", SERVING: "true"}},
    }  # fmt: skip
    things = [
        a_namespace(), a_node(), deployment, other, an_hpa(least=1, most=8), a_scaled_object(target="other"), *pods,
        service,
    ]  # fmt: skip
    cluster = MemoryCluster(things)
    fleet = actuators_from([("hpa", {}), ("keda", {}), ("draining", {})], connected(cluster))
    seen = KubernetesDiscovery(connected(cluster).apis, DiscoveryOptions(), CATALOG).see(1e9).variants
    fleet.act(
        [Decision(variant=each, desired=(each.wanted or 0) - 1, reason="Load") for each in seen],
        dry_run=False,
    )
    cluster.writes.clear()
    for name, value in more.items():
        setattr(cluster, name, value)
    return cluster


def released(cluster: MemoryCluster, *, act: bool = True, **settings: Any) -> Released:
    clock = FakeClock(1e9)
    apis = (Api(cluster, clock, None, Limits(tries=1)),)
    return release_all(ControllerSettings(**settings), clock, home="fleetplan", act=act, apis=apis)


def traces(cluster: MemoryCluster) -> list[str]:
    """Everything of ours that is left in a cluster."""
    return [
        f"{name_of(each)}: {key}"
        for each in cluster.objects()
        for key, value in {**annotations_of(each), **labels_of(each)}.items()
        if (key.startswith("fleetplan.dev/") and key != SERVING) or "paused" in key or value == "draining"
    ]


def test_everything_is_given_back_and_nothing_is_left() -> None:
    cluster = a_held_cluster()
    assert traces(cluster)
    found = released(cluster)
    assert found.complete
    assert not found.left
    assert sorted(each.actuator for each in found.outcomes) == ["draining", "hpa", "keda"]
    assert traces(cluster) == []
    hpa = next(each for each in cluster.objects() if each["kind"] == "HorizontalPodAutoscaler")
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (1, 8)
    assert annotations_of(hpa) == notes()


def test_a_second_time_there_is_nothing_to_do() -> None:
    cluster = a_held_cluster()
    released(cluster)
    cluster.writes.clear()
    assert released(cluster).outcomes == ()
    assert not cluster.writes


def test_a_dry_run_tells_and_changes_nothing() -> None:
    cluster = a_held_cluster()
    found = released(cluster, act=False)
    assert {each.code for each in found.outcomes} == {OutcomeCode.WOULD}
    assert not cluster.writes


@pytest.mark.parametrize("settings", [
    {"sharding": {"shards": 2, "shard": 0}},
    {"sharding": {"instance": "blue"}},
    {"discovery": {"name": "kubernetes", "options": {"namespaces": ["test"]}}},
])  # fmt: skip
def test_what_others_hold_stays_theirs(settings: dict[str, Any]) -> None:
    cluster = a_held_cluster()
    before = traces(cluster)
    assert released(cluster, **settings).outcomes == ()
    assert traces(cluster) == before


def test_a_shard_gives_back_what_is_its_own() -> None:
    cluster = a_held_cluster()
    assert released(cluster, sharding={"shards": 2, "shard": 1}).outcomes
    assert traces(cluster) == []


class TestLeaders:
    LEASE = {"kind": "Lease", "metadata": {"name": "fleetplan", "namespace": "fleetplan"}}  # noqa: RUF012

    def with_lease(self, holder: str, *, renewed: bool) -> MemoryCluster:
        cluster = a_held_cluster()
        api = Api(cluster, FakeClock(1e9))
        api.create(
            LEASES, "fleetplan", {"metadata": {"name": "fleetplan"}, "spec": {"holderIdentity": holder}}
        )
        cluster.writes.clear()

        def before(call: Call) -> Answer | None:
            if renewed and call.method == "GET" and call.path.endswith("/leases/fleetplan"):
                cluster.before = lambda _: None
                answer = cluster.call(call)
                api.patch(LEASES, "fleetplan", "fleetplan", {"spec": {"renewTime": "later"}})
                return answer
            return None

        cluster.before = before
        return cluster

    def test_not_while_one_leads(self) -> None:
        cluster = self.with_lease("controller-7", renewed=True)
        with pytest.raises(SafetyGateError, match="controller-7 leads and would take everything again"):
            released(cluster)
        assert traces(cluster)

    @pytest.mark.parametrize("holder", ["", "controller-7"])
    def test_a_lease_that_nobody_renews_is_none(self, holder: str) -> None:
        assert not released(self.with_lease(holder, renewed=False)).left

    def test_a_dry_run_may_look_at_any_time(self) -> None:
        assert released(self.with_lease("controller-7", renewed=True), act=False).outcomes

    def test_not_where_nobody_can_tell(self) -> None:
        cluster = a_held_cluster(denied={("get", "leases")})
        with pytest.raises(SafetyGateError, match="nobody can tell whether a controller leads"):
            released(cluster)


def test_what_may_not_be_written_is_told_with_the_rule_and_the_rest_is_given_back() -> None:
    cluster = a_held_cluster(denied={("patch", "horizontalpodautoscalers")})
    found = released(cluster)
    assert [each.code for each in found.left] == [OutcomeCode.DENIED]
    assert 'resources: ["horizontalpodautoscalers"], verbs: ["patch"]' in found.left[0].message
    assert all("llama-hpa" in each for each in traces(cluster))
