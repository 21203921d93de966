"""Accelerators under a deployment: pods of a workload of Kubernetes, or whatever people see to themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from planner.control.cluster import Api, ClusterFault
from planner.control.cluster.kinds import GROUP_INDEX, LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Kind
from planner.control.cluster.reading import Object, at, count_at, labels_of, text_at

__all__ = ["ByHand", "PodGround"]

_INDEX: Final = {
    LEADER_WORKER_SETS.name: GROUP_INDEX,
    STATEFUL_SETS.name: "apps.kubernetes.io/pod-index",
}
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class ByHand:
    """People have seen to accelerators, e.g. in a Ray cluster that has them: nothing is made and nothing is given back."""

    def reserve(self, _ranks: int) -> str | None:
        """See :class:`planner.control.resizing.world.Ground`."""
        return None

    def there(self) -> int | None:
        """As many as anybody asks for."""
        return 1 << 30

    def release(self, _ranks: int) -> str | None:
        """See :class:`planner.control.resizing.world.Ground`."""
        return None


@dataclass(frozen=True, slots=True)
class PodGround:
    """Pods of a StatefulSet, or groups of a LeaderWorkerSet: both end their highest numbers first, as ranks do.

    The replica count goes up before a grow and down after a shrink; ``size`` of a LeaderWorkerSet is not touched, since
    that makes all its pods anew. Pods count when they are on nodes: joiners need not be ready before the resize.

    Args:
        api: of the cluster.
        kind: ``STATEFUL_SETS`` or ``LEADER_WORKER_SETS``.
        namespace: of the workload.
        name: of the workload.
        ranks_per_replica: data-parallel ranks of one pod, or of one group.
        pods_per_replica: pods of one group.
    """

    api: Api
    kind: Kind
    namespace: str
    name: str
    ranks_per_replica: int = 1
    pods_per_replica: int = 1

    def reserve(self, ranks: int) -> str | None:
        """See :class:`planner.control.resizing.world.Ground`; a count is never lowered here."""
        return self._scaled(ranks, lower=False)

    def release(self, ranks: int) -> str | None:
        """See :class:`planner.control.resizing.world.Ground`; a count is never raised here."""
        return self._scaled(ranks, lower=True)

    def there(self) -> int | None:
        """Ranks, from 0 on without a hole, whose pods are on nodes."""
        try:
            listing = self.api.list(PODS, self.namespace)
        except ClusterFault:
            return None
        placed: dict[int, int] = {}
        for pod in listing.items:
            index = self._index(pod)
            if index is not None and text_at(pod, "spec", "nodeName") and not _ends(pod):
                placed[index] = placed.get(index, 0) + 1
        whole = 0
        while placed.get(whole, 0) >= self.pods_per_replica:
            whole += 1
        return whole * self.ranks_per_replica

    def _index(self, pod: Object) -> int | None:
        """The number of the replica that a pod belongs to; None: it is not one of ours."""
        if not any(self._owns(owner) for owner in _owners(pod)):
            return None
        label = labels_of(pod).get(_INDEX[self.kind.name], "")
        if not label and self.kind is STATEFUL_SETS:
            label = text_at(pod, "metadata", "name").rpartition("-")[2]
        return int(label) if label.isdecimal() and len(label) <= _DIGITS else None

    def _owns(self, owner: Object) -> bool:
        """A LeaderWorkerSet owns its pods through StatefulSets that bear its name and a group's number."""
        name, kind = text_at(owner, "name"), text_at(owner, "kind")
        if self.kind is STATEFUL_SETS:
            return kind == STATEFUL_SETS.name and name == self.name
        base, _, number = name.rpartition("-")
        return name == self.name or (base == self.name and number.isdecimal())

    def _scaled(self, ranks: int, *, lower: bool) -> str | None:
        wanted = math.ceil(ranks / self.ranks_per_replica)
        try:
            found = self.api.get(self.kind, self.namespace, self.name, subresource="scale")
            now = count_at(found, "spec", "replicas") or 0
            if (now <= wanted) if lower else (now >= wanted):
                return None
            self.api.scale(self.kind, self.namespace, self.name, wanted, seen=now)
        except ClusterFault as fault:
            return str(fault)
        return None


def _owners(pod: Object) -> list[Object]:
    owners = at(pod, "metadata", "ownerReferences")
    return [owner for owner in owners if isinstance(owner, dict)] if isinstance(owners, list) else []


def _ends(pod: Object) -> bool:
    return bool(text_at(pod, "metadata", "deletionTimestamp"))
