"""Whose an engine is: instance -> pod -> variant, by its own label and by the pods that were given."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from models.observation import VariantObservation
from planner.control.collectors.sightings import Place, Row, Sightings

__all__ = ["Attribution"]

_GROUPED: Final = "LeaderWorkerSet"
_WORKER: Final = re.compile(r"-\d+-[1-9]\d*$")
"""Pods of a group are ``<set>-<group>`` (its leader) and ``<set>-<group>-<worker>``."""


class Attribution:
    """Answers whose an engine, a worker's power and the traffic of a model are.

    Args:
        variants: what is served; empty: everything that was seen is kept as it says.
    """

    def __init__(self, variants: Sequence[VariantObservation]) -> None:
        self._variants = variants
        clusters = {each.cluster or "" for each in variants}
        self._home = next(iter(clusters)) if len(clusters) == 1 else ""
        self._named: dict[tuple[str, str, str], VariantObservation] = {}
        self._by_pod: dict[tuple[str, str, str], VariantObservation] = {}
        self._by_model: dict[tuple[str, str, str], list[VariantObservation]] = {}
        self._pods_anywhere: dict[tuple[str, str], list[VariantObservation]] = {}
        for each in variants:
            cluster = self.cluster_of(each.cluster)
            self._named[cluster, each.namespace, each.name] = each
            # An empty namespace stands for any: series that do not say where they are from.
            self._by_model.setdefault((cluster, each.namespace, each.model), []).append(each)
            self._by_model.setdefault((cluster, "", each.model), []).append(each)
            for pod in each.pods:
                self._by_pod[cluster, each.namespace, pod] = each
                self._pods_anywhere.setdefault((cluster, pod), []).append(each)
        self._groups = tuple(
            (self.cluster_of(each.cluster), each.namespace, f"{each.target.name}-")
            for each in variants
            if each.target.kind == _GROUPED
        )

    def cluster_of(self, cluster: str | None) -> str:
        """A cluster as it is compared: where there is only one, series need not name it, and it is empty."""
        return "" if cluster == self._home else cluster or ""

    def name_of(self, cluster: str) -> str | None:
        """The name of a cluster that :meth:`cluster_of` gave; None: the only one, without a name."""
        return cluster or self._home or None

    def variant_of(self, place: Place, row: Row) -> VariantObservation | None:
        """The variant of an engine: its label, else its pod, else the only variant of its model there."""
        cluster = self.cluster_of(place.cluster)
        named = self._named.get((cluster, place.namespace, row.variant)) if row.variant else None
        if named is not None:
            return named
        if place.pod and place.namespace:
            return self._by_pod.get((cluster, place.namespace, place.pod))
        found = (
            self._pods_anywhere.get((cluster, place.pod), [])
            if place.pod
            else self._by_model.get((cluster, place.namespace, row.model), [])
        )
        return found[0] if len(found) == 1 else None

    def leader_of(self, cluster: str, namespace: str, pod: str) -> str | None:
        """The leader of a worker of a group; None: the pod is none."""
        match = _WORKER.search(pod) if self._groups else None
        at_home = self.cluster_of(cluster)
        if match is None or (at_home, namespace, pod) in self._by_pod:
            return None
        ours = any(
            (at_home, namespace) == (at, where) and pod.startswith(prefix)
            for at, where, prefix in self._groups
        )
        return pod[: pod.rindex("-")] if ours else None

    def drop_workers(self, sightings: Sightings) -> None:
        """Leave out engines of workers, whose leader speaks for the group, and add their power to the leader's."""
        for place in [
            place
            for place, row in sightings.rows.items()
            if row.worker not in {"", "0"} or self.leader_of(place.cluster, place.namespace, place.pod)
        ]:
            del sightings.rows[place]
        for (cluster, namespace, pod), watts in list(sightings.power_w.items()):
            leader = self.leader_of(cluster, namespace, pod)
            if leader is not None:
                whole = (cluster, namespace, leader)
                sightings.power_w[whole] = sightings.power_w.get(whole, 0.0) + watts
                del sightings.power_w[cluster, namespace, pod]

    def namespaces_of(self, cluster: str, model: str) -> frozenset[str]:
        """Namespaces in which a model is served."""
        return frozenset(each.namespace for each in self._by_model.get((cluster, "", model), ()))

    def unseen(self, rows: Iterable[Place]) -> tuple[tuple[VariantObservation, str], ...]:
        """Ready pods of variants of which no engine was seen."""
        seen, anywhere = set(), set()
        for place in rows:
            cluster = self.cluster_of(place.cluster)
            seen.add((cluster, place.namespace, place.pod))
            if not place.namespace:
                anywhere.add((cluster, place.pod))
        return tuple(
            (each, pod)
            for (cluster, namespace, pod), each in self._by_pod.items()
            if (cluster, namespace, pod) not in seen and (cluster, pod) not in anywhere
        )
