"""Engines for tests: one that tries every point, and one that says what it was told to say."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.clock import FakeClock
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.program import Column, IntegerProgram, Key, Row

__all__ = ["Enumerating", "Said", "Scripted", "a_program", "an_ask"]


@dataclass
class Enumerating:
    """Tries every point of a small program; the first of equal ones wins. Remembers what it was asked."""

    name: str = "enumerating"
    asks: list[Ask] = field(default_factory=list)

    def minimize(self, ask: Ask) -> Outcome:
        self.asks.append(ask)
        columns = ask.program.columns
        best: dict[Key, int] | None = None
        for point in itertools.product(*(range(c.lower, c.upper + 1) for c in columns)):
            values = dict(zip((c.key for c in columns), point, strict=True))
            if ask.program.broken(values):
                continue
            if best is None or ask.goal.activity(values) < ask.goal.activity(best):
                best = values
        if best is None:
            return Outcome(Termination.INFEASIBLE)
        return Outcome(Termination.OPTIMAL, best, ask.goal.activity(best))


@dataclass(frozen=True)
class Said:
    """One answer: how it ends, with which values and bound, and how long it takes."""

    termination: Termination
    values: Mapping[Key, int] | None = None
    bound: float | None = None
    takes_s: float = 0.0


@dataclass
class Scripted:
    """Answers in turn, each of which takes its time on the clock. Remembers what it was asked."""

    clock: FakeClock
    answers: list[Said]
    name: str = "scripted"
    asks: list[Ask] = field(default_factory=list)

    def minimize(self, ask: Ask) -> Outcome:
        said = self.answers[len(self.asks)]
        self.asks.append(ask)
        self.clock.advance(said.takes_s)
        ask.report(None if said.values is None else ask.goal.activity(said.values), said.bound)
        return Outcome(said.termination, said.values, said.bound)


def a_program(columns: Mapping[Key, int | tuple[int, int]], *rows: Row) -> IntegerProgram:
    """Columns by key from 0 (or from the first of two) to a number."""
    made = []
    for key, sides in columns.items():
        lower, upper = sides if isinstance(sides, tuple) else (0, sides)
        made.append(Column(key, lower, upper))
    return IntegerProgram(tuple(made), rows)


def an_ask(program: IntegerProgram, goal: Any, **fields: Any) -> Ask:
    """An ask for 20 s without a gap."""
    return Ask(**({"program": program, "goal": goal, "seconds": 20.0, "gap": 0.0} | fields))
