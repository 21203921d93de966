"""Column generation as an engine: cut, price, bound, choose, and check in exact integers."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.clock import Clock, SystemClock
from planner.optimization.backends.column_generation.conclusion import Run, conclude
from planner.optimization.backends.column_generation.covering import compile_kernel
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared, prepared
from planner.optimization.backends.column_generation.recollection import (
    Recollection,
    proposals,
    remember,
    start_prices,
)
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.interruption import EndingClock
from planner.optimization.backends.memory import Memory

__all__ = ["ColumnGeneration"]

Floats = NDArray[np.float64]

_RELAXATION_GAP: Final = 1e-5
_KEPT: Final = 1e-6
"""Excess of scaled tying rows that counts as none."""

_DEAREST: Final = 20.0
"""What breaking a row by one unit costs at first, in units of the dearest column per unit of that row."""

_FIRMLY: Final = 1e4
"""How many times as much it costs once it is known that all rows can be kept."""


class ColumnGeneration:
    """An engine for programs of many services and few tying rows."""

    name = "column-generation"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        compile_kernel()

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        end = self._clock.monotonic_s() + ask.seconds
        if ask.program.impossible or any(column.lower > column.upper for column in ask.program.columns):
            return Outcome(Termination.INFEASIBLE)
        memory = ask.memory or Memory()
        known = memory.recall(Recollection)
        ready = prepared(ask.program, known.prepared if known else None)
        known = known.on(ready) if known else Recollection(ready)
        if ready.shape.impossible:
            return Outcome(Termination.INFEASIBLE)
        run = _assemble(ask, ready, known)

        clock = EndingClock(self._clock, ask.cancelled)

        def keep_going() -> bool:
            return clock.monotonic_s() < end

        relaxed = _relax(run, ready, keep_going)
        if relaxed is None:
            return Outcome(Termination.INFEASIBLE)
        outcome = conclude(run, relaxed, end, clock)
        if relaxed.answer is not None:
            level = remember(ready, run.master, relaxed.answer, relaxed.prices, outcome.values)
            memory.keep(known.plus(ask.goal.name, level))
        return outcome


def _assemble(ask: Ask, ready: Prepared, known: Recollection) -> Run:
    """Pricers, and a master that starts from what is known."""
    usage = ready.usage(ask.goal.terms)
    relaxation = ready.relaxation(usage, _penalties(usage))
    same = known.same(ask.goal.name)
    if same is not None:
        relaxation.center = relaxation.master.clip(start_prices(ready, same))
    relaxation.master.add(proposals(ready, usage, known.of(ask.goal.name), ask.hint))
    return Run(ask, ready, ready.shape, usage, tuple(ready.ties.scales.tolist()), relaxation.master, relaxation)


def _penalties(usage: Usage) -> Floats:
    """What breaking a row by one costs: twenty times the dearest column per unit of that row."""
    worst = usage.ties.worth_of(usage.by_column)
    overall = max([abs(value) for value in usage.cost.values()], default=1.0)
    return np.where(worst > 0, _DEAREST * worst, overall)


def _relax(run: Run, ready: Prepared, keep_going: Callable[[], bool]) -> Relaxed | None:
    """The relaxation; None where it is proven that no values keep all rows."""
    constant = run.ask.goal.constant

    def report(value: float, bound: float) -> None:
        run.ask.report(None, bound + constant if bound > -inf else None, columns=len(run.master.patterns))

    relaxed = run.relaxation.run(gap=_RELAXATION_GAP, keep_going=keep_going, report=report)
    if relaxed.impossible:
        return None
    if relaxed.answer is None or relaxed.answer.broken <= _KEPT:
        return relaxed
    keeping = _keeping(run, ready, keep_going)
    if keeping is None:
        return None
    # Rows can be kept, so it was the penalty that was too low: with the patterns that keep them, ask again.
    run.master.add(keeping)
    run.master.raise_penalties(_FIRMLY)
    return run.relaxation.run(gap=_RELAXATION_GAP, keep_going=keep_going, report=report)


def _keeping(run: Run, ready: Prepared, keep_going: Callable[[], bool]) -> list[Pattern] | None:
    """Patterns with which the tying rows can be kept; None: the least sum of excesses has a positive bound."""
    none = ready.usage({})
    phase_one = ready.relaxation(none, np.ones(none.rows))
    phase_one.master.add([Pattern(p.block, 0.0, p.use, p.decode) for p in run.master.patterns])
    known = len(phase_one.master.patterns)
    relaxed = phase_one.run(gap=_RELAXATION_GAP, keep_going=keep_going, report=lambda _, __: None)
    if relaxed.bound > _KEPT:
        return None
    new = phase_one.master.patterns[known:]
    costs, _ = run.usage.of_each([pattern.decode() for pattern in new])
    return [Pattern(p.block, cost, p.use, p.decode) for p, cost in zip(new, costs.tolist(), strict=True)]
