"""Column generation as an engine: cut, price, bound, choose, and check in exact integers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.clock import Clock, SolvingClock
from planner.collecting import collection_paused
from planner.optimization.backends.column_generation.capping import capped
from planner.optimization.backends.column_generation.compiling import compile_all
from planner.optimization.backends.column_generation.conclusion import Run, conclude
from planner.optimization.backends.column_generation.excess import (
    KEPT_EXCESS,
    Excess,
    shows_excess,
    until_decided,
)
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared, prepared
from planner.optimization.backends.column_generation.recollection import (
    Recollection,
    proposals,
    remember,
)
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.column_generation.sighting import Sight
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.interruption import EndingClock
from planner.optimization.backends.memory import Memory
from planner.optimization.program import Key

__all__ = ["ColumnGeneration"]

Floats = NDArray[np.float64]

_RELAXATION_GAP: Final = 1e-5
_OF_GAP: Final = 0.05
"""Share of the gap asked for that the linear program may leave to its bound, where that is more."""

_DEAREST: Final = 20.0
"""What breaking a row by one unit costs at first, in units of the dearest column per unit of that row."""

_FOR_A_PLAN: Final = 0.4
"""Share of the time that is kept for choosing a plan, where there is none yet."""

_FIRMLY: Final = 1e4
"""How many times as much it costs once it is known that all rows can be kept."""


class ColumnGeneration:
    """An engine for programs of many services and few tying rows."""

    name = "column-generation"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SolvingClock()
        compile_all()

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        with collection_paused():  # patterns are many, small, and stay
            return self._minimize(ask)

    def _minimize(self, ask: Ask) -> Outcome:
        end = self._clock.monotonic_s() + ask.seconds
        if ask.program.is_hopeless:
            return Outcome(Termination.INFEASIBLE)
        memory = ask.memory or Memory()
        known = memory.recall(Recollection)
        ready = prepared(ask.program, known.prepared if known else None)
        known = known.on(ready) if known else Recollection(ready)
        if ready.shape.impossible:
            return Outcome(Termination.INFEASIBLE)
        run = _assemble(ask, ready, known)
        clock = EndingClock(self._clock, ask.cancelled)
        at_hand = run.at_hand if ask.goal.terms else None
        sight = Sight(run, at_hand)
        # A bound that is a little lower is of more use than one without a plan.
        kept = 0.0 if at_hand is not None else _FOR_A_PLAN * (end - self._clock.monotonic_s())

        def keep_going() -> bool:
            return clock.monotonic_s() < end - kept

        relaxed = _relax(run, sight, keep_going)
        if relaxed is None:
            return Outcome(Termination.INFEASIBLE)
        sight.look_closer(relaxed, end - clock.monotonic_s())
        if run.proves(at_hand, relaxed.bound):
            outcome = Outcome(Termination.OPTIMAL, ask.hint, relaxed.bound + ask.goal.constant)
        else:
            outcome = conclude(run, relaxed, until=(end, clock), sighted=sight.best)
        level = known.same(ask.goal.name)
        if relaxed.answer is not None:
            level = remember(ready, run.master, relaxed.answer, relaxed.prices, outcome.values)
        if level is not None:
            memory.keep(known.plus(ask.goal.name, level))
        return outcome

    def excludes(self, ask: Ask) -> bool:
        """Whether the relaxation proves that no plan keeps all rows; False says nothing."""
        end = self._clock.monotonic_s() + ask.seconds
        if ask.program.is_hopeless:
            return True
        memory = ask.memory or Memory()
        known = memory.recall(Recollection)
        ready = prepared(ask.program, known.prepared if known else None)
        if ready.shape.impossible:
            return True
        clock = EndingClock(self._clock, ask.cancelled)
        found, phase_one = _excess(ready, memory.recall(Excess), [], lambda: clock.monotonic_s() < end)
        memory.keep(found)
        return phase_one is None

    def excluded_caps(self, ask: Ask, sums: Sequence[Mapping[Key, int]], caps: Sequence[int]) -> int | None:
        """How many of the caps, which rise, the relaxation excludes; None where it cannot tell."""
        with collection_paused():
            return self._excluded_caps(ask, sums, caps)

    def _excluded_caps(self, ask: Ask, sums: Sequence[Mapping[Key, int]], caps: Sequence[int]) -> int | None:
        end = self._clock.monotonic_s() + ask.seconds
        memory = ask.memory or Memory()
        known = memory.recall(Recollection)
        ready = prepared(ask.program, known.prepared if known else None)
        if ready.shape.impossible:
            return None
        if known is None:
            memory.keep(Recollection(ready))
        question = capped(ready, sums)
        if question is None:
            return None
        clock = EndingClock(self._clock, ask.cancelled)
        start = _excluding_prices(ready, memory.recall(Excess), known)
        count, prices = question.least(caps, start, keep_going=lambda: clock.monotonic_s() < end)
        memory.keep(Excess(ready.prices_by_row(prices)))
        return count


def _excluding_prices(ready: Prepared, before: Excess | None, known: Recollection | None) -> Floats:
    """Prices at which tying rows may turn out to be short: those that showed it before, or those of the last goal."""
    if before is not None:
        return ready.scaled_prices(before.prices)
    levels = () if known is None else known.levels.values()
    priced = [level.prices for level in levels if any(level.prices.values())]
    return ready.scaled_prices(priced[-1] if priced else {})


def _excess(
    ready: Prepared, before: Excess | None, patterns: Sequence[Pattern], keep_going: Callable[[], bool]
) -> tuple[Excess, Master | None]:
    """The least sum of excesses of tying rows: None where it has a positive bound, so that some row must be broken."""
    phase_one = ready.relaxation(ready.usage({}), np.ones(len(ready.shape.tying)))
    if before is not None:
        phase_one.center = phase_one.master.clip(ready.scaled_prices(before.prices))
    phase_one.master.add(patterns)
    relaxed = until_decided(phase_one, keep_going)
    return Excess(ready.prices_by_row(relaxed.prices)), None if shows_excess(relaxed) else phase_one.master


def _assemble(ask: Ask, ready: Prepared, known: Recollection) -> Run:
    """Pricers, and a master that starts from what is known."""
    usage = ready.usage(ask.goal.terms)
    relaxation = ready.relaxation(usage, _penalties(ready, usage))
    same = known.same(ask.goal.name)
    if same is not None:
        relaxation.center = relaxation.master.clip(ready.scaled_prices(same.prices))
    relaxation.master.add(proposals(ready, usage, known.of(ask.goal.name), ask.hint))
    return Run(ask, ready, usage, relaxation, _at_hand(ask, ready))


def _penalties(ready: Prepared, usage: Usage) -> Floats:
    """What breaking a row by one costs: twenty times the dearest column per unit of that row.

    Columns that use no row, such as unserved shares, weigh with their whole range: one more replica may save it all.
    """
    cost, ties = np.abs(usage.by_column), ready.ties
    worst = ties.worth_of(usage.by_column)
    beside = float((cost * ready.ranges)[ties.untied].max(initial=0.0))
    overall = float(cost.max(initial=0.0)) or 1.0
    return np.maximum(np.where(worst > 0, _DEAREST * worst, overall), beside)


def _at_hand(ask: Ask, ready: Prepared) -> int | None:
    """Value of the plan that is given, where it is one of this program."""
    hint = ask.hint
    if hint is None or not hint.keys() >= ready.program.position.keys():
        return None
    return ask.goal.activity(hint) if ready.inside(hint) and ready.keeps(hint) else None


def _relax(run: Run, sight: Sight, keep_going: Callable[[], bool]) -> Relaxed | None:
    """The relaxation, up to where it proves a plan; None where it is proven that no values keep all rows."""
    gap = max(_RELAXATION_GAP, _OF_GAP * run.ask.gap)
    relaxed = run.relaxation.run(
        gap=gap, keep_going=lambda: not sight.proven and keep_going(), report=sight.look
    )
    if relaxed.impossible:
        return None
    if sight.proven or relaxed.answer is None or relaxed.answer.broken <= KEPT_EXCESS:
        return relaxed
    # With a plan at hand the patterns that keep all rows are known, and whether there are any is no question.
    keeping = _keeping(run, keep_going) if sight.at_hand is None else []
    if keeping is None:
        return None
    # Rows can be kept, so it was the penalty that was too low: with the patterns that keep them, ask again.
    run.master.add(keeping)
    run.master.raise_penalties(_FIRMLY)
    return run.relaxation.run(gap=gap, keep_going=keep_going, report=sight.look)


def _keeping(run: Run, keep_going: Callable[[], bool]) -> list[Pattern] | None:
    """Patterns with which the tying rows can be kept; None: the least sum of excesses has a positive bound."""
    free = [Pattern(p.block, 0.0, p.use, p.decode) for p in run.master.patterns]
    _, master = _excess(run.ready, None, free, keep_going)
    if master is None:
        return None
    new = master.patterns[len(free) :]
    costs, _ = run.usage.of_each([pattern.decode() for pattern in new])
    return [Pattern(p.block, cost, p.use, p.decode) for p, cost in zip(new, costs.tolist(), strict=True)]
