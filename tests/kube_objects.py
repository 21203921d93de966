"""Builders of Kubernetes objects, as an API has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.catalog import load_catalog
from planner.control.cluster.kinds import Kind
from planner.control.discovery.kubernetes import DiscoveryOptions, read_snapshot
from planner.control.discovery.snapshot import KINDS, Snapshot
from planner.control.protocols import ClusterReading

CATALOG = load_catalog()

Thing = dict[str, Any]

_KINDS = {kind.name: kind for kind in KINDS}

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}


def metadata(name: str, namespace: str = "prod", **more: Any) -> Thing:
    return {"name": name, "namespace": namespace, **more}


def a_node(name: str = "n1", gpus: int = 8, *, labels: dict[str, str] | None = None, **spec: Any) -> Thing:
    """A node that is ready, with H100s unless labels say otherwise; ``spec`` are fields of its spec."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": H100 if labels is None else labels},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "96", "nvidia.com/gpu": str(gpus)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_container(gpus: int = 1, *, resource: str = "nvidia.com/gpu", **more: Any) -> Thing:
    limits = {resource: str(gpus)} if gpus else {}
    fields: Thing = {"name": "engine", "image": "vllm/vllm-openai:v0.10", "resources": {"limits": limits}}
    return fields | more


def a_template(gpus: int = 1, *, labels: dict[str, str] | None = None, **spec: Any) -> Thing:
    return {"metadata": {"labels": labels or {}}, "spec": {"containers": [a_container(gpus)], **spec}}


def a_deployment(
    name: str = "llama",
    replicas: int | None = 2,
    *,
    kind: str = "Deployment",
    template: Thing | None = None,
    **more: Any,
) -> Thing:
    spec: Thing = {"template": a_template() if template is None else template}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"kind": kind, "apiVersion": "apps/v1", "metadata": metadata(name, **more), "spec": spec}


def a_group(
    name: str = "deep", replicas: int = 1, *, size: int = 2, gpus: int = 8, leader: Thing | None = None
) -> Thing:
    group: Thing = {"size": size, "workerTemplate": a_template(gpus)}
    if leader is not None:
        group["leaderTemplate"] = leader
    return {
        "kind": "LeaderWorkerSet",
        "metadata": metadata(name),
        "spec": {"replicas": replicas, "leaderWorkerTemplate": group},
    }


def a_pod(
    name: str,
    owner: tuple[str, str] | None = None,
    *,
    node: str = "n1",
    gpus: int = 1,
    ready: bool = True,
    **more: Any,
) -> Thing:
    """A pod that runs; ``more``: ``namespace``, ``labels``, ``phase``, ``spec``, ``ending``."""
    owners = [] if owner is None else [{"kind": owner[0], "name": owner[1], "controller": True}]
    meta = metadata(
        name, more.get("namespace", "prod"), labels=more.get("labels", {}), ownerReferences=owners
    )
    if more.get("ending"):
        meta["deletionTimestamp"] = "2026-11-30T10:00:00Z"
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": node, "containers": [a_container(gpus)], **more.get("spec", {})},
        "status": {
            "phase": more.get("phase", "Running"),
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_replica_set(name: str = "llama-5d", of: str = "llama") -> Thing:
    owners = [{"kind": "Deployment", "name": of, "controller": True}]
    return {"kind": "ReplicaSet", "metadata": metadata(name, ownerReferences=owners)}


def notes(model: str = "llama-8b", cost: str | None = None, **more: str) -> dict[str, str]:
    found = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": model} | more
    return found if cost is None else found | {"llm-d.ai/variant-cost": cost}


def an_hpa(
    name: str = "llama-hpa",
    target: str = "llama",
    *,
    kind: str = "Deployment",
    annotations: dict[str, str] | None = None,
    **more: Any,
) -> Thing:
    """An annotated HPA; ``more``: ``least``, ``most``, ``labels``, ``owners``, ``namespace``."""
    meta = metadata(
        name,
        more.get("namespace", "prod"),
        annotations=notes() if annotations is None else annotations,
        labels=more.get("labels", {}),
        ownerReferences=more.get("owners", []),
    )
    spec: Thing = {"scaleTargetRef": {"kind": kind, "name": target}, "maxReplicas": more.get("most", 10)}
    if more.get("least") is not None:
        spec["minReplicas"] = more["least"]
    return {"kind": "HorizontalPodAutoscaler", "metadata": meta, "spec": spec}


def a_scaled_object(name: str = "llama-so", target: str = "llama", **more: Any) -> Thing:
    """An annotated ScaledObject; ``more``: ``annotations`` and fields of its spec."""
    meta = metadata(name, annotations=more.pop("annotations", notes()))
    return {"kind": "ScaledObject", "metadata": meta, "spec": {"scaleTargetRef": {"name": target}, **more}}


def a_variant_autoscaling(name: str = "llama-va", target: str = "llama", **spec: Any) -> Thing:
    fields = {"scaleTargetRef": {"kind": "Deployment", "name": target}, "modelID": "llama-8b"} | spec
    return {"kind": "VariantAutoscaling", "metadata": metadata(name), "spec": fields}


def a_quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Thing:
    status = {"hard": hard} if used is None else {"hard": hard, "used": used}
    return {
        "kind": "ResourceQuota",
        "metadata": metadata("gpus"),
        "spec": {"hard": hard, **spec},
        "status": status,
    }


def a_namespace(name: str = "prod", **annotations: str) -> Thing:
    return {"kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


def a_snapshot(*things: Any, lacking: Sequence[Kind] = (), cluster: str | None = None) -> Snapshot:
    objects: dict[Kind, tuple[Any, ...]] = {}
    for each in things:
        kind = _KINDS[each["kind"]]
        objects[kind] = (*objects.get(kind, ()), each)
    return Snapshot(cluster=cluster, objects=objects, lacking=frozenset(lacking))


def reading(
    *things: Any, lacking: Sequence[Kind] = (), cluster: str | None = None, **options: Any
) -> ClusterReading:
    """What discovery makes of these objects; ``options`` are those of discovery."""
    seen = a_snapshot(*things, lacking=lacking, cluster=cluster)
    return read_snapshot(seen, DiscoveryOptions(**options), CATALOG)
