"""Waves filled one after the other, for tasks of any size: drain what may go, then start what fits, until all is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from models.ids import PoolId, ServiceId
from planner.rollout.judge import Judge
from planner.rollout.ledger import Ledger, ledger_of
from planner.rollout.order import Leg, Order, travel
from planner.rollout.places import Places
from planner.rollout.serving import Group
from planner.rollout.task import State

__all__ = ["best_filled"]

Rank = Callable[[float, float], tuple[float, ...]]
"""A place in the queue from the accelerators a service still frees and those it still starts; smallest first."""

RANKS: Final[tuple[Rank, ...]] = (
    lambda freed, starts: (not freed, -freed / max(starts, 1.0)),
    lambda freed, starts: (not freed, starts),
    lambda freed, starts: (not freed, -starts),
)

SINGLE_TRIES: Final = 64
"""Units that are tried alone when no wave could be filled."""


def best_filled(judge: Judge, places: Places, *, quick: bool = False) -> Order:
    """The shortest order of those that a few queues give; proven only where no shorter one can be.

    One wave is the fewest where anything changes at all, and two are where all at once is forbidden. A quick answer is
    that of the first queue.
    """
    best: Order | None = None
    for rank in RANKS[:1] if quick else RANKS:
        order = _fill_all(judge, places, rank)
        if order.proven:
            return order
        if best is None or (order.done, -len(order.legs)) > (best.done, -len(best.legs)):
            best = order
    return best or Order((), done=False, proven=False)


def _fill_all(judge: Judge, places: Places, rank: Rank) -> Order:
    task, state = judge.task, judge.task.start
    legs: list[Leg] = []
    while state != task.goal:
        filled = _Wave(judge, places, state, rank).fill()
        if filled is None:
            return Order(tuple(legs), done=False, proven=False)
        places, leg = filled
        legs.append(leg)
        state = leg.after
    at_once = 1 if judge.permits(task.start, task.goal) else 2
    return Order(tuple(legs), done=True, proven=len(legs) <= at_once)


Starts = list[tuple[int, int]]
"""Unit and how many of it, in the order of the queue."""


@dataclass(frozen=True)
class _Wave:
    judge: Judge
    places: Places
    state: State
    rank: Rank

    def fill(self) -> tuple[Places, Leg] | None:
        """The fullest wave that is found and permitted; None: none is."""
        drained, nodes = self._drains(), self._nodes()
        starts = self._starts(nodes)
        for after in self._attempts(starts, drained, nodes):
            if after != self.state and self.judge.permits(self.state, after):
                there = travel(self.judge, self.places, (self.state, after), first=self._queue)
                if there is not None:
                    return there[0], Leg(self.state, after, there[1])
        return None

    def _attempts(self, starts: Starts, drained: tuple[int, ...], nodes: tuple[int, ...]) -> Iterator[State]:
        """Ever fewer starts, then without drains or nodes, then single replicas."""
        lengths = [len(starts) >> i for i in range(len(starts).bit_length())]
        for now_drained, now_nodes in dict.fromkeys(
            ((drained, nodes), (drained, self.state.nodes), (self.state.drained, self.state.nodes))
        ):
            for length in (*lengths, 0):
                yield State(True, self._with(starts[:length]), now_drained, now_nodes)
        for unit in self._queue[:SINGLE_TRIES]:
            yield State(True, self._with([(unit, 1)]), self.state.drained, self.state.nodes)

    def _with(self, starts: Starts) -> tuple[int, ...]:
        started = list(self.state.started)
        for unit, n in starts:
            started[unit] += n
        return tuple(started)

    @cached_property
    def _queue(self) -> list[int]:
        """Units with replicas to start, in the order of the rank of their services."""
        freed, starts = Counter[ServiceId](), Counter[ServiceId]()
        for i, unit in enumerate(self.judge.task.units):
            service, gpus = unit.candidate.service, unit.candidate.gpus
            freed[service] += (unit.drains - self.state.drained[i]) * gpus
            starts[service] += (unit.starts - self.state.started[i]) * gpus
        units = self.judge.task.units
        waiting = [i for i, unit in enumerate(units) if unit.starts > self.state.started[i]]
        return sorted(
            waiting,
            key=lambda i: (
                self.rank(freed[units[i].candidate.service], starts[units[i].candidate.service]),
                units[i].candidate.id,
            ),
        )

    def _nodes(self) -> tuple[int, ...]:
        """As many of the nodes to come as budgets allow."""
        task, state = self.judge.task, self.state
        nodes = list(state.nodes)
        ledger = self._ledger()
        for i, (pool, wanted) in enumerate(task.growing):
            more = int(min(wanted - nodes[i], ledger.most_nodes(pool)))
            ledger.take_nodes(pool, more)
            nodes[i] += more
        return tuple(nodes)

    def _ledger(self) -> Ledger:
        task, state = self.judge.task, self.state
        return ledger_of(
            task,
            self.judge.limits,
            held=task.held(state.started, state.drained),
            nodes=task.nodes_added(state.nodes),
        )

    def _starts(self, nodes: tuple[int, ...]) -> Starts:
        task, ledger = self.judge.task, self._ledger()
        for (pool, _), now, then in zip(task.growing, self.state.nodes, nodes, strict=True):
            ledger.take_nodes(pool, then - now)
        room = self.places.room(task.nodes_added(self.state.nodes))
        if not self.state.settled:
            for unit in task.units:
                room.seat(unit.candidate.id, unit.awaited)
        found = []
        for i in self._queue:
            unit, left = task.units[i], task.units[i].starts - self.state.started[i]
            n = int(min(left, ledger.most(unit.candidate.id), self._step(unit.candidate.gpus, left)))
            if unit.candidate.pool in self.places.followed:
                n = len(room.seat(unit.candidate.id, n))
            if n:
                ledger.take(unit.candidate.id, n)
                found.append((i, n))
        return found

    def _step(self, gpus: int, left: int) -> int:
        most = self.judge.limits.max_step_gpus
        return left if most is None else most // gpus

    def _drains(self) -> tuple[int, ...]:
        """Drains that the services' minimums allow, those first where starts wait for room."""
        task = self.judge.task
        drained = list(self.state.drained)
        waiting = Counter[PoolId]()
        for i in self._queue:
            unit = task.units[i]
            waiting[unit.candidate.pool] += (unit.starts - self.state.started[i]) * unit.candidate.gpus
        for group in self.judge.groups:
            members = [i for i in group.units if task.units[i].drains > drained[i]]
            if members and not self._drain(group, drained, {i: self._most_drains(i) for i in members}):
                for i in sorted(members, key=lambda i: (-waiting[task.units[i].candidate.pool], i)):
                    self._drain_some(group, drained, i)
        return tuple(drained)

    def _most_drains(self, i: int) -> int:
        unit = self.judge.task.units[i]
        left = unit.drains - self.state.drained[i]
        return min(left, self._step(unit.candidate.gpus, left))

    @cached_property
    def _serving(self) -> tuple[int, ...]:
        """Ready replicas by unit before anything of this wave drains."""
        return self.judge.task.serving(self.state.started, self.state.drained, settled=self.state.settled)

    def _drain(self, group: Group, drained: list[int], more: dict[int, int]) -> bool:
        """Drain so many of these units if the group allows it."""
        serving = list(self._serving)
        for i in group.units:
            serving[i] += self.state.drained[i] - drained[i] - more.get(i, 0)
        if not self.judge.group_serves(group, tuple(serving)):
            return False
        for i, n in more.items():
            drained[i] += n
        return True

    def _drain_some(self, group: Group, drained: list[int], i: int) -> None:
        """As many of one unit as the group allows, found by halving."""
        low, high = 0, self._most_drains(i)
        start = drained[i]
        while low < high:
            middle = (low + high + 1) // 2
            trial = list(drained)
            if self._drain(group, trial, {i: middle}):
                low = middle
            else:
                high = middle - 1
        drained[i] = start + low
