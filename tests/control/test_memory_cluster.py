"""The fake cluster answers as the layer over it expects, and as a real one does where both can."""

from __future__ import annotations

import pytest

from planner.clock import FakeClock
from planner.control.cluster import Api, ClusterFault, Rule, Trouble, connect_all, of_each
from planner.control.cluster.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    NODES,
    PODS,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
)
from planner.control.cluster.memory import MemoryCluster
from planner.control.cluster.reading import name_of
from planner.control.discovery.kubernetes import DiscoveryOptions, KubernetesDiscovery
from tests.kube_objects import CATALOG, a_deployment, a_namespace, a_node, a_pod, an_hpa

FLEET = (
    a_namespace(),
    a_node(),
    a_deployment(),
    an_hpa(),
    a_pod("p", labels={"app": "x"}),
    a_pod("q", namespace="other"),
)


def an_api(cluster: MemoryCluster, name: str | None = None) -> Api:
    return Api(cluster, FakeClock(), name)


def trouble_of(call: object) -> Trouble:
    with pytest.raises(ClusterFault) as raised:
        call()  # type: ignore[operator]
    return raised.value.trouble


def test_objects_are_found_by_namespace_name_and_label() -> None:
    api = an_api(MemoryCluster(FLEET))
    assert [name_of(each) for each in api.list(PODS).items] == ["q", "p"]
    assert [name_of(each) for each in api.list(PODS, "prod").items] == ["p"]
    assert [name_of(each) for each in api.list(PODS, labels="app=x").items] == ["p"]
    assert name_of(api.get(NODES, "", "n1")) == "n1"
    assert name_of(api.get(NAMESPACES, "", "prod")) == "prod"
    assert api.find(PODS, "prod", "nobody") is None
    assert api.version_of(HORIZONTAL_POD_AUTOSCALERS) == "v2"


def test_kinds_that_are_not_served_are_not_found() -> None:
    api = an_api(MemoryCluster(served=[PODS]))
    assert api.list_if_served(SCALED_OBJECTS) is None
    assert api.list_if_served(HORIZONTAL_POD_AUTOSCALERS) is None


def test_the_scale_is_that_of_the_object() -> None:
    cluster = MemoryCluster(FLEET)
    api = an_api(cluster)
    assert api.scale(DEPLOYMENTS, "prod", "llama", 5, dry_run=True).changed
    assert api.get(DEPLOYMENTS, "prod", "llama")["spec"]["replicas"] == 2
    assert not cluster.writes
    assert api.scale(DEPLOYMENTS, "prod", "llama", 5, seen=2).after == 5
    assert not api.scale(DEPLOYMENTS, "prod", "llama", 5).changed
    assert len(cluster.writes) == 1
    assert api.get(DEPLOYMENTS, "prod", "llama")["spec"]["template"]


def test_stale_writes_are_conflicts_and_second_ones_exist() -> None:
    api = an_api(MemoryCluster())
    old = api.create(CONFIG_MAPS, "prod", {"metadata": {"name": "c"}, "data": {"a": "1"}})
    api.patch(CONFIG_MAPS, "prod", "c", {"data": {"a": None, "b": "2"}})
    assert api.get(CONFIG_MAPS, "prod", "c")["data"] == {"b": "2"}
    assert trouble_of(lambda: api.replace(CONFIG_MAPS, "prod", old)) is Trouble.CONFLICT
    assert trouble_of(lambda: api.create(CONFIG_MAPS, "prod", {"metadata": {"name": "c"}})) is Trouble.EXISTS
    api.update(CONFIG_MAPS, "prod", "c", lambda found: {**found, "data": {"c": "3"}})
    assert api.get(CONFIG_MAPS, "prod", "c")["data"] == {"c": "3"}
    api.apply(
        VARIANT_AUTOSCALINGS, "prod", {"metadata": {"name": "v"}, "status": {"a": 1}}, subresource="status"
    )
    api.delete(CONFIG_MAPS, "prod", "c")
    api.delete(CONFIG_MAPS, "prod", "c")
    assert api.find(CONFIG_MAPS, "prod", "c") is None


def test_what_is_denied_names_its_rule() -> None:
    api = an_api(MemoryCluster(FLEET, denied={("patch", "deployments/scale")}))
    with pytest.raises(ClusterFault) as raised:
        api.scale(DEPLOYMENTS, "prod", "llama", 3)
    assert raised.value.rule == Rule(DEPLOYMENTS, "patch", "prod", "scale")


def test_discovery_reads_several_of_them_and_one_that_is_away() -> None:
    def away(_: object) -> None:
        raise ClusterFault(Trouble.CREDENTIALS, "no way in")

    clusters = [MemoryCluster(FLEET), MemoryCluster(FLEET), MemoryCluster(before=away)]
    apis = [an_api(cluster, name) for cluster, name in zip(clusters, ("east", "west", "gone"), strict=True)]
    seen = KubernetesDiscovery(apis, DiscoveryOptions(), CATALOG).see(0.0)
    assert [(each.cluster, each.name, each.wanted) for each in seen.variants] == [
        ("east", "llama-hpa", 2),
        ("west", "llama-hpa", 2),
    ]
    assert {pool.id for pool in seen.inventory.pools} == {"east/H100", "west/H100"}
    assert not seen.complete
    assert [each.subject for each in seen.findings] == ["cluster gone"]


def test_answers_and_faults_are_by_cluster() -> None:
    answers, faults = of_each(
        [an_api(MemoryCluster(FLEET), "a"), an_api(MemoryCluster(), "b")],
        lambda api: api.get(NODES, "", "n1"),
    )
    assert set(answers) == {"a"}
    assert faults["b"].trouble is Trouble.NOT_FOUND
    assert connect_all([], FakeClock()) == ()
