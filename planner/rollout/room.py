"""Room on nodes while a wave is filled: where replicas can start now such that the solution still fits in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from models.ids import CandidateId, NodeId, PoolId
from models.problem import Candidate
from planner.rollout.seats import Place, without

__all__ = ["Room", "Tick", "never", "take"]

Tick = Callable[[], None]
"""Called in every search that may take long. Whoever hands it in raises from it to end one that takes too long."""


def never() -> None:
    """Let every search come to its end."""


def take(free: dict[NodeId, int], candidate: Candidate, places: Iterable[Place]) -> None:
    """Take the accelerators of replicas at these places."""
    for place in places:
        for node in place:
            free[node] = free.get(node, 0) - candidate.gpus_per_pod


@dataclass
class Room:
    """Changes as replicas are seated.

    Attributes:
        candidates: candidates whose nodes are followed.
        free: accelerators that are free now, on nodes that stand.
        spare: accelerators that nobody has in the end, on nodes that take new pods, by candidate's pool.
        come: places of those that shall still start.
        tick: called for each replica that does not start where it shall be in the end; may raise.
    """

    candidates: Mapping[CandidateId, Candidate]
    free: dict[NodeId, int]
    spare: dict[PoolId, dict[NodeId, int]]
    come: dict[CandidateId, tuple[Place, ...]]
    tick: Tick = never

    def seat(self, candidate: CandidateId, most: int) -> tuple[Place, ...]:
        """Start up to so many replicas.

        They take their own places, else those of others of the same size, who then get theirs, else room that is spare
        in the end.
        """
        found = self._own(candidate, most)
        # Room only shrinks meanwhile: a place of its own that did not fit will not fit later.
        while len(found) < most and self.come.get(candidate):
            self.tick()
            place = self._exchanged(candidate) or self._spare(candidate)
            if place is None:
                break
            take(self.free, self.candidates[candidate], (place,))
            self.come[candidate] = without(self.come[candidate], (place,))
            found.append(place)
        return tuple(found)

    def _fits(self, candidate: CandidateId, place: Place) -> bool:
        size = self.candidates[candidate].gpus_per_pod
        return all(self.free.get(node, 0) >= n * size for node, n in Counter(place).items())

    def _own(self, candidate: CandidateId, most: int) -> list[Place]:
        """Take the first places of its own that fit, in one go: there may be many thousands."""
        found: list[Place] = []
        left: list[Place] = []
        for place in self.come.get(candidate, ()):
            if len(found) < most and self._fits(candidate, place):
                take(self.free, self.candidates[candidate], (place,))
                found.append(place)
            else:
                left.append(place)
        if found:
            self.come[candidate] = tuple(left)
        return found

    def _exchanged(self, candidate: CandidateId) -> Place | None:
        """A place that fits now from another candidate, which gets the first of this one's in exchange."""
        one = self.candidates[candidate]
        if not _is_plain(one):
            return None
        for other, places in self.come.items():
            twin = self.candidates[other]
            if other == candidate or twin.pool != one.pool or twin.gpus_per_pod != one.gpus_per_pod:
                continue
            place = next((p for p in places if self._fits(candidate, p)), None) if _is_plain(twin) else None
            if place is not None:
                given = self.come[candidate][0]
                self.come[other] = (*without(places, (place,)), given)
                self.come[candidate] = (*self.come[candidate][1:], place)
                return place
        return None

    def _spare(self, candidate: CandidateId) -> Place | None:
        """The fullest node with room now and in the end; the place that is not needed any more becomes spare."""
        one = self.candidates[candidate]
        if not _is_plain(one):
            return None
        size, spare = one.gpus_per_pod, self.spare[one.pool]
        nodes = [node for node, n in spare.items() if n >= size and self.free.get(node, 0) >= size]
        if not nodes:
            return None
        node = min(nodes, key=lambda node: (spare[node], self.free[node], node))
        given = self.come[candidate][0][0]
        spare[node] -= size
        if given in spare:
            spare[given] += size
        self.come[candidate] = (*self.come[candidate][1:], (node,))
        return (node,)


def _is_plain(candidate: Candidate) -> bool:
    """Whether one node will do, and any."""
    return candidate.pods_per_replica == 1 and candidate.fabric_domain is None
