"""Rows on where pods are: placement and incumbents, and the moves that a plan means."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from models.ids import CandidateId, NodeId
from models.report import RowUse, Violation
from models.scenario import Incumbents
from models.solution import Placement
from planner.referee.bays import Bay, bays_of, kept_replicas, seats_of, total
from planner.referee.index import Index, is_count, is_unlimited
from planner.referee.packing import Unplaced, pack
from planner.referee.side_by_side import room_on_nodes

__all__ = ["Seating"]


@dataclass(frozen=True)
class Seating:
    """The placements of a solution, or where it brings none those that packing finds."""

    index: Index

    @cached_property
    def _claimed(self) -> tuple[Placement, ...]:
        known = self.index.problem.candidate
        return tuple(
            one for one in self.index.solution.placements if one.candidate in known and is_count(one.pods)
        )

    @cached_property
    def _packed(self) -> tuple[Placement, ...] | Unplaced:
        return pack(self.index.problem, self.index.counts, self.index.nodes_added)

    @cached_property
    def _pods(self) -> dict[CandidateId, Counter[NodeId]]:
        """Pods by candidate and node; empty where they do not fit."""
        placements = self._claimed or (() if isinstance(self._packed, Unplaced) else self._packed)
        found: dict[CandidateId, Counter[NodeId]] = defaultdict(Counter)
        for one in placements:
            found[one.candidate][one.node] += one.pods
        return found

    @property
    def moves(self) -> int:
        """Replicas that stay in number and leave their seat, where the rule lets them; 0 where nothing fits."""
        if self.index.problem.incumbents_rule is Incumbents.PINNED or not self.index.problem.incumbents:
            return 0
        if not self._claimed and isinstance(self._packed, Unplaced):
            return 0
        return sum(stay - kept for _, stay, kept in self._stays())

    def _stays(self) -> Iterator[tuple[CandidateId, int, int]]:
        """Candidates with seats: replicas that could keep theirs, and those that do."""
        for candidate, seats in seats_of(self.index.problem).items():
            if not is_unlimited(self.index.problem, seats[0].candidate.pool):
                stay = min(self.index.counts.get(candidate, 0), total(seats))
                yield candidate, stay, min(stay, kept_replicas(seats, self._pods.get(candidate, Counter())))

    def uses(self) -> Iterator[RowUse]:
        """Use of the room on single nodes; nothing where pods do not fit."""
        if self._claimed or not isinstance(self._packed, Unplaced):
            yield from room_on_nodes(self.index, self._pods)

    def placement(self) -> Iterator[Violation]:
        """Every pod has its GPUs on one node that may hold it, in the fabric domain of its candidate."""
        if self._claimed:
            yield from self._claimed_counts()
            yield from self._claimed_rooms()
        elif isinstance(self._packed, Unplaced) and not self._packs_if_moved():
            missing = self._packed
            yield Violation(
                family="placement",
                key=(missing.pool, str(missing.size)),
                found=missing.missing,
                allowed=0,
                unit="pod",
                text=f"{missing.missing:,} pods of {missing.size} GPU{'' if missing.size == 1 else 's'} "
                f"find no node in pool {missing.pool}.",
            )

    def incumbents(self) -> Iterator[Violation]:
        """Pinned: min(n_c, incumbents) replicas of each candidate keep their places."""
        if self.index.problem.incumbents_rule is not Incumbents.PINNED:
            return
        if self._claimed:
            for candidate, stay, kept in self._stays():
                if kept < stay:
                    text = f"{stay} replicas of {candidate} must keep their nodes and {kept} do."
                    yield Violation(
                        family="incumbents",
                        key=(candidate,),
                        found=kept,
                        allowed=stay,
                        unit="replica",
                        text=text,
                    )
        elif isinstance(self._packed, Unplaced) and self._packs_if_moved():
            missing = self._packed
            yield Violation(
                family="incumbents",
                key=(missing.pool, str(missing.size)),
                found=missing.missing,
                allowed=0,
                unit="pod",
                text=f"Pods of {missing.size} GPUs fit pool {missing.pool} only if replicas that stay are moved.",
            )

    def _packs_if_moved(self) -> bool:
        problem = self.index.problem
        if problem.incumbents_rule is not Incumbents.PINNED or not problem.incumbents:
            return False
        movable = problem.model_copy(update={"incumbents_rule": Incumbents.MOVABLE})
        return not isinstance(pack(movable, self.index.counts, self.index.nodes_added), Unplaced)

    def _claimed_counts(self) -> Iterator[Violation]:
        for candidate in self.index.problem.candidates:
            planned = 0 if is_unlimited(self.index.problem, candidate.pool) else self.index.count(candidate)
            pods, placed = (
                planned * candidate.pods_per_replica,
                self._pods.get(candidate.id, Counter()).total(),
            )
            if pods != placed and not is_unlimited(self.index.problem, candidate.pool):
                yield Violation(
                    family="placement",
                    key=(candidate.id,),
                    found=placed,
                    allowed=pods,
                    unit="pod",
                    text=f"Candidate {candidate.id} has {pods} pods and {placed} are placed.",
                )

    def _claimed_rooms(self) -> Iterator[Violation]:
        by_node: dict[NodeId, list[tuple[CandidateId, int]]] = defaultdict(list)
        for candidate, places in self._pods.items():
            if not is_unlimited(self.index.problem, self.index.problem.candidate[candidate].pool):
                for node, pods in places.items():
                    by_node[node].append((candidate, pods))
        bays = {
            bay.node: (pool.id, bay)
            for pool in self.index.problem.pools
            for bay in bays_of(pool, self.index.nodes_added.get(pool.id, 0))
        }
        seated = self._seated()
        for node, held in sorted(by_node.items()):
            pool, bay = bays.get(node, ("", Bay(node, 0, accepts=False)))
            candidates = self.index.problem.candidate
            used = sum(pods * candidates[candidate].gpus_per_pod for candidate, pods in held)
            if used > bay.free:
                text = f"Node {node} has {bay.free} GPUs for us and {used} are placed on it."
                yield Violation(
                    family="placement", key=(node,), found=used, allowed=bay.free, unit="GPU", text=text
                )
            for candidate, pods in held:
                stay = min(pods, seated[candidate, node])
                if stay < pods and not (
                    pool == candidates[candidate].pool and bay.takes(candidates[candidate])
                ):
                    text = f"Node {node} takes no new pods of {candidate}; {stay} may stay and {pods} are placed."
                    yield Violation(
                        family="placement",
                        key=(candidate, node),
                        found=pods,
                        allowed=stay,
                        unit="pod",
                        text=text,
                    )

    def _seated(self) -> Counter[tuple[CandidateId, NodeId]]:
        found: Counter[tuple[CandidateId, NodeId]] = Counter()
        for candidate, seats in seats_of(self.index.problem).items():
            for seat in seats:
                for node, pods in seat.pods:
                    found[candidate, node] += pods * seat.replicas
        return found
