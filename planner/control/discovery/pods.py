"""Pods: where they are, what they hold, whether they serve, and which workload they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from planner.control.cluster.kinds import GROUP_INDEX, GROUP_NAME, WORKER_INDEX
from planner.control.cluster.reading import (
    Object,
    at,
    controller_of,
    is_ending,
    is_finished,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    text_at,
)
from planner.control.discovery.scheduling import requests_of

__all__ = ["DRAINING", "Owner", "PodSeen", "pods_of"]

DRAINING: Final = "fleetplan.dev/draining"
"""Label of every pod that is on its way out of routing."""

Owner = tuple[str, str, str]
"""Kind, namespace and name of a workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    """A pod that was not finished.

    Attributes:
        namespace: of the pod.
        name: of the pod.
        node: it is on; empty: none yet.
        requests: extended resources that it holds.
        ready: it serves, and is not ending; one that we took out of routing serves until it ends.
        owner: its workload; None: none that is scaled.
        group: index of its group in a LeaderWorkerSet; empty: it is in none.
        worker: index in that group; the leader is ``0``.
    """

    namespace: str
    name: str
    node: str
    requests: Mapping[str, int]
    ready: bool
    owner: Owner | None
    group: str = ""
    worker: str = "0"


def pods_of(objects: Iterable[Object], replica_sets: Iterable[Object]) -> tuple[PodSeen, ...]:
    """Pods that hold or will hold something; those that are finished hold nothing.

    Args:
        objects: pods as the API has them.
        replica_sets: whose owners lead to Deployments; metadata is enough.
    """
    deployments = {
        (namespace_of(each), name_of(each)): owner[1]
        for each in replica_sets
        if (owner := controller_of(each)) is not None and owner[0] == "Deployment"
    }
    return tuple(_seen(each, deployments) for each in objects if not is_finished(each))


def _seen(thing: Object, deployments: Mapping[tuple[str, str], str]) -> PodSeen:
    labels = labels_of(thing)
    return PodSeen(
        namespace=namespace_of(thing),
        name=name_of(thing),
        node=text_at(thing, "spec", "nodeName", longest=253),
        requests=requests_of(at(thing, "spec")),
        ready=_serves(thing, labels) and not is_ending(thing),
        owner=_owner(thing, labels, deployments),
        group=labels.get(GROUP_INDEX, ""),
        worker=labels.get(WORKER_INDEX, "0"),
    )


def _serves(thing: Object, labels: Mapping[str, str]) -> bool:
    """Whether it works on requests.

    Where a readiness gate takes a pod out of routing, the pod is not ready while it finishes what it has. It counts all the
    same: a fleet that looked smaller for it would be given it back, and the scale-in would begin anew.
    """
    return is_ready(thing) or (labels.get(DRAINING) == "true" and is_ready(thing, "ContainersReady"))


def _owner(
    thing: Object, labels: Mapping[str, str], deployments: Mapping[tuple[str, str], str]
) -> Owner | None:
    controller = controller_of(thing)
    if controller is None:
        return None
    kind, name = controller
    namespace = namespace_of(thing)
    # Leaders are of a StatefulSet of the group's name, workers of one that their leader owns: the label tells of both.
    if kind == "StatefulSet" and labels.get(GROUP_NAME):
        return "LeaderWorkerSet", namespace, labels[GROUP_NAME]
    if kind == "StatefulSet":
        return kind, namespace, name
    if kind == "ReplicaSet":
        known = deployments.get((namespace, name))
        # ReplicaSets may not be readable, and are named after their Deployment.
        guessed = name.removesuffix(f"-{labels.get('pod-template-hash', '')}")
        deployment = known or (guessed if guessed != name else None)
        return None if deployment is None else ("Deployment", namespace, deployment)
    return None
