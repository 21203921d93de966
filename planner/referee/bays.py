"""Where pods can be: the nodes of a pool with their free GPUs, and the replicas that sit on them now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from models.ids import CandidateId, NodeId, PoolId
from models.problem import Candidate, PoolState, Problem
from planner.errors import ConfigurationError

__all__ = ["MOST_ADDED", "Bay", "Seat", "added_node", "bays_of", "kept_replicas", "seats_of", "total"]


MOST_ADDED: Final = 100_000
"""Nodes that may be added to one pool; each is looked at."""


@dataclass(frozen=True, slots=True)
class Bay:
    """One node, present or added: ``free`` GPUs are left to us (and 0 where nothing can run)."""

    node: NodeId
    free: int
    accepts: bool = True
    domain: str | None = None
    added: bool = False

    def takes(self, candidate: Candidate) -> bool:
        """Whether new pods of a candidate may start here, if they have the room."""
        if not self.accepts or candidate.fabric_domain is None:
            return self.accepts
        return candidate.pods_per_replica == 1 if self.added else self.domain == candidate.fabric_domain


@dataclass(frozen=True, slots=True)
class Seat:
    """``replicas`` replicas of one candidate that sit alike now: ``pods`` pods of each on these nodes."""

    candidate: Candidate
    pods: tuple[tuple[NodeId, int], ...]
    replicas: int


def added_node(pool: PoolId, number: int) -> NodeId:
    """The name of a node that a plan adds to a pool, counted from 0: ``pool+0``."""
    return NodeId(f"{pool}+{number}")


def bays_of(pool: PoolState, nodes_added: int) -> tuple[Bay, ...]:
    """The nodes of a pool, then the added ones.

    Raises:
        ConfigurationError: more nodes are added than can be looked at one by one.
    """
    if nodes_added > MOST_ADDED:
        raise ConfigurationError(
            f"{nodes_added:,} nodes would be added to pool {pool.id}, and a plan can be judged with at most "
            f"{MOST_ADDED:,}: look for a rate that is too large, or a capacity that is too small"
        )
    present = [
        Bay(
            node.id,
            node.free_gpus if node.holds_pods else 0,
            node.accepts_pods and node.holds_pods,
            node.fabric_domain,
        )
        for node in pool.nodes
    ]
    gpus = pool.growth.gpus_per_node if pool.growth is not None else 0
    return (
        *present,
        *(Bay(added_node(pool.id, i), gpus, added=True) for i in range(nodes_added if gpus else 0)),
    )


def seats_of(problem: Problem) -> dict[CandidateId, tuple[Seat, ...]]:
    """Seats by candidate, of replicas that live: each pod is on a node of the pool that holds pods."""
    holding = {pool.id: {node.id for node in pool.nodes if node.holds_pods} for pool in problem.pools}
    found: dict[CandidateId, Counter[tuple[tuple[NodeId, int], ...]]] = {}
    for incumbent in problem.incumbents:
        candidate = problem.candidate.get(incumbent.candidate)
        if candidate is None or len(incumbent.nodes) != candidate.pods_per_replica:
            continue
        if holding[candidate.pool].issuperset(incumbent.nodes):
            pods = tuple(sorted(Counter(incumbent.nodes).items()))
            found.setdefault(candidate.id, Counter())[pods] += incumbent.count
    return {
        candidate: tuple(Seat(problem.candidate[candidate], pods, n) for pods, n in sorted(seats.items()))
        for candidate, seats in found.items()
    }


def kept_replicas(seats: Sequence[Seat], pods: Mapping[NodeId, int]) -> int:
    """The most replicas of one candidate that can be where they were, given its planned pods per node."""
    if all(len(seat.pods) == 1 for seat in seats):
        return sum(
            min(sum(s.replicas for s in seats if s.pods == place), pods.get(place[0][0], 0) // place[0][1])
            for place in {seat.pods for seat in seats}
        )
    best = 0
    stack: list[tuple[int, int, dict[NodeId, int]]] = [(0, 0, dict(pods))]
    while stack:
        kept, i, left = stack.pop()
        best = max(best, kept)
        if kept + sum(seat.replicas for seat in seats[i:]) <= best:
            continue
        seat = seats[i]
        most = min(seat.replicas, *(left.get(node, 0) // each for node, each in seat.pods))
        for keep in range(most + 1):
            taken = {node: left.get(node, 0) - keep * each for node, each in seat.pods}
            stack.append((kept + keep, i + 1, left | taken))
    return best


def total(seats: Iterable[Seat]) -> int:
    """Replicas on all of these seats."""
    return sum(seat.replicas for seat in seats)
