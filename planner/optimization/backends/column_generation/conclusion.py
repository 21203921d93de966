"""What follows the relaxation: one pattern per block, a search around it, and a check in exact integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from planner.clock import Clock
from planner.optimization.backends.column_generation.blocks import Shape
from planner.optimization.backends.column_generation.closing import Closed, Closing
from planner.optimization.backends.column_generation.finish import Choice
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.neighborhood import Neighborhoods, State
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxation, Relaxed
from planner.optimization.backends.column_generation.sifting import sifted
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.program import Key

__all__ = ["Run", "conclude"]

_CHOICE_SHARE: Final = 0.05
_CHOICE_OF_MANY: Final = 0.3
_MANY: Final = 200
"""Share of the time for a first choice among the patterns at hand. Of many blocks it nearly always is good enough."""

_NEIGHBORHOOD: Final = 12

_LISTING_S: Final = 1e-3
"""Wall time without which it makes no sense to begin listing patterns, per block."""

_FEW: Final = 60
_GLANCE: Final = 0.1
"""Share of the time in which few blocks are repaired where any plan will do: seen whole they are better searched."""


@dataclass
class Run:
    """One minimization."""

    ask: Ask
    ready: Prepared
    shape: Shape
    usage: Usage
    scales: tuple[float, ...]
    master: Master
    relaxation: Relaxation


def conclude(run: Run, relaxed: Relaxed, end: float, clock: Clock) -> Outcome:
    """Choose among patterns, search around the choice, and check in exact integers; until ``end`` on the clock."""
    ask = run.ask
    bound = relaxed.bound + ask.goal.constant
    if relaxed.answer is None:
        return Outcome(Termination.TIMED_OUT)
    left = end - clock.monotonic_s()
    first_end = clock.monotonic_s() + max(0.05, min(left, _first_share(run) * ask.seconds))
    state = _first_state(run, relaxed, lambda: first_end - clock.monotonic_s())
    fixed = {column.key: column.lower for column in run.shape.fixed}
    values: Mapping[Key, int] = fixed | state.values()
    if _proven(ask, values, bound) and run.ready.keeps(values):
        return Outcome(Termination.OPTIMAL, values, bound)
    closed = _close(run, relaxed, values, lambda: end - clock.monotonic_s())
    if closed.impossible:
        return Outcome(Termination.INFEASIBLE)
    bound = max(bound, closed.bound + ask.goal.constant)
    if closed.values is not None:
        values, state = closed.values, _state_of(run, closed.values)
    ask.report(ask.goal.activity(values) if run.ready.keeps(values) else None, bound)
    if _proven(ask, values, bound) and run.ready.keeps(values):
        return Outcome(Termination.OPTIMAL, values, bound)
    search = Neighborhoods(run.shape, ask.goal, run.scales, state)
    if not ask.goal.terms and len(run.shape.blocks) <= _FEW:
        end = min(end, clock.monotonic_s() + _GLANCE * ask.seconds)

    def good_enough() -> bool:
        value = search.value()
        return search.broken() == 0 and value - bound <= ask.gap * abs(value)

    search.run(
        _undecided(run, relaxed),
        size=_NEIGHBORHOOD,
        gap=ask.gap / 4,
        seed=ask.seed,
        seconds_left=lambda: end - clock.monotonic_s(),
        good_enough=good_enough,
    )
    values = fixed | search.state.values()
    if not run.ready.keeps(values):
        return Outcome(Termination.TIMED_OUT, bound=bound)
    ask.report(ask.goal.activity(values), bound)
    proven = _proven(ask, values, bound)
    return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, values, bound)


def _first_share(run: Run) -> float:
    return _CHOICE_OF_MANY if len(run.shape.blocks) > _MANY else _CHOICE_SHARE


def _close(
    run: Run, relaxed: Relaxed, values: Mapping[Key, int], seconds_left: Callable[[], float]
) -> Closed:
    """Choose among all patterns that a better plan could be made of, where blocks allow to list them."""
    ask = run.ask
    if not ask.goal.terms or seconds_left() < _LISTING_S * len(run.shape.blocks):
        return Closed(None, -inf)
    value = ask.goal.activity(values) - ask.goal.constant if run.ready.keeps(values) else inf
    return Closing(run.ready, run.usage, run.master).close(
        relaxed, value, gap=ask.gap, seconds_left=seconds_left, kept=run.ready.keeps
    )


def _state_of(run: Run, values: Mapping[Key, int]) -> State:
    return State(
        [{column.key: values[column.key] for column in block.columns} for block in run.shape.blocks],
        {column.key: values[column.key] for column in run.shape.master},
    )


def _proven(ask: Ask, values: Mapping[Key, int], bound: float) -> bool:
    value = ask.goal.activity(values)
    return value - bound <= ask.gap * abs(value)


def _first_state(run: Run, relaxed: Relaxed, seconds_left: Callable[[], float]) -> State:
    """The best choice among all patterns, or the plan at hand; without both, the heaviest pattern of each block."""
    master, hint = run.master, run.ask.hint
    constant, bound = run.ask.goal.constant, relaxed.bound
    choice = Choice(inf, (), (), -inf, {})
    if relaxed.answer is not None:
        choice = sifted(
            master,
            relaxed.answer,
            gap=run.ask.gap / 2,
            seconds_left=seconds_left,
            enough=lambda value: value - bound <= run.ask.gap * abs(value + constant),
        )
    if hint is not None and _is_better(run, hint, choice):
        return _state_of(run, hint)
    if choice.found:
        blocks: dict[int, Mapping[Key, int]] = {p.block: p.decode() for p in choice.patterns}
        columns = choice.columns
    else:
        blocks = _heaviest(run, relaxed)
        columns = tuple(column.lower for column in run.shape.master)
    return State(
        [blocks[number] for number in range(len(run.shape.blocks))],
        {column.key: value for column, value in zip(run.shape.master, columns, strict=True)},
    )


def _is_better(run: Run, hint: Mapping[Key, int], choice: Choice) -> bool:
    """Whether a hint is a whole plan that keeps every row and beats the choice, if there is one."""
    program, goal = run.ask.program, run.ask.goal
    if any(column.key not in hint for column in program.columns):
        return False
    if choice.found and goal.activity(hint) >= choice.value + goal.constant:
        return False
    inside = all(column.lower <= hint[column.key] <= column.upper for column in program.columns)
    return inside and run.ready.keeps(hint)


def _heaviest(run: Run, relaxed: Relaxed) -> dict[int, Mapping[Key, int]]:
    best: dict[int, tuple[float, Pattern]] = {}
    weights = relaxed.answer.weights if relaxed.answer is not None else np.array([])
    for number, pattern in enumerate(run.master.patterns):
        weight = float(weights[number]) if number < len(weights) else 0.0
        if pattern.block not in best or weight > best[pattern.block][0]:
            best[pattern.block] = (weight, pattern)
    return {block: pattern.decode() for block, (_, pattern) in best.items()}


def _undecided(run: Run, relaxed: Relaxed) -> list[int]:
    """Blocks of which the linear program takes more than one pattern."""
    weights = relaxed.answer.weights if relaxed.answer is not None else np.array([])
    split = {
        pattern.block
        for pattern, weight in zip(run.master.patterns, weights, strict=False)
        if 1e-6 < weight < 1 - 1e-6  # noqa: PLR2004 - neither none nor all of it
    }
    return sorted(split)
