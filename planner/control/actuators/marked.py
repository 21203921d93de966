"""Pods that are on their way out, found by their label in one call; and what nobody looks after any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from models.observation import VariantObservation
from planner.control.actuators.connections import Connections
from planner.control.actuators.draining import DrainRules
from planner.control.actuators.marking import DRAINING, gate_of, has_gate, kept_of, opened, restored
from planner.control.actuators.published import Key
from planner.control.actuators.routing import OUT, Router, routers_of
from planner.control.cluster import Api, ClusterFault, Trouble
from planner.control.cluster.kinds import PODS
from planner.control.cluster.reading import Object, as_time, labels_of, name_of, namespace_of

__all__ = ["GATED", "MarkedPods"]

GATED: Final = "fleetplan.dev/gated"
"""Label of pods whose readiness gate we open when they start."""
_FORGOTTEN_S: Final = 3600.0
"""Beyond the time limit of draining: what is older belongs to no controller of any shard. An HPA may hold a count so long."""


class MarkedPods:
    """What is marked and what routes, read once in a round.

    Args:
        connections: to the clusters.
        rules: whose limit says when a mark is forgotten.
        seen: variants that are ours.
        dry_run: nothing is written.
        gates: open readiness gates of new pods.
    """

    def __init__(
        self,
        connections: Connections,
        rules: DrainRules,
        seen: Mapping[Key, VariantObservation],
        *,
        dry_run: bool,
        gates: bool,
    ) -> None:
        self._clock = connections.clock
        self._rules = rules
        self._seen = seen
        self._dry_run = dry_run
        self._gates = gates
        self._found: dict[tuple[str | None, str], frozenset[str] | ClusterFault] = {}
        self._namespaced: set[str | None] = set()
        self._routers: dict[tuple[str | None, str], tuple[Router, ...]] = {}

    def routers(self, api: Api, namespace: str) -> tuple[Router, ...]:
        """What routes requests in a namespace, read once in a round.

        Raises:
            ClusterFault: it cannot be told.
        """
        place = api.name, namespace
        if place not in self._routers:
            self._routers[place] = routers_of(api, namespace)
        return self._routers[place]

    def has_any(self, api: Api, variant: VariantObservation, *, needed: bool) -> bool:
        """Whether pods of a variant are marked; one whose mark nobody can read may be anybody's of its namespace.

        Args:
            api: of its cluster.
            variant: whose.
            needed: it matters: whatever prevents to tell is raised. Otherwise that reads as no.

        Raises:
            ClusterFault: it cannot be told, and is needed.
        """
        place = api.name, variant.namespace if api.name in self._namespaced else ""
        if place not in self._found:
            place = self._read(api, variant)
        found = self._found[place]
        if isinstance(found, ClusterFault):
            if needed:
                raise found
            return False
        return not found.isdisjoint({f"{variant.namespace}/{variant.name}", f"{variant.namespace}/"})

    def _read(self, api: Api, variant: VariantObservation) -> tuple[str | None, str]:
        """Read all of a cluster, or of the namespace where rules do not allow more; says of which it was."""
        place = api.name, variant.namespace if api.name in self._namespaced else ""
        try:
            pods = api.list(PODS, place[1], labels=f"{DRAINING}=true").items
        except ClusterFault as fault:
            if fault.trouble is Trouble.DENIED and not place[1]:
                self._namespaced.add(api.name)
                return self._read(api, variant)
            self._found[place] = fault
            return place
        self._found[place] = frozenset(_whose(pod) for pod in pods)
        if not self._dry_run:
            # What is left of it is tended in the next round.
            with suppress(ClusterFault):
                self._tend(api, place[1], pods)
        return place

    def _tend(self, api: Api, namespace: str, pods: Sequence[Object]) -> None:
        now_s = self._clock.unix_s()
        now = as_time(now_s)
        ours = {f"{place}/{name}" for _, place, name in self._seen}
        for pod in pods:
            kept = kept_of(pod)
            forgotten = kept is not None and now_s - kept.mark.since_s > self._rules.limit_s + _FORGOTTEN_S
            known = kept is not None and all(
                key in kept.labels for key, value in labels_of(pod).items() if value == OUT
            )
            if forgotten and known and _whose(pod) not in ours:
                api.patch(PODS, namespace_of(pod), name_of(pod), restored(pod, {}))
        if self._gates:
            for pod in api.list(PODS, namespace, labels=f"{GATED}=true").items:
                if has_gate(pod) and gate_of(pod) is None and DRAINING not in labels_of(pod):
                    api.patch(PODS, namespace_of(pod), name_of(pod), opened(pod, now), subresource="status")


def _whose(pod: Object) -> str:
    """Namespace and name of the variant; the namespace alone where nobody can read it."""
    kept, inside = kept_of(pod), f"{namespace_of(pod)}/"
    return kept.variant if kept is not None and kept.variant.startswith(inside) else inside
