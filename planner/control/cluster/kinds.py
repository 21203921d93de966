"""Kinds of Kubernetes objects that the control plane reads and writes, and where an API serves them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

__all__ = [
    "CONFIG_MAPS",
    "CUSTOM_RESOURCE_DEFINITIONS",
    "DEPLOYMENTS",
    "EARLIER_INFERENCE_OBJECTIVES",
    "EARLIER_INFERENCE_POOLS",
    "EVENTS",
    "GROUP_INDEX",
    "GROUP_NAME",
    "HORIZONTAL_POD_AUTOSCALERS",
    "INFERENCE_OBJECTIVES",
    "INFERENCE_POOLS",
    "LEADER_WORKER_SETS",
    "LEASES",
    "NAMESPACES",
    "NODES",
    "PODS",
    "REPLICA_SETS",
    "RESOURCE_QUOTAS",
    "SCALED_OBJECTS",
    "SERVICES",
    "STATEFUL_SETS",
    "VARIANT_AUTOSCALINGS",
    "WORKER_INDEX",
    "WORKLOADS",
    "Kind",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object.

    Attributes:
        name: ``Deployment``.
        plural: ``deployments``, as paths and RBAC rules name it.
        group: API group; empty: the core.
        versions: that we understand, the best first. Where there are several, the API is asked which it serves.
        namespaced: False: of the whole cluster.
    """

    name: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    namespaced: bool = True

    @property
    def resource(self) -> str:
        """As people write it: ``deployments.apps``, ``pods``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str | None = None) -> str:
        """The ``apiVersion`` of an object; None: the best that we understand."""
        one = version or self.versions[0]
        return f"{self.group}/{one}" if self.group else one

    def path(self, version: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path of the API for one object, or for all of a namespace or the cluster."""
        root = "/api" if not self.group else f"/apis/{self.group}"
        parts = [root, version]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)


NODES: Final = Kind("Node", "nodes", namespaced=False)
PODS: Final = Kind("Pod", "pods")
NAMESPACES: Final = Kind("Namespace", "namespaces", namespaced=False)
RESOURCE_QUOTAS: Final = Kind("ResourceQuota", "resourcequotas")
CONFIG_MAPS: Final = Kind("ConfigMap", "configmaps")
DEPLOYMENTS: Final = Kind("Deployment", "deployments", "apps")
STATEFUL_SETS: Final = Kind("StatefulSet", "statefulsets", "apps")
REPLICA_SETS: Final = Kind("ReplicaSet", "replicasets", "apps")
LEADER_WORKER_SETS: Final = Kind("LeaderWorkerSet", "leaderworkersets", "leaderworkerset.x-k8s.io")
HORIZONTAL_POD_AUTOSCALERS: Final = Kind(
    "HorizontalPodAutoscaler", "horizontalpodautoscalers", "autoscaling", ("v2", "v2beta2", "v1")
)
SCALED_OBJECTS: Final = Kind("ScaledObject", "scaledobjects", "keda.sh", ("v1alpha1",))
VARIANT_AUTOSCALINGS: Final = Kind("VariantAutoscaling", "variantautoscalings", "llmd.ai", ("v1alpha1",))
CUSTOM_RESOURCE_DEFINITIONS: Final = Kind(
    "CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", namespaced=False
)
INFERENCE_OBJECTIVES: Final = Kind(
    "InferenceObjective", "inferenceobjectives", "llm-d.ai", ("v1", "v1alpha2")
)
EARLIER_INFERENCE_OBJECTIVES: Final = Kind(
    "InferenceObjective", "inferenceobjectives", "inference.networking.x-k8s.io", ("v1alpha2",)
)
"""Before the kind moved to llm-d, with its router 0.9."""
SERVICES: Final = Kind("Service", "services")
INFERENCE_POOLS: Final = Kind("InferencePool", "inferencepools", "inference.networking.k8s.io")
EARLIER_INFERENCE_POOLS: Final = Kind(
    "InferencePool", "inferencepools", "inference.networking.x-k8s.io", ("v1alpha2",)
)
"""Before the kind became v1; its selector holds labels without ``matchLabels``."""
EVENTS: Final = Kind("Event", "events")
LEASES: Final = Kind("Lease", "leases", "coordination.k8s.io")
GROUP_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
"""Label of all pods of a LeaderWorkerSet: its name; the selector in it finds leaders alone."""
GROUP_INDEX: Final = "leaderworkerset.sigs.k8s.io/group-index"
"""Label of such a pod: which group it is in."""
WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"
"""Label of such a pod: its place in the group; the leader's is 0."""
WORKLOADS: Final = {kind.name: kind for kind in (DEPLOYMENTS, STATEFUL_SETS, LEADER_WORKER_SETS)}
"""Kinds whose replica count is scaled, by name."""
