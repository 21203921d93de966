"""Exact packing as whole numbers: how often each way to fill a node is used, and which replicas keep their seats.

Nodes that are alike form a class; a pattern says how many slots of each kind a node of the class offers. Only full
patterns are needed, because a slot may stay empty. Kinds are pods of one size that may go to the same nodes, and seats.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from models.ids import CandidateId, NodeId
from models.problem import Candidate
from planner.referee.bays import Bay, Seat, total
from planner.referee.integers import WholeRow, cannot_be, whole_numbers

__all__ = ["Arrangement", "Question", "arrange", "fewest_moves"]

Kind = tuple[str, ...]
Items = tuple[tuple[Kind, int, int], ...]
"""Kind, GPUs of one, and the most of them: what a node may hold."""


@dataclass(frozen=True)
class Question:
    """Pods of one pool to be placed.

    Attributes:
        bays: the nodes; ``free`` is what replicas that must keep their seat leave.
        wanted: replicas to place by candidate; those that must keep their seat are not among them.
        seats: seats that may be kept, by candidate.
        keep: replicas of a candidate that must keep one of these seats.
        moves: instead of ``keep``, replicas that may leave their seat in all; None: ``keep`` rules.
    """

    bays: tuple[Bay, ...]
    wanted: tuple[tuple[Candidate, int], ...]
    seats: Mapping[CandidateId, tuple[Seat, ...]]
    keep: Mapping[CandidateId, int]
    moves: int | None = None


@dataclass
class Arrangement:
    """Pods per (candidate, node): those that keep their seat, and those that start."""

    kept: Counter[tuple[CandidateId, NodeId]] = field(default_factory=Counter)
    started: Counter[tuple[CandidateId, NodeId]] = field(default_factory=Counter)


def arrange(question: Question) -> Arrangement | None:
    """A placement of every wanted replica that keeps enough seats; None: there is none (exact)."""
    model = _Model(question)
    answer = whole_numbers(model.upper, model.rows())
    return None if answer is None else model.decode(answer)


def fewest_moves(question: Question) -> Arrangement | None:
    """The arrangement that leaves the fewest seats; None: there is none however many move (exact).

    More moves never make it harder. The fewest that the relaxation allows are found by halving, and the search starts
    there; it seldom has to allow one more.
    """
    most = sum(question.keep.values())
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        model = _Model(replace(question, moves=middle))
        low, high = (middle + 1, high) if cannot_be(model.upper, model.rows()) else (low, middle)
    if low < most and arrange(replace(question, moves=most)) is None:
        return None
    answers = (arrange(replace(question, moves=moves)) for moves in range(low, most + 1))
    return next((answer for answer in answers if answer is not None), None)


def _pod_kind(candidate: Candidate) -> Kind:
    domain = candidate.fabric_domain
    single = "single" if domain is not None and candidate.pods_per_replica == 1 else ""
    return ("pod", str(candidate.gpus_per_pod), domain or "", single)


def _seat_kind(seat: Seat, number: int, node: NodeId) -> Kind:
    """Single-pod seats of a candidate are alike; the seats of a replica of several pods belong together."""
    if seat.candidate.pods_per_replica == 1:
        return ("seat", seat.candidate.id)
    return ("seat", seat.candidate.id, str(number), node)


def full_patterns(items: Items, room: int) -> Iterator[dict[Kind, int]]:
    """Every way to fill ``room`` GPUs to which nothing can be added."""

    def fill(i: int, left: int, sofar: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if i == len(items):
            if all(n == most or size > left for n, (_, size, most) in zip(sofar, items, strict=True)):
                yield sofar
            return
        _, size, most = items[i]
        for n in range(min(most, left // size), -1, -1):
            yield from fill(i + 1, left - n * size, (*sofar, n))

    for counts in fill(0, room, ()):
        yield {kind: n for (kind, _, _), n in zip(items, counts, strict=True) if n}


class _Model:
    """Columns: uses of each pattern by class of nodes, then replicas that keep each kind of seat."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.keeps = self._keeps()
        self.classes: dict[tuple[Items, int], list[Bay]] = defaultdict(list)
        for bay in question.bays:
            if items := self._items(bay):
                self.classes[items, bay.free].append(bay)
        self.patterns = [(key, pattern) for key in self.classes for pattern in full_patterns(*key) if pattern]
        kept_most = [most for _, _, most in self.keeps]
        self.upper = [len(self.classes[key]) for key, _ in self.patterns] + kept_most

    def _keeps(self) -> list[tuple[CandidateId, dict[Kind, int], int]]:
        """Per column: the candidate, what one replica takes of each kind of seat, and the most that can stay."""
        found: list[tuple[CandidateId, dict[Kind, int], int]] = []
        for candidate, seats in self.question.seats.items():
            if seats[0].candidate.pods_per_replica == 1:
                found.append((candidate, {_seat_kind(seats[0], 0, seats[0].pods[0][0]): 1}, total(seats)))
                continue
            for number, seat in enumerate(seats):
                takes = {_seat_kind(seat, number, node): each for node, each in seat.pods}
                found.append((candidate, takes, seat.replicas))
        return found

    def _items(self, bay: Bay) -> Items:
        most: Counter[Kind] = Counter()
        sizes: dict[Kind, int] = {}
        for candidate, n in self.question.wanted:
            if bay.takes(candidate) and candidate.gpus_per_pod <= bay.free:
                most[_pod_kind(candidate)] += n * candidate.pods_per_replica
                sizes[_pod_kind(candidate)] = candidate.gpus_per_pod
        for kind, n in list(most.items()):
            most[kind] = min(n, bay.free // sizes[kind])
        for seats in self.question.seats.values():
            for number, seat in enumerate(seats):
                for node, each in seat.pods:
                    if node == bay.node:
                        kind = _seat_kind(seat, number, node)
                        most[kind] += each * seat.replicas
                        sizes[kind] = seat.candidate.gpus_per_pod
        return tuple(
            sorted(
                ((kind, sizes[kind], n) for kind, n in most.items() if n),
                key=lambda item: (-item[1], item[0]),
            )
        )

    def rows(self) -> list[WholeRow]:
        """Patterns per class, pods that start, seats that are offered, and how many must be kept."""
        return [*self._class_rows(), *self._slot_rows(), *self._keep_rows()]

    def _class_rows(self) -> Iterator[WholeRow]:
        columns: dict[tuple[Items, int], list[int]] = defaultdict(list)
        for j, (key, _) in enumerate(self.patterns):
            columns[key].append(j)
        for key, own in columns.items():
            yield WholeRow(dict.fromkeys(own, 1), len(self.classes[key]))

    def _slot_rows(self) -> Iterator[WholeRow]:
        terms: dict[Kind, dict[int, int]] = defaultdict(dict)
        needed: Counter[Kind] = Counter()
        for j, (_, pattern) in enumerate(self.patterns):
            for kind, slots in pattern.items():
                terms[kind][j] = -slots
        kind_of = {candidate.id: _pod_kind(candidate) for candidate, _ in self.question.wanted}
        for candidate, n in self.question.wanted:
            needed[kind_of[candidate.id]] += n * candidate.pods_per_replica
        for j, (candidate_id, takes, _) in enumerate(self.keeps, start=len(self.patterns)):
            pods = sum(takes.values())
            terms[kind_of[candidate_id]][j] = -pods
            for kind, each in takes.items():
                terms[kind][j] = each
        for kind in terms.keys() | needed.keys():
            yield WholeRow(terms[kind], -needed[kind])

    def _keep_rows(self) -> Iterator[WholeRow]:
        first = len(self.patterns)
        own: dict[CandidateId, list[int]] = defaultdict(list)
        for j, (candidate, _, most) in enumerate(self.keeps, start=first):
            own[candidate].append(j)
            yield WholeRow({j: 1}, most)
        keep = self.question.keep
        for candidate, columns in own.items():
            yield WholeRow(dict.fromkeys(columns, 1), keep[candidate])
            if self.question.moves is None:
                yield WholeRow(dict.fromkeys(columns, -1), -keep[candidate])
        if self.question.moves is not None:
            every = range(first, first + len(self.keeps))
            yield WholeRow(dict.fromkeys(every, -1), self.question.moves - sum(keep.values()))

    def decode(self, answer: Sequence[int]) -> Arrangement:
        """The arrangement that an answer means."""
        slots = self._slots(answer)
        found = Arrangement()
        left = {c.id: n * c.pods_per_replica for c, n in self.question.wanted}
        for (candidate, takes, _), n in zip(self.keeps, answer[len(self.patterns) :], strict=True):
            for kind, each in takes.items():
                _take(slots[kind], n * each, (candidate, found.kept))
            left[candidate] -= n * sum(takes.values())
        for wanted, _ in self.question.wanted:
            _take(slots[_pod_kind(wanted)], left[wanted.id], (wanted.id, found.started))
        return found

    def _slots(self, answer: Sequence[int]) -> dict[Kind, Counter[NodeId]]:
        found: dict[Kind, Counter[NodeId]] = defaultdict(Counter)
        nodes = {key: iter(bays) for key, bays in self.classes.items()}
        for (key, pattern), uses in zip(self.patterns, answer, strict=False):
            for _ in range(uses):
                node = next(nodes[key]).node
                for kind, n in pattern.items():
                    found[kind][node] += n
        return found


def _take(
    slots: Counter[NodeId], pods: int, to: tuple[CandidateId, Counter[tuple[CandidateId, NodeId]]]
) -> None:
    """Move ``pods`` pods of a candidate into slots, in the order of the nodes."""
    candidate, places = to
    for node in list(slots):
        n = min(pods, slots[node])
        if n > 0:
            slots[node] -= n
            pods -= n
            places[candidate, node] += n
