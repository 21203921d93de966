"""Engines after one another or at once: the first that proves wins, and the best bound of all is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from threading import Event, Lock
from typing import Final

from models.report import EngineWork
from planner.clock import Clock, SolvingClock
from planner.optimization.backends.engine import (
    Ask,
    Capping,
    Engine,
    Excluding,
    Outcome,
    Termination,
    better_of,
    proves,
)
from planner.optimization.backends.presolve import reduced
from planner.optimization.program import Column, Key

__all__ = ["BySize", "Race", "Relay", "Spell", "Turn", "works"]

_LARGE: Final = 600
"""Columns from which column generation goes first: below, HiGHS may be done before its kernel is loaded."""


_READING: Final = 1e-4
"""Wall time per column of a large program that engines which see it whole take to get going, s."""

_FEW: Final = 64
"""Candidates up to which many shares are one service's, or few: replicas are chosen first, and shares follow."""

_COUNT: Final = "n"
"""First name of the keys of replicas."""

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

    In turn where it is known who is fast: an answer that does not depend on which thread was faster can be
    reproduced. Where it is not known, a turn may be a :class:`Race`.
    """

    name = "relay"

    def __init__(self, engines: Sequence[Callable[[], Engine] | Turn], *, clock: Clock | None = None) -> None:
        self._turns = tuple(one if isinstance(one, Turn) else Turn(one) for one in engines)
        self._clock = clock or SolvingClock()
        self.spells: list[Spell] = []

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
            seconds = left if turn is self._turns[-1] else min(_time_of(ask, turn, left), turn.most_s)
            before, start = best, self._clock.monotonic_s()
            own = replace(ask, seconds=seconds, hint=best.values or ask.hint)
            best = better_of(ask, best, _answer(engine, own))
            self.spells += _spells_of(engine) or [
                _spell(ask, engine.name, self._clock.monotonic_s() - start, (before, best))
            ]
            if best.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
                break
        return best

    def excludes(self, ask: Ask) -> bool:
        """Whether the first engine that can tell proves that there is no plan."""
        excluding = next((engine for engine in self._made() if isinstance(engine, Excluding)), None)
        return excluding is not None and excluding.excludes(ask)

    def excluded_caps(self, ask: Ask, sums: Sequence[Mapping[Key, int]], caps: Sequence[int]) -> int | None:
        """How many of the caps the first engine that can tell excludes; None where none can."""
        capping = next((engine for engine in self._made() if isinstance(engine, Capping)), None)
        return None if capping is None else capping.excluded_caps(ask, sums, caps)

    def _made(self) -> Iterator[Engine]:
        """The engines in order, each made when it is asked for."""
        return (turn.make() for turn in self._turns)


class Race:
    """Engines at once, each in a thread; they end when one proves, or the plan of one meets the bound of another.

    For programs on which nobody knows beforehand who is fast. Which plan is found may depend on which thread was
    faster; that a value is proven does not.
    """

    name = "race"

    def __init__(self, engines: Sequence[Callable[[], Engine]], *, clock: Clock | None = None) -> None:
        self._makers = tuple(engines)
        self._clock = clock or SolvingClock()
        self.spells: list[Spell] = []

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        course = _Course(ask)
        engines = [make() for make in self._makers]
        with ThreadPoolExecutor(len(engines)) as pool:
            for future in [pool.submit(self._run, engine, course) for engine in engines]:
                future.result()
        return course.best

    def _run(self, engine: Engine, course: _Course) -> None:
        ask, start = course.ask, self._clock.monotonic_s()
        outcome = _answer(engine, replace(ask, report=course.hear, cancelled=course.over))
        before, after = course.take(outcome)
        self.spells.append(_spell(ask, engine.name, self._clock.monotonic_s() - start, (before, after)))


class _Course:
    """What a race has come to: the best answer, and values and bounds that were told on the way."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.best = Outcome(Termination.TIMED_OUT)
        self._lock = Lock()
        self._over = Event()
        self._value: float = inf
        self._bound: float = -inf

    def over(self) -> bool:
        """Whether the others may stop."""
        return self._over.is_set() or self.ask.cancelled()

    def hear(self, value: int | None, bound: float | None, *, columns: int | None = None) -> None:
        """Take in what one engine tells of itself, and pass it on."""
        with self._lock:
            self._meet(value, bound)
        self.ask.report(value, bound, columns=columns)

    def take(self, outcome: Outcome) -> tuple[Outcome, Outcome]:
        """Take in what one engine ends with; the best answer before and after."""
        with self._lock:
            before = self.best
            self.best = better_of(self.ask, before, outcome)
            if self.best.termination in (Termination.OPTIMAL, Termination.INFEASIBLE):
                self._over.set()
            value = None if outcome.values is None else self.ask.goal.activity(outcome.values)
            self._meet(value, outcome.bound)
            return before, self.best

    def _meet(self, value: float | None, bound: float | None) -> None:
        self._value = min(self._value, inf if value is None else value)
        self._bound = max(self._bound, -inf if bound is None else bound)
        if self._value < inf and proves(self._value, self._bound, self.ask.gap):
            self._over.set()


def _time_of(ask: Ask, turn: Turn, left: float) -> float:
    """The wall time of a turn: all that is left where nobody after it would have time to begin, s."""
    return left if (1 - turn.share) * left < _to_read(ask) else turn.share * left


def _to_read(ask: Ask) -> float:
    """Wall time below which an engine that sees the program whole need not begin, s."""
    columns = len(ask.program.columns)
    return _READING * columns if columns > _LARGE else 0.0


def _answer(engine: Engine, ask: Ask) -> Outcome:
    """The answer of one engine; one that sees the program whole gets it without what is not needed."""
    if isinstance(engine, Excluding | Race):
        return engine.minimize(ask)
    small = reduced(ask.program, ask.goal)
    hint = None if ask.hint is None else small.start(ask.hint)
    outcome = engine.minimize(replace(ask, program=small.program, hint=hint))
    return outcome if outcome.values is None else replace(outcome, values=small.whole(outcome.values))


def _spells_of(engine: Engine) -> list[Spell]:
    """Those of a race since they were last asked for."""
    if not isinstance(engine, Race):
        return []
    spells, engine.spells = engine.spells, []
    return spells


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
    """An engine for each kind of program: large, routed by length, or neither."""

    name = "auto"

    def __init__(
        self, *, small: Callable[[], Relay], lengths: Callable[[], Relay], large: Callable[[], Relay]
    ) -> None:
        self._makers = {"small": small, "lengths": lengths, "large": large}
        self._made: dict[str, Relay] = {}
        self.spells: list[Spell] = []

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization by the engine of its kind."""
        engine = self._of(_kind(ask))
        known = len(engine.spells)
        outcome = engine.minimize(ask)
        self.spells += engine.spells[known:]
        return outcome

    def excludes(self, ask: Ask) -> bool:
        """Whether it is proven by a relaxation that there is no plan, whatever the size."""
        return self._of("large").excludes(ask)

    def excluded_caps(self, ask: Ask, sums: Sequence[Mapping[Key, int]], caps: Sequence[int]) -> int | None:
        """How many of the caps are excluded by a relaxation, whatever the size; None: cannot tell."""
        return self._of("large").excluded_caps(ask, sums, caps)

    def _of(self, kind: str) -> Relay:
        if kind not in self._made:
            self._made[kind] = self._makers[kind]()
        return self._made[kind]


def _kind(ask: Ask) -> str:
    columns = ask.program.columns
    if len(columns) >= _LARGE and (_has_many_counts(columns) or not _has_shares(columns)):
        return "large"
    return "lengths" if _has_shares(columns) else "small"


def _has_many_counts(columns: Sequence[Column]) -> bool:
    counts = (column for column in columns if column.key[0] == _COUNT)
    return next(islice(counts, _FEW, None), None) is not None


def _has_shares(columns: Sequence[Column]) -> bool:
    return any(column.key[0] == _SHARE for column in columns)
