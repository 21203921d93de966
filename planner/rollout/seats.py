"""Places of replicas as the referee's packing gives them: which are left, which come, and which move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from models.ids import CandidateId, NodeId, PoolId
from models.problem import Candidate, Incumbent, NodeState, Problem
from models.scenario import Incumbents
from models.solution import Placement
from planner.referee import added_node
from planner.referee.bays import Seat, kept_replicas, total

__all__ = ["ByCandidate", "Place", "around", "moves_of", "new_places", "spread", "way_of", "without"]

Place = tuple[NodeId, ...]
"""The node of each pod of one replica."""

ByCandidate = Mapping[CandidateId, tuple[Place, ...]]


def spread(seats: Iterable[Seat]) -> Iterator[Place]:
    """One place for each replica that sits."""
    for seat in seats:
        yield from [tuple(node for node, pods in seat.pods for _ in range(pods))] * seat.replicas


def without(places: Iterable[Place], gone: Iterable[Place]) -> tuple[Place, ...]:
    """The places that are left, in order."""
    missing, left = Counter(gone), []
    for place in places:
        if missing[place]:
            missing[place] -= 1
        else:
            left.append(place)
    return tuple(left)


def way_of(
    candidate: Candidate, seats: Mapping[CandidateId, tuple[Seat, ...]], target: Iterable[Placement]
) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
    """Places of a candidate that are left, and those that come, from where it sits to a target."""
    pods = Counter({one.node: one.pods for one in target if one.candidate == candidate.id})
    own = seats.get(candidate.id, ())
    sitting = tuple(spread(own))
    kept = _kept(sitting, dict(pods), kept_replicas(own, pods)) or ()
    pods.subtract(node for place in kept for node in place)
    return without(sitting, kept), _chunks(candidate, pods)


def new_places(candidate: Candidate, packed: Iterable[Placement]) -> tuple[Place, ...]:
    """Places of the replicas that a packing starts."""
    return _chunks(
        candidate, {one.node: one.pods - one.kept for one in packed if one.candidate == candidate.id}
    )


def moves_of(candidate: Candidate, wanted: int, seats: Iterable[Seat], target: Iterable[Placement]) -> int:
    """Replicas that stay in number and leave their place."""
    own = tuple(seats)
    pods = {one.node: one.pods for one in target if one.candidate == candidate.id}
    stay = min(wanted, total(own))
    return stay - min(stay, kept_replicas(own, pods))


def around(problem: Problem, pool: PoolId, seated: ByCandidate, nodes: Mapping[PoolId, int]) -> Problem:
    """The problem of one pool in which every replica is pinned where it sits, added nodes being like others."""
    state = problem.pool[pool]
    gpus = state.growth.gpus_per_node if state.growth is not None else 0
    added = (
        NodeState(id=added_node(pool, i), gpus=gpus, free_gpus=gpus)
        for i in range(nodes.get(pool, 0) if gpus else 0)
    )
    members = tuple(c for c in problem.candidates if c.pool == pool)
    incumbents = tuple(
        Incumbent(candidate=c.id, nodes=place, count=n)
        for c in members
        for place, n in sorted(Counter(seated.get(c.id, ())).items())
    )
    return problem.but(
        candidates=members,
        pools=(state.but(nodes=(*state.nodes, *added)),),
        incumbents=incumbents,
        incumbents_rule=Incumbents.PINNED,
    )


def _kept(sitting: tuple[Place, ...], pods: dict[NodeId, int], need: int) -> tuple[Place, ...] | None:
    """``need`` of the places whose pods are all in the target; None: there are not so many."""
    stack: list[tuple[int, dict[NodeId, int], tuple[Place, ...]]] = [(0, pods, ())]
    while stack:
        i, left, kept = stack.pop()
        if len(kept) == need:
            return kept
        if len(kept) + len(sitting) - i < need:
            continue
        stack.append((i + 1, left, kept))
        uses = Counter(sitting[i])
        if all(left.get(node, 0) >= n for node, n in uses.items()):
            rest = left | {node: left[node] - n for node, n in uses.items()}
            stack.append((i + 1, rest, (*kept, sitting[i])))
    return None


def _chunks(candidate: Candidate, pods: Mapping[NodeId, int]) -> tuple[Place, ...]:
    each = candidate.pods_per_replica
    nodes = [node for node, n in sorted(pods.items()) for _ in range(n)]
    return tuple(tuple(nodes[i : i + each]) for i in range(0, len(nodes), each))
