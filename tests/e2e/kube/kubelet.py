"""Plays the kubelets: pods become Running and Ready some time after they have a node, and deleted ones go."""

from __future__ import annotations

from typing import Any, Final

from planner.clock import SystemClock
from planner.control.cluster import Api, ClusterFault, Trouble
from planner.control.cluster.kinds import PODS
from planner.control.cluster.reading import (
    Object,
    at,
    is_ending,
    is_ready,
    items_of,
    name_of,
    namespace_of,
    text_at,
)
from planner.control.cluster.transport import Call
from tests.e2e.kube.rounds import Rounds

__all__ = ["Kubelets", "running_status"]

_CLOCK: Final = SystemClock()
_OWN: Final = ("Initialized", "ContainersReady", "Ready", "PodScheduled")
"""Conditions that a kubelet writes."""


class Kubelets(Rounds):
    """Tend all pods, until the block ends.

    Args:
        api: as administrator.
        ready_after_s: how long a pod starts.
        without_nodes: pods need no node, where no scheduler runs.
    """

    # The API server may be away on purpose.
    borne = frozenset(Trouble)

    def __init__(self, api: Api, *, ready_after_s: float = 0.0, without_nodes: bool = False) -> None:
        super().__init__(api)
        self.ready_after_s = ready_after_s
        self._without_nodes = without_nodes
        self._first_s: dict[str, float] = {}

    def _round(self) -> None:
        for number, pod in enumerate(self._api.list(PODS).items):
            try:
                self._tend(pod, number)
            except ClusterFault as fault:
                # Gone, or somebody wrote it since: it is looked at again in the next round.
                if fault.trouble not in {Trouble.NOT_FOUND, Trouble.CONFLICT}:
                    raise

    def _tend(self, pod: Object, number: int) -> None:
        if is_ending(pod):
            self._remove(pod)
        elif self._is_due(pod):
            address = f"10.1.{number // 250 % 250}.{number % 250 + 1}"
            self._write(pod, {"status": running_status(pod, address)})
        elif at(pod, "spec", "readinessGates") and text_at(pod, "status", "phase") == "Running":
            self._look_at_gates(pod)

    def _look_at_gates(self, pod: Object) -> None:
        """A pod that runs is ready as long as its readiness gates hold."""
        status = running_status(pod, text_at(pod, "status", "podIP"))
        if is_ready({"status": status}) is not is_ready(pod):
            version = {"resourceVersion": text_at(pod, "metadata", "resourceVersion")}
            self._write(pod, {"metadata": version, "status": status})

    def _write(self, pod: Object, change: dict[str, Any]) -> None:
        self._api.patch(PODS, namespace_of(pod), name_of(pod), change, subresource="status")

    def _is_due(self, pod: Object) -> bool:
        if text_at(pod, "status", "phase") != "Pending":
            return False
        if not self._without_nodes and not text_at(pod, "spec", "nodeName"):
            return False
        first_s = self._first_s.setdefault(text_at(pod, "metadata", "uid"), _CLOCK.monotonic_s())
        return _CLOCK.monotonic_s() - first_s >= self.ready_after_s

    def _remove(self, pod: Object) -> None:
        path = PODS.path("v1", namespace_of(pod), name_of(pod))
        body = b'{"gracePeriodSeconds": 0}'
        self._api.transport.call(Call(method="DELETE", path=path, body=body))


def running_status(pod: Object, address: str, *, ready: bool = True) -> dict[str, Any]:
    """The status of a pod whose containers run.

    Args:
        pod: as it is; conditions that others wrote stay.
        address: of the pod.
        ready: its containers are. The pod is if its readiness gates hold too.
    """
    others = [each for each in items_of(at(pod, "status", "conditions")) if each.get("type") not in _OWN]
    good = {text_at(each, "type") for each in others if text_at(each, "status") == "True"}
    gates = {text_at(each, "conditionType") for each in items_of(at(pod, "spec", "readinessGates"))}
    holds = dict.fromkeys(_OWN, True) | {"ContainersReady": ready, "Ready": ready and gates <= good}
    containers = [
        {
            "name": each["name"], "image": each["image"], "imageID": each["image"], "ready": ready, "started": ready,
            "restartCount": 0, "state": {"running": {}},
        }
        for each in items_of(at(pod, "spec", "containers"))
    ]  # fmt: skip
    return {
        "phase": "Running",
        "podIP": address,
        "conditions": [*others, *({"type": kind, "status": str(held)} for kind, held in holds.items())],
        "containerStatuses": containers,
    }
