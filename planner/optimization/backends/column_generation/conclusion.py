"""What follows the relaxation: one pattern per block, a search around it, and a check in exact integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from math import inf
from typing import Final

from planner.clock import Clock
from planner.optimization.backends.column_generation.blocks import Shape
from planner.optimization.backends.column_generation.branched_closing import BranchedClosing
from planner.optimization.backends.column_generation.closing import Closed, Closing
from planner.optimization.backends.column_generation.finish import NO_CHOICE, Choice, Start
from planner.optimization.backends.column_generation.master import Master, MasterAnswer
from planner.optimization.backends.column_generation.neighborhood import Neighborhoods, State
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxation, Relaxed
from planner.optimization.backends.column_generation.sifting import among_all, among_few, first_enough
from planner.optimization.backends.column_generation.surroundings import (
    Nearby,
    Surroundings,
    surroundings,
)
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.engine import Ask, Outcome, Termination, proves
from planner.optimization.backends.highs import Listener
from planner.optimization.backends.memory import Memory
from planner.optimization.program import Column, Key

__all__ = ["Run", "conclude", "given_start", "near_of"]

_LEAST_S: Final = 0.05
"""Wall time of a first choice at least, and less than which there is none where a plan is at hand, s."""

_CHOICE_SHARE: Final = 0.05
_CHOICE_OF_MANY: Final = 0.7
_MANY: Final = 200
"""Share of the time for a first choice among the patterns at hand. Of many blocks it nearly always is good enough."""

_CHOICE_OF_BRANCHED: Final = 0.5
"""The same where nothing better comes after it."""

_CLOSING: Final = 0.8
"""Share of the time for closing where a search may do more."""

_SOME: Final = 12
"""Blocks up to which a choice near the relaxation is not worth its time: all patterns are listed soon anyhow."""

_NEIGHBORHOOD: Final = 12

_LISTING_S: Final = 1e-3
"""Wall time without which it makes no sense to begin listing patterns, per block."""

_FEW: Final = 60
_GLANCE: Final = 0.1
"""Share of the time in which few blocks are repaired where any plan will do: seen whole they are better searched."""


@dataclass(frozen=True)
class Run:
    """One minimization.

    Attributes:
        ask: what was asked.
        ready: its program, prepared.
        usage: its goal.
        relaxation: pricers and the master.
        at_hand: value of the plan that the ask begins with; None where that is none of this program.
        near: what was listed near relaxations so far.
    """

    ask: Ask
    ready: Prepared
    usage: Usage
    relaxation: Relaxation
    at_hand: int | None
    near: list[tuple[Relaxed, Nearby]] = field(default_factory=list, compare=False, repr=False)

    @property
    def master(self) -> Master:
        """Patterns so far."""
        return self.relaxation.master

    @property
    def shape(self) -> Shape:
        """Blocks and what ties them."""
        return self.ready.shape

    @property
    def is_branched(self) -> bool:
        """Whether most blocks are no coverings, so that not all of their patterns can be listed."""
        return 2 * len(self.ready.branchings.blocks) > len(self.shape.blocks)

    @property
    def tells_patterns_apart(self) -> bool:
        """Whether the goal counts a column of a block."""
        return any(key in self.shape.owner for key in self.ask.goal.terms)

    def wants_near(self, relaxed: Relaxed) -> bool:
        """Whether a choice among patterns near a relaxation may be worth its time."""
        return len(self.shape.blocks) > _SOME and relaxed.bound > 0 and self.tells_patterns_apart

    @property
    def listener(self) -> Listener:
        """Passes on what a choice finds on its way."""
        ask = self.ask
        return Listener(lambda value: ask.report(round(value) + ask.goal.constant, None), ask.cancelled)

    def proves(self, value: float | None, bound: float) -> bool:
        """Whether a value is as near to a bound, which is without the constant of the goal, as was asked for."""
        return value is not None and proves(value, bound + self.ask.goal.constant, self.ask.gap)


def conclude(
    run: Run, relaxed: Relaxed, *, until: tuple[float, Clock], sighted: Choice = NO_CHOICE
) -> Outcome:
    """Choose among patterns, search around the choice, and check in exact integers.

    Args:
        run: the minimization.
        relaxed: its relaxation.
        until: when to end, on which clock.
        sighted: a choice that was found on the way, and keeps every row.
    """
    if relaxed.answer is None:
        if run.at_hand is None:
            return Outcome(Termination.TIMED_OUT)
        return Outcome(Termination.FEASIBLE, run.ask.hint, relaxed.bound + run.ask.goal.constant)
    end, clock = until
    bound, now = relaxed.bound, clock.monotonic_s()
    if sighted.found and run.proves(sighted.value + run.ask.goal.constant, bound):
        return _Plan(run, _of_choice(run, sighted)).outcome(bound)
    late = end - now < _LEAST_S and (sighted.found or run.at_hand is not None)
    first_end = now + (0.0 if late else max(_LEAST_S, min(end - now, _first_share(run) * run.ask.seconds)))
    first = _first_state(run, relaxed, sighted, lambda: first_end - clock.monotonic_s())
    plan = _Plan(run, first)
    if not run.proves(plan.value, bound):
        closed = _close(run, relaxed, plan.value, lambda: end - clock.monotonic_s())
        if closed.impossible:
            return Outcome(Termination.INFEASIBLE)
        bound = max(bound, closed.bound)
        if closed.values is not None:
            plan = _Plan(run, _state_of(run, closed.values))
        run.ask.report(plan.value, bound + run.ask.goal.constant)
    if not run.proves(plan.value, bound):
        plan = _Plan(run, _searched(run, relaxed.answer, plan.state, bound, (end, clock)))
    return plan.outcome(bound)


class _Plan:
    """A state, the values of all columns, and their goal: None where they break a row."""

    def __init__(self, run: Run, state: State) -> None:
        self._run = run
        self.state = state
        self._values = {column.key: column.lower for column in run.shape.fixed} | state.values()
        self.value = run.ask.goal.activity(self._values) if run.ready.keeps(self._values) else None

    def outcome(self, bound: float) -> Outcome:
        """What is answered, with a bound that is without the constant of the goal."""
        run, whole = self._run, bound + self._run.ask.goal.constant
        if self.value is None:
            return Outcome(Termination.TIMED_OUT, bound=whole)
        run.ask.report(self.value, whole)
        proven = run.proves(self.value, bound)
        return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, self._values, whole)


def _searched(
    run: Run, answer: MasterAnswer, state: State, bound: float, until: tuple[float, Clock]
) -> State:
    """The state after a search around it."""
    end, clock = until
    ask = run.ask
    if not ask.goal.terms and len(run.shape.blocks) <= _FEW:
        end = min(end, clock.monotonic_s() + _GLANCE * ask.seconds)
    if clock.monotonic_s() >= end:
        return state  # the search alone takes a while to begin
    search = Neighborhoods(run.shape, ask.goal, run.ready.ties.scales.tolist(), state)

    def good_enough() -> bool:
        if search.broken() > 0:
            return False
        ask.report(search.value(), None)
        return run.proves(search.value(), bound)

    search.run(
        _undecided(run.master, answer),
        size=_NEIGHBORHOOD,
        gap=ask.gap / 4,
        seed=ask.seed,
        seconds_left=lambda: end - clock.monotonic_s(),
        good_enough=good_enough,
    )
    return search.state


def _first_share(run: Run) -> float:
    if len(run.shape.blocks) > _MANY:
        return _CHOICE_OF_MANY
    return _CHOICE_OF_BRANCHED if run.is_branched else _CHOICE_SHARE


def _close(run: Run, relaxed: Relaxed, value: int | None, seconds_left: Callable[[], float]) -> Closed:
    """Choose among all patterns that a better plan could be made of, where blocks allow to list them."""
    ask = run.ask
    if not ask.goal.terms or seconds_left() < _LISTING_S * len(run.shape.blocks):
        return Closed(None, -inf)
    at_hand = inf if value is None else value - ask.goal.constant
    branched = BranchedClosing(run.ready, run.usage, run.master, run.relaxation.told, run.ask.cancelled)
    if branched.useful:

        def report(values: Mapping[Key, int] | None, bound: float) -> None:
            ask.report(None if values is None else ask.goal.activity(values), bound + ask.goal.constant)

        return branched.close(
            relaxed,
            at_hand,
            gap=ask.gap,
            constant=ask.goal.constant,
            seconds_left=lambda: _CLOSING * seconds_left(),
            report=report,
        )
    return Closing(run.ready, run.usage, run.master, listener=run.listener).close(
        relaxed,
        at_hand,
        gap=ask.gap,
        constant=ask.goal.constant,
        seconds_left=seconds_left,
    )


def _state_of(run: Run, values: Mapping[Key, int]) -> State:
    return State(
        [_of_columns(block.columns, values) for block in run.shape.blocks],
        _of_columns(run.shape.master, values),
    )


def _of_columns(columns: Iterable[Column], values: Mapping[Key, int]) -> dict[Key, int]:
    return {column.key: values[column.key] for column in columns}


def _first_state(run: Run, relaxed: Relaxed, sighted: Choice, seconds_left: Callable[[], float]) -> State:
    """The best choice among all patterns, or the plan at hand; without both, the heaviest pattern of each block."""
    ask = run.ask
    choice = _first_choice(run, relaxed, sighted, seconds_left)
    if run.at_hand is not None and ask.hint is not None and run.at_hand < choice.value + ask.goal.constant:
        return _state_of(run, ask.hint)
    return _of_choice(run, choice, relaxed.answer)


def _of_choice(run: Run, choice: Choice, answer: MasterAnswer | None = None) -> State:
    """The values that a choice stands for; where there is none, the heaviest patterns of a linear program."""
    if answer is None or choice.found:
        blocks: dict[int, Mapping[Key, int]] = {p.block: p.decode() for p in choice.patterns}
        blocks |= _whole_blocks(run, choice)
        columns = choice.columns
    else:
        blocks = _heaviest(run.master, answer)
        columns = tuple(column.lower for column in run.shape.master)
    return State(
        [blocks[number] for number in range(len(run.shape.blocks))],
        {column.key: value for column, value in zip(run.shape.master, columns, strict=True)},
    )


def _whole_blocks(run: Run, choice: Choice) -> dict[int, Mapping[Key, int]]:
    """Values of the blocks that stood whole in a choice."""
    numbers = {run.shape.owner[key] for key in choice.whole}
    return {number: _of_columns(run.shape.blocks[number].columns, choice.whole) for number in numbers}


def _first_choice(run: Run, relaxed: Relaxed, sighted: Choice, seconds_left: Callable[[], float]) -> Choice:
    """A choice among patterns at hand; of many blocks, among those near the relaxation too."""
    answer = relaxed.answer
    if answer is None or seconds_left() <= 0:
        return sighted
    ask, gap, start = run.ask, run.ask.gap / 2, given_start(run, sighted)
    heard = run.listener
    few = among_few(run.master, answer, gap=gap, seconds_left=seconds_left, start=start, listener=heard)
    every = among_all(run.master, gap=gap, seconds_left=seconds_left, start=start, listener=heard)
    near = _nearby(run, relaxed, seconds_left)
    many = len(run.shape.blocks) > _MANY
    found = first_enough(
        chain([sighted], few, near if many or run.is_branched else chain(every, near)),
        lambda value: run.proves(value + ask.goal.constant, relaxed.bound),
    )
    return found if found.found or not (many or run.is_branched) else first_enough(every, lambda _: True)


def given_start(run: Run, sighted: Choice) -> Start | None:
    """The plan at hand, or what was found on the way where that is better, as a choice to begin with."""
    hint, at_hand = run.ask.hint, run.at_hand
    if sighted.found and (at_hand is None or sighted.value + run.ask.goal.constant < at_hand):
        return Start(sighted.patterns, sighted.columns)
    if at_hand is None or hint is None:
        return None
    values = [_of_columns(block.columns, hint) for block in run.shape.blocks]
    costs, uses = run.usage.of_each(values)
    patterns = [
        Pattern(number, cost, use, partial(_given, of_block))
        for number, (of_block, cost, use) in enumerate(zip(values, costs.tolist(), uses, strict=True))
    ]
    return Start(patterns, [hint[column.key] for column in run.shape.master])


def _given(values: Mapping[Key, int]) -> Mapping[Key, int]:
    return values


def _nearby(run: Run, relaxed: Relaxed, seconds_left: Callable[[], float]) -> Iterator[Choice]:
    if not run.wants_near(relaxed):
        return
    near = near_of(run, relaxed)
    constant = abs(run.ask.goal.constant)
    within = run.ask.gap * max(0.0, 1.0 - constant / max(abs(relaxed.bound), 1.0))
    yield from near.choices(gap=within, seconds_left=seconds_left, listener=run.listener)


def near_of(run: Run, relaxed: Relaxed) -> Nearby:
    """What is near a relaxation, listed once."""
    for known, near in run.near:
        if known is relaxed:
            return near
    memory = run.ask.memory or Memory()
    around = surroundings(run.ready, memory.recall(Surroundings))
    memory.keep(around)
    run.near.append((relaxed, Nearby(around, run.ready, run.usage, run.master, relaxed, gap=run.ask.gap)))
    return run.near[-1][1]


def _heaviest(master: Master, answer: MasterAnswer) -> dict[int, Mapping[Key, int]]:
    """The pattern of each block of which the linear program takes most; those made since weigh nothing."""
    best: dict[int, tuple[float, Pattern]] = {}
    weights = chain(answer.weights.tolist(), repeat(0.0))
    for pattern, weight in zip(master.patterns, weights, strict=False):
        if pattern.block not in best or weight > best[pattern.block][0]:
            best[pattern.block] = (weight, pattern)
    return {block: pattern.decode() for block, (_, pattern) in best.items()}


def _undecided(master: Master, answer: MasterAnswer) -> list[int]:
    """Blocks of which the linear program takes more than one pattern."""
    split = {
        pattern.block
        for pattern, weight in zip(master.patterns, answer.weights, strict=False)
        if 1e-6 < weight < 1 - 1e-6  # noqa: PLR2004 - neither none nor all of it
    }
    return sorted(split)
