"""Everything that discovery reads of a cluster, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from models.observation import Finding
from planner.control.cluster import Api, ClusterFault, Kind, Trouble
from planner.control.cluster.faults import PASSING
from planner.control.cluster.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    LEADER_WORKER_SETS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
    RESOURCE_QUOTAS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    VARIANT_AUTOSCALINGS,
)
from planner.control.cluster.reading import Object
from planner.control.cluster.resize_records import MARK

__all__ = ["CAPACITY_KINDS", "KINDS", "VARIANT_KINDS", "Snapshot", "snapshot"]

VARIANT_KINDS: Final = (
    SCALED_OBJECTS, HORIZONTAL_POD_AUTOSCALERS, VARIANT_AUTOSCALINGS, DEPLOYMENTS, STATEFUL_SETS,
    LEADER_WORKER_SETS, PODS,
)  # fmt: skip
"""Without one of these it is not known what is scaled, and how much of it there is."""
CAPACITY_KINDS: Final = (NODES, PODS)
"""Without one of these it is not known what is free."""
KINDS: Final = tuple(
    dict.fromkeys((*CAPACITY_KINDS, *VARIANT_KINDS, REPLICA_SETS, NAMESPACES, RESOURCE_QUOTAS, LEASES))
)
"""All that is read, each once."""
_LOSSES: Final[Mapping[Kind, str]] = {
    REPLICA_SETS: "pods go to the Deployment that their ReplicaSet is named after",
    NAMESPACES: "namespaces that are excluded or paused are not known",
    RESOURCE_QUOTAS: "quotas are not known",
    LEASES: "resizes of elastic deployments are not known, and variants are judged while they run",
}
_RESIZES: Final = ",".join(f"{name}={value}" for name, value in MARK.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Objects of a cluster at one moment.

    Attributes:
        cluster: its name; None: the only one.
        objects: by kind; kinds that are not installed are empty.
        lacking: kinds that could not be read, or not in full.
        findings: why.
    """

    cluster: str | None = None
    objects: Mapping[Kind, tuple[Object, ...]] = field(default_factory=dict)
    lacking: frozenset[Kind] = frozenset()
    findings: tuple[Finding, ...] = ()

    def of(self, kind: Kind) -> tuple[Object, ...]:
        """Objects of a kind."""
        return self.objects.get(kind, ())

    def knows(self, kinds: Sequence[Kind]) -> bool:
        """Whether all of these kinds were read in full."""
        return not self.lacking.intersection(kinds)


def snapshot(api: Api, namespaces: Sequence[str] = (), *, node_selector: str = "") -> Snapshot:
    """Read a cluster. What cannot be read is lacking, with a finding; it never raises for it.

    Args:
        api: of the cluster.
        namespaces: whose variants are read; empty: all. Nodes, and pods where that is allowed, are always those of the
            whole cluster, since pods elsewhere hold GPUs too.
        node_selector: label selector of the nodes that count; empty: all.
    """
    reader = _Reader(api, tuple(namespaces), node_selector)
    for kind in KINDS:
        reader.read(kind)
    return Snapshot(
        cluster=api.name,
        objects=reader.objects,
        lacking=frozenset(reader.lacking),
        findings=tuple(reader.findings),
    )


class _Reader:
    def __init__(self, api: Api, namespaces: tuple[str, ...], node_selector: str) -> None:
        self._api = api
        self._node_selector = node_selector
        self._namespaces = namespaces
        self._where = f"cluster {api.name}" if api.name else "the cluster"
        self._away = False
        self.objects: dict[Kind, tuple[Object, ...]] = {}
        self.lacking: set[Kind] = set()
        self.findings: list[Finding] = []

    def read(self, kind: Kind) -> None:
        if self._away:
            self.lacking.add(kind)
            return
        try:
            self.objects[kind] = self._listed(kind)
        except ClusterFault as fault:
            self.lacking.add(kind)
            # A server that is away would be waited for once for every kind.
            self._away = fault.trouble in {*PASSING, Trouble.UNAUTHENTICATED, Trouble.CREDENTIALS}
            self._tell(kind, fault)

    def _listed(self, kind: Kind) -> tuple[Object, ...]:
        if not kind.namespaced or not self._namespaces:
            return self._all(kind, "")
        if kind is PODS:
            try:
                return self._all(kind, "")
            except ClusterFault as fault:
                if fault.trouble is not Trouble.DENIED:
                    raise
                problem = "pods of other namespaces cannot be read, so GPUs that they hold look free"
                self.findings.append(Finding(subject=self._where, problem=problem, remedy=fault.remedy))
        return tuple(each for name in self._namespaces for each in self._all(kind, name))

    def _all(self, kind: Kind, namespace: str) -> tuple[Object, ...]:
        if kind is REPLICA_SETS:
            return self._api.list(kind, namespace, metadata=True).items
        labels = {NODES: self._node_selector, LEASES: _RESIZES}.get(kind, "")
        found = self._api.list_if_served(kind, namespace, labels=labels)
        return () if found is None else found.items

    def _tell(self, kind: Kind, fault: ClusterFault) -> None:
        subject = self._where if self._away else f"{kind.resource} of {self._where}"
        loss = _LOSSES.get(kind)
        problem = fault.message if loss is None or self._away else f"{fault.message}; {loss}"
        self.findings.append(Finding(subject=subject, problem=problem[:1000], remedy=fault.remedy))
