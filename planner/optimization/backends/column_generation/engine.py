"""Column generation as an engine: cut, price, bound, choose, and check in exact integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Final

import numpy as np

from planner.clock import Clock, SystemClock
from planner.optimization.backends.column_generation.blocks import Shape, shape_of
from planner.optimization.backends.column_generation.conclusion import Run, conclude
from planner.optimization.backends.column_generation.covering import compile_kernel
from planner.optimization.backends.column_generation.items import covering_block
from planner.optimization.backends.column_generation.master import Master, MasterColumn, TyingRow
from planner.optimization.backends.column_generation.patterns import Pattern, Usage
from planner.optimization.backends.column_generation.pricing import CoveringPricer, ProgramPricer
from planner.optimization.backends.column_generation.relaxation import Relaxation
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.program import Goal, Key, Row

__all__ = ["ColumnGeneration"]

_RELAXATION_GAP: Final = 1e-5
_SCALE: Final = 1e3
_KEPT: Final = 1e-6
"""Excess of scaled tying rows that counts as none."""


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
        run = _prepare(ask)
        if run.shape.impossible:
            return Outcome(Termination.INFEASIBLE)

        def keep_going() -> bool:
            return self._clock.monotonic_s() < end

        def report(value: float, bound: float) -> None:
            ask.report(None, bound + ask.goal.constant if bound > -inf else None)

        relaxed = run.relaxation.run(gap=_RELAXATION_GAP, keep_going=keep_going, report=report)
        if relaxed.impossible:
            return Outcome(Termination.INFEASIBLE)
        if relaxed.answer is not None and relaxed.answer.broken > _KEPT and self._unkeepable(run, keep_going):
            return Outcome(Termination.INFEASIBLE)
        return conclude(run, relaxed, end, self._clock)

    def _unkeepable(self, run: Run, keep_going: Callable[[], bool]) -> bool:
        """Whether it is proven that tying rows must be broken: the least sum of excesses has a positive bound."""
        goal = Goal("excess", {})
        free = replace(run.ask, goal=goal)
        phase_one = _assemble(free, run.shape, penalty=1.0)
        phase_one.master.add([Pattern(p.block, 0.0, p.use, p.decode) for p in run.master.patterns])
        relaxed = phase_one.relaxation.run(
            gap=_RELAXATION_GAP, keep_going=keep_going, report=lambda _, __: None
        )
        return relaxed.bound > _KEPT


def _prepare(ask: Ask) -> Run:
    return _assemble(ask, shape_of(ask.program))


def _assemble(ask: Ask, shape: Shape, *, penalty: float | None = None) -> Run:
    """Pricers and master for a goal; a ``penalty`` of 1 per unit of every row turns the goal into keeping the rows."""
    scales = tuple(_scale(row) for row in shape.tying)
    usage = _usage(ask, shape, scales)
    covering, programs = [], []
    for number, block in enumerate(shape.blocks):
        simple = covering_block(block)
        if simple is None:
            programs.append(ProgramPricer(number, block, usage))
        else:
            covering.append((number, simple))
    rows = [
        TyingRow(
            -inf if row.lower is None else row.lower / scale, inf if row.upper is None else row.upper / scale
        )
        for row, scale in zip(shape.tying, scales, strict=True)
    ]
    columns = [
        MasterColumn(c.lower, c.upper, usage.cost.get(c.key, 0.0), usage.use.get(c.key, ()))
        for c in shape.master
    ]
    penalties = _penalties(usage, len(rows)) if penalty is None else np.full(len(rows), penalty)
    master = Master(rows, columns, len(shape.blocks), penalties)
    relaxation = Relaxation(master, CoveringPricer(covering, usage), programs)
    return Run(ask, shape, usage, scales, master, relaxation)


def _scale(row: Row) -> float:
    largest = max(abs(value) for value in row.terms.values())
    return max(1.0, largest / _SCALE)


def _usage(ask: Ask, shape: Shape, scales: tuple[float, ...]) -> Usage:
    use: dict[Key, list[tuple[int, float]]] = {}
    for number, (row, scale) in enumerate(zip(shape.tying, scales, strict=True)):
        for key, coefficient in row.terms.items():
            use.setdefault(key, []).append((number, coefficient / scale))
    cost = {key: float(value) for key, value in ask.goal.terms.items()}
    return Usage(len(scales), cost, {key: tuple(pairs) for key, pairs in use.items()})


def _penalties(usage: Usage, rows: int) -> np.ndarray:
    """What breaking a row by one costs: twenty times the dearest column per unit of that row."""
    worst = np.zeros(rows)
    for key, pairs in usage.use.items():
        cost = abs(usage.cost.get(key, 0.0))
        for row, coefficient in pairs:
            worst[row] = max(worst[row], cost / abs(coefficient))
    overall = max([abs(value) for value in usage.cost.values()], default=1.0)
    return np.where(worst > 0, 20 * worst, overall)
