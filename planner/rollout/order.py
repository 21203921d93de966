"""An order: the states between waves, and where replicas start and drain in each wave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.ids import CandidateId
from planner.rollout.judge import Judge
from planner.rollout.places import Places, Trip
from planner.rollout.task import State, Task

__all__ = ["Leg", "Order", "travel"]


@dataclass(frozen=True, slots=True)
class Leg:
    """One wave: the states before and after it, and its places."""

    before: State
    after: State
    trip: Trip


@dataclass(frozen=True, slots=True)
class Order:
    """Waves one after the other.

    Attributes:
        legs: the waves.
        done: they end at the solution.
        proven: done: no order has fewer waves. Not done: there is no order at all.
    """

    legs: tuple[Leg, ...]
    done: bool
    proven: bool

    def last(self, task: Task) -> State:
        """Where the waves end."""
        return self.legs[-1].after if self.legs else task.start


def travel(
    judge: Judge, places: Places, way: tuple[State, State], *, first: Sequence[int] = ()
) -> tuple[Places, Trip] | None:
    """Carry out one wave where nodes are followed; None: its starts find no room around what runs.

    What is awaited has its place before anything starts, then the units of ``first``.
    """
    (before, after), units = way, judge.task.units
    awaited = [i for i, unit in enumerate(units) if unit.awaited and not before.settled]
    starts: dict[CandidateId, int] = {}
    for i in dict.fromkeys((*awaited, *first, *range(len(units)))):
        unit = units[i]
        come = after.started[i] - before.started[i] + (0 if before.settled else unit.awaited)
        starts[unit.candidate.id] = come
    drains = {unit.candidate.id: after.drained[i] - before.drained[i] for i, unit in enumerate(units)}
    return places.advance(starts, drains, judge.task.nodes_added(before.nodes))
