"""Traffic of ranks: where each rank has an address, labels of its pods; where the engine spreads requests, the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from planner.control.cluster import Api, ClusterFault
from planner.control.cluster.kinds import PODS
from planner.control.cluster.reading import labels_of

__all__ = ["EngineRoutes", "PodRoutes", "pods_of_ranks"]

LABEL: Final = "fleetplan.dev/serving"
_YES, _NO = "yes", "draining"

InFlight = Callable[[int], float | None]


def pods_of_ranks(workload: str, pods_per_replica: int = 1) -> Callable[[int], str]:
    """Names of pods by rank, where each rank has one: of a StatefulSet, or of a LeaderWorkerSet's groups of so many pods."""

    def named(rank: int) -> str:
        group, worker = divmod(rank, pods_per_replica)
        return f"{workload}-{group}-{worker}" if worker else f"{workload}-{group}"

    return named


@dataclass(frozen=True, slots=True)
class EngineRoutes:
    """One API server spreads requests over all ranks, and nobody can keep them from some.

    Requests on ranks that leave end in the engine's own drain (``VLLM_ELASTIC_EP_DRAIN_REQUESTS=1``) or are aborted, which
    the preflight warns of; so there is nothing to wait for here.
    """

    def route(self, _ranks: int) -> str | None:
        """See :class:`planner.control.resizing.world.Router`."""
        return None

    def in_flight(self, _first: int) -> float | None:
        """See :class:`planner.control.resizing.world.Router`."""
        return 0.0


@dataclass(frozen=True, slots=True)
class PodRoutes:
    """One pod for each rank, behind a Service or an InferencePool that selects on ``fleetplan.dev/serving: yes``.

    Args:
        api: of the cluster.
        namespace: of the pods.
        pods: names of the pods, by rank.
        in_flight_of: requests on the ranks from a number on, as their own metrics say.
    """

    api: Api
    namespace: str
    pods: Callable[[int], str]
    count: Callable[[], int | None]
    in_flight_of: InFlight

    def route(self, ranks: int) -> str | None:
        """See :class:`planner.control.resizing.world.Router`; pods that are right already are not written."""
        there = self.count()
        if there is None:
            return "nobody says which pods there are"
        try:
            for rank in range(max(there, ranks)):
                self._labeled(self.pods(rank), _YES if rank < ranks else _NO)
        except ClusterFault as fault:
            return str(fault)
        return None

    def in_flight(self, first: int) -> float | None:
        """See :class:`planner.control.resizing.world.Router`."""
        return self.in_flight_of(first)

    def _labeled(self, name: str, wanted: str) -> None:
        pod = self.api.find(PODS, self.namespace, name)
        if pod is None or labels_of(pod).get(LABEL) == wanted:
            return
        self.api.patch(PODS, self.namespace, name, {"metadata": {"labels": {LABEL: wanted}}})
