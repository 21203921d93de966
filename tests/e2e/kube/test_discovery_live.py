"""Discovery against a real API server, scheduler and controllers: nodes, pods, scalers of each kind, denials, two clusters."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from models.observation import Observation, VariantObservation
from planner.clock import SystemClock
from planner.control.cluster.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
)
from planner.control.discovery import open_discovery
from planner.control.discovery.kubernetes import KubernetesDiscovery
from planner.control.protocols import ClusterReading
from tests.e2e.kube.aggregated import external_metrics, hpa_v2, install_crd
from tests.e2e.kube.control_plane import ControlPlane, kube_test, wait_until
from tests.e2e.kube.kubelet import Kubelets
from tests.kube_objects import H100, L4, a_container, notes

pytestmark = kube_test()

_NODES = ("h100-a", "h100-b", "l4-a")


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """Two nodes of H100, one of L4, CRDs, and kubelets."""
    for kind in (VARIANT_AUTOSCALINGS, SCALED_OBJECTS, LEADER_WORKER_SETS):
        install_crd(control_plane, kind)
    zone = {"topology.kubernetes.io/zone": "a"}
    for name, labels, gpus in (("h100-a", H100, 8), ("h100-b", H100, 8), ("l4-a", L4, 4)):
        control_plane.add_node(name, labels=labels | zone, **{"nvidia.com/gpu": gpus})
    with Kubelets(control_plane.admin):
        yield control_plane
    for name in _NODES:
        control_plane.admin.delete(NODES, "", name)


def a_discovery(plane: ControlPlane, user: str = "admin", **options: Any) -> KubernetesDiscovery:
    clusters = [{"kubeconfig": str(plane.kubeconfig(user)), "timeout_s": 5, "within_s": 10}]
    found = open_discovery("kubernetes", {"clusters": clusters} | options, SystemClock())
    assert isinstance(found, KubernetesDiscovery)
    return found


def see(plane: ControlPlane, **options: Any) -> ClusterReading:
    return a_discovery(plane, **options).see(0.0)


def a_workload(name: str, replicas: int, *, gpus: int = 1, **pod: Any) -> dict[str, Any]:
    labels = {"app": name}
    container = a_container(gpus, args=["--model", "m", "--max-num-seqs", "64"])
    container["resources"]["requests"] = container["resources"]["limits"]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}}
    selector = {"matchLabels": labels}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": selector, "template": template},
    }


def an_hpa(name: str, target: str, **more: Any) -> dict[str, Any]:
    metric = {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": name}}}
    external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}
    return {
        "metadata": {"name": name, "annotations": notes(cost="4.5")},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": more.get("kind", "Deployment"), "name": target},
            "minReplicas": 1, "maxReplicas": 6, "metrics": [{"type": "External", "external": external}],
        },
    }  # fmt: skip


def variant(reading: ClusterReading, name: str) -> VariantObservation:
    return next(each for each in reading.variants if each.name == name)


def test_a_deployment_behind_an_annotated_hpa_is_followed_up_and_down(
    cluster: ControlPlane, namespace: str
) -> None:
    admin = cluster.admin
    admin.create(DEPLOYMENTS, namespace, a_workload("llama", 2, gpus=4, nodeSelector=H100))
    admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("llama-hpa", "llama"))
    options = {"namespaces": (namespace,)}
    wait_until(lambda: variant(see(cluster, **options), "llama-hpa").ready == 2, what="two ready replicas")
    found = variant(see(cluster, **options), "llama-hpa")
    assert (found.accelerator, found.gpus, found.cost, found.max_replicas) == ("H100", 4, 4.5, 6)
    assert (found.wanted, found.pending, found.engine_arguments.max_requests) == (2, 0, 64)
    assert set(found.nodes) <= {"h100-a", "h100-b"}
    assert found.conditions[0].status
    admin.scale(DEPLOYMENTS, namespace, "llama", 5)
    # Four fit on the two nodes; the fifth has no node.
    wait_until(lambda: variant(see(cluster, **options), "llama-hpa").ready == 4, what="four ready replicas")
    assert variant(see(cluster, **options), "llama-hpa").pending == 1
    admin.delete(DEPLOYMENTS, namespace, "llama")
    wait_until(
        lambda: variant(see(cluster, **options), "llama-hpa").conditions[0].reason == "TargetNotFound",
        what="the target to be gone",
    )
    assert variant(see(cluster, **options), "llama-hpa").wanted is None
    wait_until(lambda: not admin.list(PODS, namespace).items, what="the pods to be gone")


def test_pods_of_others_a_cordon_and_a_quota_are_seen(cluster: ControlPlane, namespace: str) -> None:
    admin = cluster.admin
    admin.create(
        RESOURCE_QUOTAS,
        namespace,
        {"metadata": {"name": "q"}, "spec": {"hard": {"requests.nvidia.com/gpu": "6"}}},
    )
    wait_until(
        lambda: admin.get(RESOURCE_QUOTAS, namespace, "q").get("status", {}).get("hard"), what="the quota"
    )
    admin.create(DEPLOYMENTS, namespace, a_workload("training", 1, gpus=3, nodeSelector=L4))

    def held() -> int:
        pools = {pool.accelerator: pool for pool in see(cluster).inventory.pools}
        return pools["L4"].nodes[0].foreign_gpus

    wait_until(lambda: held() == 3, what="foreign use")
    quota = wait_until(
        lambda: [
            each for each in see(cluster).inventory.quotas if each.namespace == namespace and each.used == 3
        ],
        what="the quota in use",
    )[0]
    assert (quota.hard, quota.resource) == (6, "requests.nvidia.com/gpu")
    admin.patch(NODES, "", "h100-b", {"spec": {"unschedulable": True}})
    pool = next(pool for pool in see(cluster).inventory.pools if pool.accelerator == "H100")
    assert {node.id: node.cordoned for node in pool.nodes} == {"h100-a": False, "h100-b": True}
    assert pool.failure_domain == "a"
    admin.patch(NODES, "", "h100-b", {"spec": {"unschedulable": None, "taints": None}})
    admin.delete(DEPLOYMENTS, namespace, "training")
    wait_until(lambda: held() == 0, what="the GPUs to be free")


def test_groups_stateful_sets_and_scalers_of_every_kind_are_seen(
    cluster: ControlPlane, namespace: str
) -> None:
    admin = cluster.admin
    admin.create(STATEFUL_SETS, namespace, a_workload("state", 1, nodeSelector=L4))
    group = {
        "size": 2,
        "workerTemplate": a_workload("deep", 1, gpus=8, nodeSelector=H100)["spec"]["template"],
    }
    admin.create(
        LEADER_WORKER_SETS,
        namespace,
        {"metadata": {"name": "deep"}, "spec": {"replicas": 0, "leaderWorkerTemplate": group}},
    )
    admin.create(DEPLOYMENTS, namespace, a_workload("plain", 0, nodeSelector=L4))
    target = {"kind": "LeaderWorkerSet", "name": "deep"}
    admin.create(SCALED_OBJECTS, namespace, {
        "metadata": {"name": "deep-so", "annotations": notes("deepseek")},
        "spec": {"scaleTargetRef": target, "minReplicaCount": 0, "maxReplicaCount": 3},
    })  # fmt: skip
    admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("state-hpa", "state", kind="StatefulSet"))
    admin.create(VARIANT_AUTOSCALINGS, namespace, {
        "metadata": {"name": "plain-va"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "plain"}, "modelID": "llama", "maxReplicas": 2},
    })  # fmt: skip
    reading = see(cluster, namespaces=(namespace,))
    assert {each.name: (each.target.kind, each.target.scaler, each.gpus) for each in reading.variants} == {
        "deep-so": ("LeaderWorkerSet", "keda", 16),
        "plain-va": ("Deployment", "variantautoscaling", 1),
        "state-hpa": ("StatefulSet", "hpa", 1),
    }
    assert variant(reading, "deep-so").pods_per_replica == 2
    assert variant(reading, "deep-so").wanted == 0
    scaled = admin.scale(LEADER_WORKER_SETS, namespace, "deep", 1)
    assert (scaled.before, scaled.after) == (0, 1)
    assert variant(see(cluster, namespaces=(namespace,)), "deep-so").pending == 1
    assert reading.complete


def test_an_excluded_namespace_is_not_ours(cluster: ControlPlane, namespace: str) -> None:
    cluster.admin.create(DEPLOYMENTS, namespace, a_workload("llama", 0))
    cluster.admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("excluded-hpa", "llama"))
    assert variant(see(cluster), "excluded-hpa").wanted == 0
    marks = {"metadata": {"annotations": {"wva.llmd.ai/exclude": "true"}}}
    cluster.admin.patch(NAMESPACES, "", namespace, marks)
    assert "excluded-hpa" not in {each.name for each in see(cluster).variants}


def test_a_reader_without_rights_is_told_every_rule(cluster: ControlPlane, namespace: str) -> None:
    seen = a_discovery(cluster, "viewer", namespaces=(namespace,)).see(0.0)
    assert not seen.complete
    assert not seen.inventory.complete
    told = " ".join(each.remedy for each in seen.findings)
    for resource in (
        "nodes",
        "pods",
        "deployments",
        "horizontalpodautoscalers",
        "variantautoscalings",
        "resourcequotas",
    ):
        assert f'resources: ["{resource}"], verbs: ["list"]' in told
    assert "token-of" not in str(seen)


def test_the_rules_of_one_namespace_are_enough_for_its_variants(
    cluster: ControlPlane, namespace: str
) -> None:
    cluster.admin.create(DEPLOYMENTS, namespace, a_workload("llama", 0))
    cluster.admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("llama-hpa", "llama"))
    rules = [
        {
            "apiGroups": ["", "apps", "autoscaling", "keda.sh", "llmd.ai", "leaderworkerset.x-k8s.io"],
            "resources": ["*"],
            "verbs": ["list"],
        }
    ]
    cluster.allow("planner", "reads", rules, namespace=namespace)
    discovery = a_discovery(cluster, "planner", namespaces=(namespace,))
    seen = wait_until(lambda: found if (found := discovery.see(0.0)).variants else None, what="the rule")
    assert [each.name for each in seen.variants] == ["llama-hpa"]
    assert seen.complete
    assert not seen.inventory.complete
    assert any("GPUs that they hold look free" in each.problem for each in seen.findings)


def test_a_cluster_out_of_reach_does_not_hide_the_others(cluster: ControlPlane, tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.write_text(cluster.kubeconfig().read_text().replace(cluster.url, "https://127.0.0.1:1"))
    clusters = [
        {"name": "east", "kubeconfig": str(cluster.kubeconfig())},
        {"name": "west", "kubeconfig": str(away), "timeout_s": 1, "within_s": 1},
    ]
    seen = open_discovery("kubernetes", {"clusters": clusters}, SystemClock()).discover(0.0)
    assert {pool.cluster for pool in seen.pools} == {"east"}
    assert {pool.id for pool in seen.pools} == {"east/H100/a", "east/L4/a"}
    assert not seen.complete
    assert [each.subject for each in seen.findings if "cluster" in each.subject] == ["cluster west"]


def test_the_newest_version_of_hpas_is_read_and_the_real_controller_scales(
    cluster: ControlPlane, namespace: str
) -> None:
    admin = cluster.admin
    desired = {"llama-hpa": 3.0}

    def read(_: str, __: str, labels: Any) -> float | None:
        return desired.get(labels.get("variant_name", ""))

    with hpa_v2(cluster), external_metrics(cluster, read):
        api = cluster.connect("admin")
        assert api.version_of(HORIZONTAL_POD_AUTOSCALERS) == "v2"
        api.create(DEPLOYMENTS, namespace, a_workload("llama", 1, nodeSelector=H100))
        api.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("llama-hpa", "llama"))
        found = wait_until(
            lambda: each if (each := variant(see(cluster, namespaces=(namespace,)), "llama-hpa")).ready == 3 else None,
            within_s=60, what="three replicas",
        )  # fmt: skip
        assert (found.wanted, found.target.scaler) == (3, "hpa")
    admin.delete(DEPLOYMENTS, namespace, "llama")


def test_the_command_shows_a_cluster_and_writes_an_observation(
    cluster: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    cluster.admin.create(DEPLOYMENTS, namespace, a_workload("llama", 0, nodeSelector=H100))
    cluster.admin.create(HORIZONTAL_POD_AUTOSCALERS, namespace, an_hpa("shown-hpa", "llama"))
    path = tmp_path / "seen.json"
    words = [
        "observe",
        "--kubernetes",
        "--kubeconfig",
        str(cluster.kubeconfig()),
        "--context",
        "e2e",
        "-n",
        namespace,
    ]
    shown = fleetplan(*words)
    assert shown.returncode == 0, shown.stderr
    assert "1 variant, 2 pools, 0 engines" in shown.stdout
    assert "shown-hpa" in shown.stdout
    written = fleetplan(*words, "-o", str(path))
    assert written.returncode == 0, written.stderr
    seen = Observation.model_validate_json(path.read_text())
    assert [each.name for each in seen.variants] == ["shown-hpa"]
    assert seen.complete
    page = tmp_path / "engine.prom"
    page.write_text('vllm:num_requests_running{model_name="llama-8b"} 3\n')
    both = fleetplan(*words, "--metrics", str(page))
    assert "1 variant, 2 pools, 1 engines" in both.stdout, both.stderr
    viewer = cluster.kubeconfig("viewer")
    denied = fleetplan("observe", "--kubernetes", "--kubeconfig", str(viewer))
    assert denied.returncode == 4
    assert 'resources: ["nodes"], verbs: ["list"]' in " ".join(denied.stdout.split())


def fleetplan(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("fleetplan")), *words]
    environment = os.environ | {"COLUMNS": "400"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
