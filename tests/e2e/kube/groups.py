"""Plays the controller of LeaderWorkerSets: groups of pods that real StatefulSets make, and that come and go whole.

As the one of sig-apps does, it makes one StatefulSet of leaders, and of each leader's group one that its pod owns; so the
highest groups end first, and the garbage collector ends the workers of a leader that has gone. Two things differ: numbers
of workers in names begin with 0, since older StatefulSets know no other start, and a changed ``size`` makes nothing anew.
"""

from __future__ import annotations

from typing import Any, Final

from planner.control.cluster import Trouble
from planner.control.cluster.kinds import LEADER_WORKER_SETS, PODS, STATEFUL_SETS, Kind
from planner.control.cluster.reading import Object, is_ending, is_ready, labels_of, name_of, namespace_of
from tests.e2e.kube.rounds import Rounds

__all__ = ["GROUP", "WORKER", "GroupController", "a_group_set"]

_ROOT: Final = "leaderworkerset.sigs.k8s.io"
_SET: Final = f"{_ROOT}/name"
GROUP: Final = f"{_ROOT}/group-index"
WORKER: Final = f"{_ROOT}/worker-index"


def a_group_set(name: str, *, replicas: int, size: int, gpus: int) -> dict[str, Any]:
    """A LeaderWorkerSet whose pods take so many GPUs each."""
    container = {"name": "engine", "image": "vllm/vllm-openai:v0.33.0", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}  # fmt: skip
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}}
    return {"metadata": {"name": name}, "spec": spec}


class GroupController(Rounds):
    """Tends all LeaderWorkerSets, until the block ends."""

    # Gone, or somebody wrote it since.
    borne = frozenset({Trouble.NOT_FOUND, Trouble.CONFLICT, Trouble.EXISTS, Trouble.DENIED})

    def _round(self) -> None:
        for each in self._api.list(LEADER_WORKER_SETS).items:
            self._tend(each)

    def _tend(self, groups: Object) -> None:
        namespace, name = namespace_of(groups), name_of(groups)
        template = groups["spec"]["leaderWorkerTemplate"]
        mine = _owned_by(LEADER_WORKER_SETS, groups)
        self._sets(
            mine, (namespace, name), groups["spec"]["replicas"], {_SET: name, "role": "leader"}, template
        )
        pods = self._api.list(PODS, namespace, labels=f"{_SET}={name}").items
        leaders = [pod for pod in pods if labels_of(pod)["role"] == "leader" and not is_ending(pod)]
        for leader in leaders:
            number = name_of(leader).rpartition("-")[2]
            self._label(leader, {GROUP: number, WORKER: "0"})
            marks = {_SET: name, "role": "worker", GROUP: number}
            place = (namespace, name_of(leader))
            self._sets(_owned_by(PODS, leader), place, template["size"] - 1, marks, template)
        for worker in pods:
            if labels_of(worker)["role"] == "worker":
                self._label(worker, {WORKER: str(int(name_of(worker).rpartition("-")[2]) + 1)})
        status = {"replicas": len(leaders), "readyReplicas": sum(map(is_ready, leaders))}
        if groups.get("status") != status:
            self._api.patch(LEADER_WORKER_SETS, namespace, name, {"status": status}, subresource="status")

    def _sets(
        self,
        owner: Object,
        place: tuple[str, str],
        replicas: int,
        marks: dict[str, str],
        template: Object,
    ) -> None:
        """A StatefulSet of so many pods, which ends with its owner."""
        namespace, name = place
        found = self._api.find(STATEFUL_SETS, namespace, name)
        if found is not None:
            if found["spec"]["replicas"] != replicas:
                self._api.patch(STATEFUL_SETS, namespace, name, {"spec": {"replicas": replicas}})
            return
        pod = template["workerTemplate"]
        spec = {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": marks},
            "template": {**pod, "metadata": {"labels": {**pod["metadata"]["labels"], **marks}}},
        }
        metadata = {"name": name, "ownerReferences": [owner]}
        self._api.create(STATEFUL_SETS, namespace, {"metadata": metadata, "spec": spec})

    def _label(self, pod: Object, wanted: dict[str, str]) -> None:
        if not wanted.items() <= labels_of(pod).items():
            self._api.patch(PODS, namespace_of(pod), name_of(pod), {"metadata": {"labels": wanted}})


def _owned_by(kind: Kind, thing: Object) -> dict[str, Any]:
    return {
        "apiVersion": kind.api_version(),
        "kind": kind.name,
        "name": name_of(thing),
        "uid": thing["metadata"]["uid"],
        "controller": True,
    }
