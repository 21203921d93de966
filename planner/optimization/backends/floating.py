"""For solvers that count in floats: values are rounded, and every row is checked in exact integers before they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from math import ceil, log2
from typing import Final

from planner.clock import Clock
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.program import Key, Row

__all__ = ["graded", "power_of_two", "repaired"]

_REPAIRS: Final = 3


def repaired(ask: Ask, once: Callable[[Ask], Outcome], clock: Clock) -> Outcome:
    """Ask once, and again with tightened rows where rounding broke one."""
    if ask.program.is_hopeless:
        return Outcome(Termination.INFEASIBLE)
    end = clock.monotonic_s() + ask.seconds
    first = outcome = once(ask)
    tightened = ask
    for _ in range(_REPAIRS):
        tightened = replace(tightened, seconds=end - clock.monotonic_s())
        broken = ask.program.broken(outcome.values) if outcome.values is not None else ()
        if not broken or tightened.seconds <= 0 or ask.cancelled():
            break
        tightened = _tighten(tightened, broken, outcome.values or {})
        outcome = once(tightened)
    return _true_of_the_program(ask, first, outcome)


def graded(ask: Ask, values: Mapping[Key, int], bound: float | None) -> Outcome:
    """Values with a bound: optimal when they are near enough, failed when they are not of one program."""
    value = ask.goal.activity(values)
    if bound is not None and bound > value + 1e-6 * max(1.0, abs(value)):
        return Outcome(Termination.FAILED)
    proven = bound is not None and value - bound <= (ask.gap + 1e-9) * abs(value) + 1e-6
    return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, values, bound)


def _true_of_the_program(ask: Ask, first: Outcome, last: Outcome) -> Outcome:
    """What a tightened program proves is not true of the program itself: only the first bound is."""
    if last is first and (last.values is None or not ask.program.broken(last.values)):
        return first
    if last.values is None or ask.program.broken(last.values):
        return Outcome(Termination.FAILED)
    return graded(ask, last.values, first.bound)


def power_of_two(coefficients: Iterable[int], most: float) -> float:
    """The power of two that brings the largest coefficient down to ``most``.

    Of two, since dividing by it loses nothing: a row that holds in integers with nothing to spare holds in floats too.
    """
    largest = max((abs(value) for value in coefficients), default=0)
    return 2.0 ** ceil(log2(largest / most)) if largest > most else 1.0


def _tighten(ask: Ask, broken: tuple[Row, ...], values: Mapping[Key, int]) -> Ask:
    """The same ask with the sides of broken rows moved by what they were broken by."""
    keys = {row.key for row in broken}
    rows = tuple(_inwards(row, values) if row.key in keys else row for row in ask.program.rows)
    return replace(ask, program=replace(ask.program, rows=rows))


def _inwards(row: Row, values: Mapping[Key, int]) -> Row:
    activity = row.activity(values)
    lower = row.lower if row.lower is None or activity >= row.lower else row.lower + (row.lower - activity)
    upper = row.upper if row.upper is None or activity <= row.upper else row.upper - (activity - row.upper)
    return replace(row, lower=lower, upper=upper)
