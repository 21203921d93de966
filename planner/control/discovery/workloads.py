"""Workloads that are scaled: replica counts, pod templates, GPUs of a replica, engine and its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from models.engine import EngineArguments
from models.variant import Role
from planner.control.cluster.reading import (
    Object,
    annotations_of,
    at,
    count_at,
    items_of,
    labels_of,
    mapping_of,
    name_of,
    namespace_of,
    text_at,
    texts_of,
)
from planner.control.discovery.engines import arguments_of, engine_of
from planner.control.discovery.naming import devices_of
from planner.control.discovery.scheduling import requests_of

__all__ = ["Workload", "workload_of"]

_ROLE: Final = "llm-d.ai/role"
_ROLES: Final = {"prefill": Role.PREFILL, "decode": Role.DECODE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A Deployment, StatefulSet or LeaderWorkerSet.

    Attributes:
        kind: of the object.
        namespace: of the object.
        name: of the object.
        api_version: of the object; empty: it does not say.
        labels: of the object and, before them, of its pods.
        annotations: of the object.
        wanted: replicas that are asked for; a missing count is 1, as the API has it.
        ready: replicas that its controller counts as ready.
        pods: of one replica.
        leader: spec of the pod that serves.
        worker: spec of the other pods of a group; the leader's where there is none.
        written_by: field manager that wrote its replica count last, and when; empty: the API does not tell.
    """

    kind: str
    namespace: str
    name: str
    api_version: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    wanted: int
    ready: int
    pods: int
    leader: Mapping[str, Any]
    worker: Mapping[str, Any]
    written_by: tuple[str, str] = ("", "")

    def devices(self, further: Mapping[str, str]) -> dict[str, int]:
        """Accelerators of one replica, by resource: of its leader and all its workers."""
        total = dict(devices_of(requests_of(self.leader), further))
        for name, each in devices_of(requests_of(self.worker), further).items() if self.pods > 1 else ():
            total[name] = total.get(name, 0) + each * (self.pods - 1)
        return total

    @property
    def role(self) -> Role:
        """Which phase its pods serve: what their label says, else both."""
        return _ROLES.get(self.labels.get(_ROLE, ""), Role.BOTH)

    @property
    def engine(self) -> str:
        """``sglang`` where image or command name it, else ``vllm``."""
        return engine_of(self.leader)

    @property
    def arguments(self) -> tuple[EngineArguments, tuple[str, ...]]:
        """What its engine is started with, and what of it could not be read."""
        return arguments_of(self.leader)

    @property
    def claims(self) -> bool:
        """Whether its pods get devices by claims (DRA), which hold no count."""
        return any(True for _ in items_of(at(self.leader, "resourceClaims")))


def workload_of(thing: Object, kind: str) -> Workload:
    """What an object says; whatever it does not say properly is taken as the API's default."""
    spec = mapping_of(thing.get("spec"))
    pods, leader = 1, mapping_of(spec.get("template"))
    worker = leader
    if kind == "LeaderWorkerSet":
        group = mapping_of(spec.get("leaderWorkerTemplate"))
        pods = min(max(1, count_at(group, "size") or 1), 4096)
        worker = mapping_of(group.get("workerTemplate"))
        leader = mapping_of(group.get("leaderTemplate")) or worker
    wanted = count_at(spec, "replicas")
    return Workload(
        kind=kind,
        namespace=namespace_of(thing),
        name=name_of(thing),
        api_version=text_at(thing, "apiVersion"),
        labels=labels_of(thing) | texts_of(at(leader, "metadata", "labels")),
        annotations=annotations_of(thing),
        wanted=1 if wanted is None else wanted,
        ready=count_at(thing, "status", "readyReplicas") or 0,
        pods=pods,
        leader=mapping_of(leader.get("spec")),
        worker=mapping_of(worker.get("spec")),
        written_by=_last_writer(thing),
    )


def _last_writer(thing: Object) -> tuple[str, str]:
    """The manager of ``spec.replicas`` whose entry is the newest; times are ISO 8601 in UTC, so text sorts them.

    An API before 1.22 does not tell who wrote through the scale subresource.
    """
    managers = [
        (text_at(each, "time", longest=40), text_at(each, "manager", longest=128))
        for each in items_of(at(thing, "metadata", "managedFields"))
        if at(each, "fieldsV1", "f:spec", "f:replicas") is not None
    ]
    when, who = max(managers, default=("", ""))
    return who, when
