"""Whether the pods of a plan fit on the nodes, and where: largest first where that is exact, else a search.

Largest first decides when pods may go to every node and each size divides the next, and no choice is left of which
replicas keep their seats: a slot that a large pod takes then costs as many small slots on one node as on another.
Everything else that largest first cannot place is decided by `patterns.arrange`, which is exact in every case.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from models.ids import CandidateId, NodeId, PoolId
from models.problem import Candidate, PoolState, Problem
from models.scenario import Incumbents
from models.solution import Placement
from planner.referee.bays import Bay, Seat, bays_of, seats_of, total
from planner.referee.index import is_unlimited
from planner.referee.patterns import Arrangement, Question, arrange, fewest_moves

__all__ = ["Unplaced", "pack", "pack_pool"]


@dataclass(frozen=True, slots=True)
class Unplaced:
    """The first pool whose pods do not fit: ``missing`` pods of ``size`` GPUs are left over by largest first."""

    pool: PoolId
    size: int
    missing: int


def pack(
    problem: Problem, counts: Mapping[CandidateId, int], nodes_added: Mapping[PoolId, int] | None = None
) -> tuple[Placement, ...] | Unplaced:
    """Place every pod of these counts, keeping incumbents by the problem's rule.

    Args:
        problem: pools, candidates, incumbents and their rule. With ``movable`` the fewest replicas move (exact).
        counts: replicas by candidate; what is left out is at zero.
        nodes_added: added nodes by pool; they are named by `added_node`.

    Returns:
        Placements sorted by candidate and node, or what does not fit. Pools without limits have no placements.
    """
    seats = seats_of(problem)
    by_pool: dict[PoolId, list[tuple[Candidate, int]]] = {}
    for candidate in problem.candidates:
        if counts.get(candidate.id, 0) > 0:
            by_pool.setdefault(candidate.pool, []).append((candidate, counts[candidate.id]))
    found: list[Placement] = []
    for pool in problem.pools:
        wanted = tuple(by_pool.get(pool.id, ()))
        if not wanted or is_unlimited(problem, pool.id):
            continue
        answer = _pack_pool(problem, (pool, wanted, (nodes_added or {}).get(pool.id, 0)), seats)
        if isinstance(answer, Unplaced):
            return answer
        found += _placements(answer)
    return tuple(sorted(found, key=lambda placement: (placement.candidate, placement.node)))


def pack_pool(
    problem: Problem, pool: PoolState, wanted: tuple[tuple[Candidate, int], ...], nodes_added: int
) -> Arrangement | Unplaced:
    """Place so many replicas of candidates in one pool, keeping incumbents by the problem's rule."""
    return _pack_pool(problem, (pool, wanted, nodes_added), seats_of(problem))


def _pack_pool(
    problem: Problem,
    asked: tuple[PoolState, tuple[tuple[Candidate, int], ...], int],
    seats: Mapping[CandidateId, tuple[Seat, ...]],
) -> Arrangement | Unplaced:
    pool, wanted, nodes_added = asked
    own_seats = {c.id: seats[c.id] for c, _ in wanted if c.id in seats}
    bays = bays_of(pool, nodes_added)
    return _PoolPacking(pool, bays, wanted, own_seats).pack(problem.incumbents_rule)


def _placements(arrangement: Arrangement) -> Iterable[Placement]:
    kept, started = arrangement.kept, arrangement.started
    for candidate, node in kept.keys() | started.keys():
        stay = kept[candidate, node]
        yield Placement(candidate=candidate, node=node, pods=stay + started[candidate, node], kept=stay)


@dataclass(frozen=True)
class _PoolPacking:
    pool: PoolState
    bays: tuple[Bay, ...]
    wanted: tuple[tuple[Candidate, int], ...]
    seats: Mapping[CandidateId, tuple[Seat, ...]]

    def pack(self, rule: Incumbents) -> Arrangement | Unplaced:
        simple = self._largest_first()
        if isinstance(simple, Arrangement) or (self._largest_first_decides() and rule is Incumbents.PINNED):
            return simple
        best = self._pinned() if rule is Incumbents.PINNED else self._movable()
        return best if best is not None else simple

    def _keep(self, candidate: Candidate, n: int) -> int:
        return min(n, total(self.seats.get(candidate.id, ())))

    def _has_choice(self, candidate: Candidate, n: int) -> bool:
        return candidate.id in self.seats and n < total(self.seats[candidate.id])

    def _largest_first_decides(self) -> bool:
        starting = {c.gpus_per_pod for c, n in self.wanted if n > self._keep(c, n)}
        anywhere = all(c.fabric_domain is None for c, n in self.wanted if n > self._keep(c, n))
        divisible = all(large % small == 0 for small, large in pairwise(sorted(starting)))
        return anywhere and divisible and not any(self._has_choice(c, n) for c, n in self.wanted)

    def _largest_first(self) -> Arrangement | Unplaced:
        """Keep seats (those on nodes that take no new pods before others), then start pods, largest first."""
        found = Arrangement()
        closed = {bay.node for bay in self.bays if not bay.accepts}
        free = {bay.node: bay.free for bay in self.bays}
        for candidate, n in self.wanted:
            for node, pods in (+_first_seats(self.seats.get(candidate.id, ()), n, closed)).items():
                found.kept[candidate.id, node] += pods
                free[node] -= pods * candidate.gpus_per_pod
                if free[node] < 0:
                    missing = -(free[node] // candidate.gpus_per_pod)
                    return Unplaced(self.pool.id, candidate.gpus_per_pod, missing)
        rooms = _Rooms(self.bays, free)
        bound_first = sorted(
            self.wanted, key=lambda it: (it[0].fabric_domain is None, -it[0].gpus_per_pod, it[0].id)
        )
        for candidate, n in bound_first:
            pods = (n - self._keep(candidate, n)) * candidate.pods_per_replica
            missing = rooms.start(candidate, pods, found)
            if missing:
                return Unplaced(self.pool.id, candidate.gpus_per_pod, missing)
        return found

    def _movable(self) -> Arrangement | None:
        """Any replica may leave its seat, as few as can be."""
        keep = {c.id: self._keep(c, n) for c, n in self.wanted if c.id in self.seats}
        return fewest_moves(Question(self.bays, self.wanted, self.seats, keep, moves=sum(keep.values())))

    def _pinned(self) -> Arrangement | None:
        """Those that do not shrink keep every seat; which seats the others keep is searched."""
        stay: Counter[NodeId] = Counter()
        held = Arrangement()
        rest = []
        for candidate, n in self.wanted:
            if self._has_choice(candidate, n):
                rest.append((candidate, n))
                continue
            for seat in self.seats.get(candidate.id, ()):
                for node, each in seat.pods:
                    held.kept[candidate.id, node] += each * seat.replicas
                    stay[node] += each * seat.replicas * candidate.gpus_per_pod
            rest.append((candidate, n - self._keep(candidate, n)))
        bays = tuple(replace(bay, free=bay.free - stay[bay.node]) for bay in self.bays)
        if any(bay.free < 0 for bay in bays):
            return None
        open_seats = {c.id: self.seats[c.id] for c, n in self.wanted if self._has_choice(c, n)}
        keep = {c.id: n for c, n in self.wanted if c.id in open_seats}
        answer = arrange(Question(bays, tuple((c, n) for c, n in rest if n), open_seats, keep))
        return None if answer is None else Arrangement(answer.kept + held.kept, answer.started)


class _Rooms:
    """Nodes that take new pods, by their free GPUs, those of equal room by name."""

    def __init__(self, bays: Iterable[Bay], free: Mapping[NodeId, int]) -> None:
        self._bay = {bay.node: bay for bay in bays if bay.accepts}
        self._nodes: dict[int, list[NodeId]] = {}
        for node in sorted(self._bay):
            self._nodes.setdefault(free[node], []).append(node)

    def start(self, candidate: Candidate, pods: int, found: Arrangement) -> int:
        """Start pods where the least room is left over; the number that found no room."""
        size = candidate.gpus_per_pod
        for left in sorted(room for room in self._nodes if room >= size):
            for node in self._taking(candidate, left)[: -(-pods // (left // size))]:
                n = min(pods, left // size)
                found.started[candidate.id, node] += n
                pods -= n
                self._nodes[left].remove(node)
                insort(self._nodes.setdefault(left - n * size, []), node)
        return pods

    def _taking(self, candidate: Candidate, room: int) -> list[NodeId]:
        """Nodes of that room that take new pods of a candidate."""
        nodes = self._nodes[room]
        if candidate.fabric_domain is None:
            return nodes
        return [node for node in nodes if self._bay[node].takes(candidate)]


def _first_seats(seats: Iterable[Seat], n: int, closed: set[NodeId]) -> Counter[NodeId]:
    """Pods per node of the first ``n`` replicas, those on closed nodes before others."""
    kept: Counter[NodeId] = Counter()
    for seat in sorted(
        seats, key=lambda seat: (not closed.issuperset(node for node, _ in seat.pods), seat.pods)
    ):
        stay = min(n, seat.replicas)
        n -= stay
        for node, each in seat.pods:
            kept[node] += stay * each
    return kept
