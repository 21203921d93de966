"""Accelerators that pods could use now, by type: what nodes have and no pod holds, whoever's it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from models.observation import Finding
from planner.catalog import load_catalog
from planner.control.carrying.clusters import Apis
from planner.control.cluster import Api, of_each
from planner.control.cluster.kinds import NODES, PODS
from planner.control.discovery.naming import Names
from planner.control.discovery.nodes import NodeSeen, nodes_of
from planner.control.discovery.pods import PodSeen, pods_of

__all__ = ["Room", "room_of"]


@dataclass(frozen=True, slots=True)
class Room:
    """What is free.

    Attributes:
        gpus: free accelerators by cluster (empty: the only one) and type; a type that no node has is missing.
        findings: why nobody knows of a cluster.
    """

    gpus: Mapping[tuple[str, str], int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def free(self, cluster: str, accelerator: str) -> int | None:
        """Accelerators of a type that are free; None: nobody knows, or nodes of that type are still to come."""
        return self.gpus.get((cluster, accelerator))


def room_of(apis: Apis) -> Room:
    """Read nodes and pods of all clusters. What cannot be read is a finding, and forbids nothing."""
    names = _names()

    def ask(api: Api) -> Mapping[str, int]:
        nodes, _ = nodes_of(api.list(NODES).items, names)
        return _free(nodes, pods_of(api.list(PODS).items, ()))

    found, faults = of_each(apis.values(), ask)
    gpus = {(cluster or "", kind): free for cluster, kinds in found.items() for kind, free in kinds.items()}
    findings = tuple(
        Finding(
            subject=f"cluster {cluster or ''}".strip(),
            problem=f"free accelerators are not known: {fault.message}"[:1000],
            remedy=fault.remedy,
        )
        for cluster, fault in faults.items()
    )
    return Room(gpus, findings)


@cache
def _names() -> Names:
    """Looked at before every wave, and read once."""
    return Names(load_catalog(), (), {})


def _free(nodes: tuple[NodeSeen, ...], pods: tuple[PodSeen, ...]) -> Mapping[str, int]:
    """By type: devices of nodes that take pods, less what pods on them hold."""
    held: dict[tuple[str, str], int] = defaultdict(int)
    for pod in pods:
        for resource, amount in pod.requests.items():
            held[pod.node, resource] += amount
    free: dict[str, int] = defaultdict(int)
    for node in nodes:
        for resource, (accelerator, amount) in node.devices.items():
            usable = node.ready and not node.cordoned
            free[accelerator] += max(0, amount - held[node.name, resource]) if usable else 0
    return free
