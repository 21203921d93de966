"""Where replicas sit on the way: pods that run stay on their nodes, and each start has a node that is free by then.

Nodes are followed in pools where the node of every ready replica is known. In other pools a state is judged by whether
its pods fit at all, with those pinned whose nodes are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from models.ids import CandidateId, NodeId, PoolId
from models.problem import Candidate, PoolState, Problem
from models.scenario import Incumbents
from models.solution import Placement, Solution
from planner.referee import Unplaced, check, pack
from planner.referee.bays import Seat, bays_of, seats_of, total
from planner.referee.index import is_unlimited
from planner.rollout.room import Room, Tick, never, take
from planner.rollout.seats import (
    ByCandidate,
    Place,
    around,
    moves_of,
    new_places,
    spread,
    way_of,
    without,
)

__all__ = ["Places", "Trip", "places_at_start"]


@dataclass(frozen=True, slots=True)
class Trip:
    """Where the replicas of one wave start and drain, as far as nodes are followed."""

    started: ByCandidate = field(default_factory=dict)
    drained: ByCandidate = field(default_factory=dict)


@dataclass(frozen=True)
class Places:
    """Replicas of the pools whose nodes are followed: where they sit, which leave, and where others shall come.

    Attributes:
        followed: pools whose nodes are followed.
        seated: replicas that hold accelerators now.
        go: those of them that leave.
        come: places of those that shall start or are awaited.
        moves: replicas that stay in number and leave their node, by candidate; of all pools.
        wanted: replicas in the solution.
        nodes_added: nodes in the solution.
        tick: called in every search that may take long; may raise.
    """

    problem: Problem
    followed: frozenset[PoolId]
    seated: ByCandidate
    go: ByCandidate
    come: ByCandidate
    moves: Mapping[CandidateId, int]
    wanted: Mapping[CandidateId, int]
    nodes_added: Mapping[PoolId, int]
    tick: Tick = never

    def room(self, standing: Mapping[PoolId, int]) -> Room:
        """Room for starts with so many nodes added and everything that runs where it is."""
        free: dict[NodeId, int] = {}
        spare: dict[PoolId, dict[NodeId, int]] = {}
        for pool in self.problem.pools:
            if pool.id in self.followed:
                free |= {bay.node: bay.free for bay in bays_of(pool, standing.get(pool.id, 0))}
                ahead = bays_of(pool, self.nodes_added.get(pool.id, 0))
                spare[pool.id] = {bay.node: bay.free for bay in ahead if bay.accepts}
        for name, seated in self.seated.items():
            candidate = self.problem.candidate[name]
            take(free, candidate, seated)
            staying = (*without(seated, self.go.get(name, ())), *self.come.get(name, ()))
            for node in (node for place in staying for node in place):
                if node in spare[candidate.pool]:
                    spare[candidate.pool][node] -= candidate.gpus_per_pod
        return Room(self.problem.candidate, free, spare, dict(self.come), self.tick)

    def advance(
        self,
        starts: Mapping[CandidateId, int],
        drains: Mapping[CandidateId, int],
        standing: Mapping[PoolId, int],
    ) -> tuple[Places, Trip] | None:
        """Start and drain so many replicas while what drains still holds its node; None: they find no room.

        Starts go, in the order given, where the solution has them if that is free, or where that can be exchanged. If
        not, the pods of the pool are arranged anew around those that run, in such a way that the solution's counts
        still fit around all of them.
        """
        after = self
        started: dict[CandidateId, tuple[Place, ...]] = {}
        room = self.room(standing)
        for pool in sorted(self.followed):
            of_pool = {c: n for c, n in starts.items() if n and self.problem.candidate[c].pool == pool}
            chosen = {c: room.seat(c, n) for c, n in of_pool.items()}
            if all(len(chosen[c]) == n for c, n in of_pool.items()):
                after = after.seat(chosen, room)
            else:
                rearranged = after.rearranged(pool, of_pool, standing)
                if rearranged is None:
                    return None
                after, chosen = rearranged
            started.update(chosen)
        after, drained = after.leave(drains)
        return after, Trip(started, drained)

    def seat(self, chosen: ByCandidate, room: Room) -> Places:
        """With these replicas seated, and the ways of others changed as room was exchanged for them."""
        seated = {c: (*self.seated.get(c, ()), *places) for c, places in chosen.items()}
        pools = {self.problem.candidate[c].pool for c in chosen}
        come = {c: places for c, places in room.come.items() if self.problem.candidate[c].pool in pools}
        return replace(self, come={**self.come, **come}, seated={**self.seated, **seated})

    def leave(self, drains: Mapping[CandidateId, int]) -> tuple[Places, ByCandidate]:
        """Without so many replicas that leave, those first that sit where others shall come; and which they are."""
        awaited = Counter(node for places in self.come.values() for place in places for node in place)
        go, seated, drained = dict(self.go), dict(self.seated), {}
        for candidate, n in drains.items():
            if n and self.problem.candidate[candidate].pool in self.followed:
                by_need = sorted(go[candidate], key=lambda at: (-sum(awaited[node] for node in at), at))
                drained[candidate] = tuple(by_need[:n])
                go[candidate] = without(go[candidate], drained[candidate])
                seated[candidate] = without(seated[candidate], drained[candidate])
        return replace(self, go=go, seated=seated), drained

    def rearranged(
        self, pool: PoolId, starts: Mapping[CandidateId, int], standing: Mapping[PoolId, int]
    ) -> tuple[Places, dict[CandidateId, tuple[Place, ...]]] | None:
        """Start replicas of one pool wherever they find room; None: nowhere, or the solution would fit no more."""
        problem = around(self.problem, pool, self.seated, standing)
        members = [c.id for c in self.problem.candidates if c.pool == pool]
        packed = pack(problem, {c: len(self.seated.get(c, ())) + starts.get(c, 0) for c in members})
        if isinstance(packed, Unplaced):
            return None
        chosen = {c: new_places(problem.candidate[c], packed) for c in starts}
        seated = {c: (*self.seated.get(c, ()), *chosen.get(c, ())) for c in members}
        ahead = around(self.problem, pool, seated, self.nodes_added)
        target = pack(ahead, {c: self.wanted.get(c, 0) for c in members})
        if isinstance(target, Unplaced):
            return None
        come, go, seats = dict(self.come), dict(self.go), seats_of(ahead)
        for candidate in members:
            go[candidate], come[candidate] = way_of(ahead.candidate[candidate], seats, target)
            left = len(self.come.get(candidate, ())) - starts.get(candidate, 0)
            if len(come[candidate]) != left or len(go[candidate]) != len(self.go.get(candidate, ())):
                return None
        return replace(self, come=come, go=go, seated={**self.seated, **seated}), chosen


def places_at_start(problem: Problem, solution: Solution) -> Places:
    """Where replicas sit, leave and come, from the solution's placements or else from packing its counts."""
    seats = seats_of(problem)
    claimed = _claimed(problem, solution)
    followed: set[PoolId] = set()
    seated: dict[CandidateId, tuple[Place, ...]] = {}
    go: dict[CandidateId, tuple[Place, ...]] = {}
    come: dict[CandidateId, tuple[Place, ...]] = {}
    moves: dict[CandidateId, int] = {}
    for pool in problem.pools:
        members = [c for c in problem.candidates if c.pool == pool.id]
        counts = {c.id: solution.count(c.id) for c in members}
        target = claimed or pack(problem, counts, solution.nodes_added)
        if isinstance(target, Unplaced) or is_unlimited(problem, pool.id):
            continue
        for one in members:
            if problem.incumbents_rule is Incumbents.MOVABLE:
                moves[one.id] = moves_of(one, counts[one.id], seats.get(one.id, ()), target)
        if _can_follow(pool, members, seats):
            followed.add(pool.id)
            for one in members:
                seated[one.id] = tuple(spread(seats.get(one.id, ())))
                go[one.id], come[one.id] = way_of(one, seats, target)
    counts, nodes = solution.counts, solution.nodes_added
    return Places(problem, frozenset(followed), seated, go, come, moves, counts, nodes)


def _claimed(problem: Problem, solution: Solution) -> tuple[Placement, ...]:
    """The solution's own placements, if they hold."""
    if not solution.placements:
        return ()
    broken = {violation.family for violation in check(problem, solution)}
    return () if broken & {"placement", "incumbents", "solution"} else solution.placements


def _can_follow(
    pool: PoolState, members: Iterable[Candidate], seats: Mapping[CandidateId, tuple[Seat, ...]]
) -> bool:
    """Every ready replica sits somewhere, and added nodes are like others to every candidate."""
    return all(
        total(seats.get(one.id, ())) == one.current
        and not (pool.growth is not None and one.fabric_domain is not None and one.pods_per_replica == 1)
        for one in members
    )
