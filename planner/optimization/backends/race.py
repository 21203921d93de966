"""Two engines after one another: the first that proves wins, and the best bound of both is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from models.report import EngineWork
from planner.clock import Clock, SystemClock
from planner.optimization.backends.engine import Ask, Engine, Excluding, Outcome, Termination, better_of
from planner.optimization.backends.presolve import reduced

__all__ = ["BySize", "Relay", "Spell", "Turn", "works"]

_LARGE: Final = 600
"""Columns from which column generation goes first: below, HiGHS may be done before its kernel is loaded."""


_READING: Final = 1e-4
"""Wall time per column of a large program that engines which see it whole take to get going, s."""

_SHARE: Final = "a"
"""First name of the keys of columns that only routing by length has."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One engine's turn: a share of the time left, and at most so many seconds. The last turn takes all that is left."""

    make: Callable[[], Engine]
    share: float = 0.6
    most_s: float = inf


@dataclass(frozen=True, slots=True)
class Spell:
    """One turn that was taken: by whom, for which level, for how long, and what of the outcome is its own."""

    engine: str
    level: str
    seconds: float
    found: bool
    proved: bool


def works(spells: Sequence[Spell]) -> tuple[EngineWork, ...]:
    """What each engine did, in the order of their first turns. Of a level the last who improved it counts."""
    finders = {spell.level: spell.engine for spell in spells if spell.found}
    provers = {spell.level: spell.engine for spell in spells if spell.proved}
    return tuple(
        EngineWork(
            engine=name,
            seconds=sum(spell.seconds for spell in spells if spell.engine == name),
            found=tuple(level for level, finder in finders.items() if finder == name),
            proved=tuple(level for level, prover in provers.items() if prover == name),
        )
        for name in dict.fromkeys(spell.engine for spell in spells)
    )


class Relay:
    """Run engines in order until one proves its answer; each starts from the best plan before it.

    In turn and not at once: on the two cores that a planning job usually has, two engines halve each
    other, and an answer that does not depend on which thread was faster can be reproduced.
    """

    name = "relay"

    def __init__(self, engines: Sequence[Callable[[], Engine] | Turn], *, clock: Clock | None = None) -> None:
        self._turns = tuple(one if isinstance(one, Turn) else Turn(one) for one in engines)
        self._clock = clock or SystemClock()
        self.spells: list[Spell] = []
        self._excluding: Excluding | None = None

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        # Loading a solver (and once per machine compiling a kernel) is not solving: the first one's time starts after.
        engine = self._turns[0].make()
        end = self._clock.monotonic_s() + ask.seconds
        best = Outcome(Termination.TIMED_OUT)
        for turn in self._turns:
            left = end - self._clock.monotonic_s()
            if left <= 0 or ask.cancelled() or (turn is not self._turns[0] and left < _to_read(ask)):
                break
            engine = engine if turn is self._turns[0] else turn.make()
            seconds = left if turn is self._turns[-1] else min(left * turn.share, turn.most_s)
            before, start = best, self._clock.monotonic_s()
            own = replace(ask, seconds=seconds, hint=best.values or ask.hint)
            best = better_of(ask, best, _answer(engine, own))
            self.spells.append(_spell(ask, engine.name, self._clock.monotonic_s() - start, (before, best)))
            if best.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
                break
        return best

    def excludes(self, ask: Ask) -> bool:
        """Whether the first engine that can tell proves that there is no plan."""
        if self._excluding is None:
            made = (turn.make() for turn in self._turns)
            self._excluding = next((engine for engine in made if isinstance(engine, Excluding)), None)
        return self._excluding is not None and self._excluding.excludes(ask)


def _to_read(ask: Ask) -> float:
    """Wall time below which an engine that sees the program whole need not begin, s."""
    columns = len(ask.program.columns)
    return _READING * columns if columns > _LARGE else 0.0


def _answer(engine: Engine, ask: Ask) -> Outcome:
    """The answer of one engine; one that sees the program whole gets it without what is not needed."""
    if isinstance(engine, Excluding):
        return engine.minimize(ask)
    small = reduced(ask.program, ask.goal)
    hint = None if ask.hint is None else small.start(ask.hint)
    outcome = engine.minimize(replace(ask, program=small.program, hint=hint))
    return outcome if outcome.values is None else replace(outcome, values=small.whole(outcome.values))


def _spell(ask: Ask, engine: str, seconds: float, outcomes: tuple[Outcome, Outcome]) -> Spell:
    before, after = outcomes
    better = after.values is not None and (
        before.values is None or ask.goal.activity(after.values) < ask.goal.activity(before.values)
    )
    proved = after.bound is not None and (before.bound is None or after.bound > before.bound)
    return Spell(
        engine, ask.goal.name, seconds, better, proved or after.termination is Termination.INFEASIBLE
    )


class BySize:
    """An engine for each kind of program: large, routed by length, with demand that may stay unserved, or none of these."""

    name = "auto"

    def __init__(
        self,
        small: Callable[[], Relay],
        scarce: Callable[[], Relay],
        *,
        lengths: Callable[[], Relay],
        large: Callable[[], Relay],
    ) -> None:
        self._makers = {"small": small, "scarce": scarce, "lengths": lengths, "large": large}
        self._made: dict[str, Relay] = {}
        self.spells: list[Spell] = []

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization by the engine of its kind."""
        kind = _kind(ask)
        if kind not in self._made:
            self._made[kind] = self._makers[kind]()
        engine = self._made[kind]
        known = len(engine.spells)
        outcome = engine.minimize(ask)
        self.spells += engine.spells[known:]
        return outcome

    def excludes(self, ask: Ask) -> bool:
        """Whether it is proven by a relaxation that there is no plan, whatever the size."""
        if "large" not in self._made:
            self._made["large"] = self._makers["large"]()
        return self._made["large"].excludes(ask)


def _kind(ask: Ask) -> str:
    columns = ask.program.columns
    if len(columns) >= _LARGE:
        return "large"
    if any(column.key[0] == _SHARE for column in columns):
        return "lengths"
    return "scarce" if any(c.key[0] == "z" and c.lower < c.upper for c in columns) else "small"
