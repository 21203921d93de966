"""Every order of a small task: breadth first over its states, hence with the fewest waves.

States are counts. The walk over them shows how many waves are needed at least (or that no order exists); it is then
carried out where nodes are followed, one shortest way after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Final

from planner.rollout.judge import Judge
from planner.rollout.order import Leg, Order, travel
from planner.rollout.places import Places
from planner.rollout.task import State, Task

__all__ = ["MOST_WAYS", "every_order", "is_small"]

MOST_WAYS: Final = 60_000
"""Pairs of states, one reachable from the other by a wave, up to which all are looked at."""

MOST_STATES: Final = 1_500
MOST_TRIES: Final = 2_000
"""Waves that are tried with nodes before the walk is given up as one that counts alone allow."""

LONGER: Final = 2
"""Waves more than the fewest, within which a way that nodes allow is looked for."""


def is_small(task: Task) -> bool:
    """Whether all states can be looked at."""
    sizes = [n for n in (*task.goal.started, *task.goal.drained, *task.goal.nodes) if n]
    states, ways = prod(n + 1 for n in sizes), prod((n + 1) * (n + 2) // 2 for n in sizes)
    return states <= MOST_STATES and ways <= MOST_WAYS


def every_order(judge: Judge, places: Places) -> Order:
    """The order with the fewest waves.

    Of equally short ones the one that starts more and drains less in its first waves: make before break.

    Returns:
        Done, and proven where nodes stood in no way's way. Not done and proven: no order exists. Not done and not
        proven: counts alone would allow one.
    """
    walk = _Walk(judge)
    fewest = walk.fewest()
    if fewest is None:
        return Order((), done=False, proven=True)
    for waves in range(fewest, fewest + LONGER + 1):
        legs = walk.carried_out(places, waves)
        if legs is not None:
            return Order(legs, done=True, proven=waves == fewest)
    return Order((), done=False, proven=False)


@dataclass
class _Walk:
    judge: Judge
    _next: dict[State, tuple[State, ...]] = field(default_factory=dict)

    def fewest(self) -> int | None:
        """Waves of the shortest way; None: there is no way."""
        task = self.judge.task
        layer, seen, waves = [task.start], {task.start}, 0
        while layer:
            if task.goal in seen:
                return waves
            layer = [y for y in dict.fromkeys(y for x in layer for y in self.after(x)) if y not in seen]
            seen.update(layer)
            waves += 1
        return None

    def after(self, state: State) -> tuple[State, ...]:
        """States that one wave leads to, those first that start more and drain less."""
        if state not in self._next:
            units = self.judge.task.units

            def gpus(numbers: tuple[int, ...]) -> int:
                return sum(n * unit.candidate.gpus for n, unit in zip(numbers, units, strict=True))

            ways = (y for y in self._beyond(state) if self.judge.permits(state, y))
            key = sorted(
                ((-gpus(y.started), gpus(y.drained), y.started, y.drained, y.nodes), y) for y in ways
            )
            self._next[state] = tuple(y for _, y in key)
        return self._next[state]

    def _beyond(self, state: State) -> Iterator[State]:
        goal = self.judge.task.goal
        now = (*state.started, *state.drained, *state.nodes)
        end = (*goal.started, *goal.drained, *goal.nodes)
        u = len(goal.started)
        for n in itertools.product(*(range(a, b + 1) for a, b in zip(now, end, strict=True))):
            if n != now or not state.settled:
                yield State(True, n[:u], n[u : 2 * u], n[2 * u :])

    def carried_out(self, places: Places, waves: int) -> tuple[Leg, ...] | None:
        """A way of so many waves for which there is room on nodes; None: none was found."""
        layers = self._layers(waves)
        tries = MOST_TRIES
        stack: list[tuple[State, Places, tuple[Leg, ...]]] = [(self.judge.task.start, places, ())]
        while stack and tries:
            state, here, legs = stack.pop()
            if len(legs) == waves:
                return legs
            for y in reversed([y for y in self.after(state) if y in layers[len(legs) + 1]]):
                tries = max(0, tries - 1)
                there = travel(self.judge, here, (state, y))
                if there is not None:
                    stack.append((y, there[0], (*legs, Leg(state, y, there[1]))))
        return None

    def _layers(self, waves: int) -> list[set[State]]:
        """States after each wave from which the solution is reached in time."""
        task = self.judge.task
        reached = [{task.start}]
        for _ in range(waves):
            reached.append({y for x in reached[-1] for y in self.after(x)})
        layers = [{task.goal}]
        for states in reversed(reached[:-1]):
            layers.append({x for x in states if not layers[-1].isdisjoint(self.after(x))})
        return layers[::-1]
