"""Use of the room on single nodes: free GPUs of a pool are worth nothing to a pod that finds too few on any one node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from models.ids import CandidateId, NodeId
from models.problem import Candidate, PoolState
from models.report import RowUse
from planner.referee.bays import Bay, bays_of
from planner.referee.index import Index, is_unlimited
from planner.referee.packing import Unplaced, pack_pool
from planner.referee.physical import may_grow

__all__ = ["Pods", "room_on_nodes"]

Pods = Mapping[CandidateId, Mapping[NodeId, int]]
"""Pods by candidate and node."""

_SEARCHED: Final = 64
"""Nodes up to which another way to place everything is searched; beyond, an undecided size is not told of."""


def room_on_nodes(index: Index, pods: Pods) -> Iterator[RowUse]:
    """Per pool and pod size above 1 GPU: pods that are placed, of those and how many more would find a node.

    Only where the free GPUs of the pool would be enough for one more pod in sum, so that it says what the row ``gpus``
    does not. That not one more fits is exact; more than one are those that fit beside the pods as they are placed.
    """
    for pool in index.problem.pools:
        if not is_unlimited(index.problem, pool.id) and not may_grow(index, pool):
            yield from _Pool(index, pool, pods).uses()


@dataclass(frozen=True)
class _Pool:
    index: Index
    pool: PoolState
    pods: Pods

    def uses(self) -> Iterator[RowUse]:
        """The row of each size that the candidates of the pool have."""
        free = self._free()
        in_sum = sum(gpus for bay, gpus in free.items() if bay.accepts)
        for size, candidate in self._sizes().items():
            if in_sum < size:
                continue
            more = self._more(candidate, free)
            if more is not None:
                used = sum(n for one, n in self._placed() if one.gpus_per_pod == size)
                yield RowUse(
                    family="placement",
                    key=(self.pool.id, str(size)),
                    used=used,
                    limit=used + more,
                    unit=f"pods of {size} GPUs",
                    step=1,
                    facts={"free_gpus": in_sum},
                )

    def _sizes(self) -> dict[int, Candidate]:
        """A candidate of each size, smallest first."""
        return {size: c for size, c in sorted(self.index.of_size.get(self.pool.id, {}).items()) if size > 1}

    def _bays(self) -> tuple[Bay, ...]:
        return bays_of(self.pool, self.index.nodes_added.get(self.pool.id, 0))

    def _placed(self) -> list[tuple[Candidate, int]]:
        running = self.index.in_pool.get(self.pool.id, ())
        return [(c, self.index.count(c) * c.pods_per_replica) for c in running]

    def _free(self) -> dict[Bay, int]:
        used: dict[NodeId, int] = {}
        for candidate in self.index.in_pool.get(self.pool.id, ()):
            for node, pods in self.pods.get(candidate.id, {}).items():
                used[node] = used.get(node, 0) + pods * candidate.gpus_per_pod
        return {bay: bay.free - used.get(bay.node, 0) for bay in self._bays()}

    def _more(self, candidate: Candidate, free: Mapping[Bay, int]) -> int | None:
        """Pods of the candidate's size that still fit; None: not known."""
        size = candidate.gpus_per_pod
        beside = sum(gpus // size for bay, gpus in free.items() if bay.accepts)
        if beside:
            return beside
        slots = sum(bay.free // size for bay in free)
        if slots <= sum(n * (one.gpus_per_pod // size) for one, n in self._placed()):
            return 0
        return self._otherwise(candidate) if len(free) <= _SEARCHED else None

    def _otherwise(self, candidate: Candidate) -> int:
        """1 if one more pod fits when everything may be placed anew, else 0."""
        changes = {"id": f"{candidate.id}+", "pods_per_replica": 1, "fabric_domain": None}
        one_more = candidate.model_copy(update=changes)
        running = self.index.in_pool.get(self.pool.id, ())
        wanted = (*((c, self.index.count(c)) for c in running), (one_more, 1))
        added = self.index.nodes_added.get(self.pool.id, 0)
        return int(not isinstance(pack_pool(self.index.problem, self.pool, wanted, added), Unplaced))
