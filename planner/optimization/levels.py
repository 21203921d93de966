"""The lexicographic descent: one goal after the other, each held when the next is solved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor

from models.solution import Level
from planner.clock import Clock
from planner.optimization.backends.engine import (
    Ask,
    Capping,
    Engine,
    Excluding,
    Outcome,
    Report,
    Termination,
    proves,
)
from planner.optimization.backends.memory import Memory
from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row
from planner.optimization.protocol import Progress, ProgressEvent, SolveOptions

__all__ = ["AGAIN", "AGAIN_S", "Descent", "Proved"]

_NOT_LAST = 0.8
"""Share of the time left that a level may take while others wait."""

_USED_UP = 0.8
"""Share of its time after which an engine without a plan has tried all that it could in it."""

_AT_LEAST_S = 1.0
_PATIENCE = 0.4
"""A level that only breaks near ties may take this share of the time of all before it, and at least 1 s.

Nobody waits a minute for the last watt.
"""

AGAIN_S = 0.4
AGAIN = 0.2
"""The same for a plan that follows another: ties were broken a moment ago.

Enough to relax a fleet of a thousand services, and to look among all patterns near it.
"""


@dataclass(frozen=True)
class Proved:
    """A goal that was solved, and the bound proven for it (integer value of the goal; None: nothing proven).

    ``measured`` reads the value where the goal is no sum of columns.
    """

    goal: Goal
    bound: float | None
    proven: bool
    measured: Callable[[Mapping[Key, int]], int] | None = None

    def value(self, values: Mapping[Key, int]) -> int:
        """The integer value of the goal in a plan."""
        return self.goal.activity(values) if self.measured is None else self.measured(values)


@dataclass
class Descent:
    """State of one descent: the program with what is held so far, and the best values.

    Attributes:
        engine: answers each minimization.
        program: grows by a holding row per level.
        options: time, gap, threads for all levels together.
        tolerance: relative slack that a held level leaves to the next ones.
        values: values of the latest plan; empty while there is none.
        stopped: set when no further level can be asked: no plan, or no time.
        memory: what engines keep from level to level.
        tie_s: wall time that a level which only breaks ties may take at least, s.
        tie_share: the same as a share of the time of all levels before it, where that is more.
        reached: by name of such a level, the gap that was left to it after all the time that it may take, here or in
            the descent before; none where the gap asked for was proven.
        unreached: set when a level was left out, so that nothing after it is proven.
    """

    engine: Engine
    program: IntegerProgram
    options: SolveOptions
    tolerance: float
    clock: Clock
    progress: Progress
    values: Mapping[Key, int] = field(default_factory=dict)
    hint: Mapping[Key, int] = field(default_factory=dict)
    levels: list[Proved] = field(default_factory=list)
    stopped: Termination | None = None
    unreached: bool = False
    start_s: float = 0.0
    memory: Memory = field(default_factory=Memory)
    tie_s: float = _AT_LEAST_S
    tie_share: float = _PATIENCE
    reached: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start_s = self.start_s or self.clock.monotonic_s()

    @property
    def seconds_left(self) -> float:
        """Wall time that is left; none once whoever asked wants an end."""
        if self.options.cancelled():
            return 0.0
        return self.options.time_limit_s - (self.clock.monotonic_s() - self.start_s)

    def extend(self, columns: tuple[Column, ...] = (), rows: tuple[Row, ...] = ()) -> None:
        """Add columns and rows to the program."""
        self.program = self.program.plus(columns, rows)

    def minimize(
        self,
        goal: Goal,
        *,
        share: float = _NOT_LAST,
        tie_break: bool = False,
        record: bool = True,
        exactly: bool = False,
    ) -> int | None:
        """Solve one goal and hold it; its value, or None when there is no plan.

        A goal that time does not reach keeps the value of the plan at hand, with no bound.

        Args:
            goal: what is made small.
            share: share of the time left that it may take.
            tie_break: it only chooses among near ties, so it gets little more time than what came before.
            record: it is a level that is reported.
            exactly: it is held without tolerance: for goals on a coarse grid of their own.
        """
        if self.stopped is not None and not self.values:
            return None
        if not goal.terms and not self.values:
            # Nothing to choose here: whether there is a plan at all the next level, or settling, finds out.
            self.levels.append(Proved(goal, goal.constant, proven=True))
            return goal.constant
        outcome = self._ask(goal, share, tie_break=tie_break)
        if outcome.values is not None:
            self.values = self.hint = outcome.values
        elif not self.values:
            self.stopped = outcome.termination
            return None
        if outcome.values is None and not goal.terms.keys() <= self.values.keys():
            self.unreached = True  # the plan at hand is older than the columns of this goal
            return None
        value = goal.activity(self.values)
        bound = _integer_bound(outcome.bound) if outcome.values is not None else None
        proven = outcome.termination is Termination.OPTIMAL or proves(value, bound, self.options.gap)
        if record:
            self.levels.append(Proved(goal, bound, proven))
        self._hold(goal, value, None if exactly else bound)
        return value

    def settle(self) -> None:
        """Find any plan, where no level had anything to choose."""
        if self.values or self.stopped is not None:
            return
        outcome = self._ask(Goal("feasible", {}), 1.0)
        if outcome.values is None:
            self.stopped = outcome.termination
        else:
            self.values = self.hint = outcome.values

    def probe(
        self,
        goal: Goal,
        rows: tuple[Row, ...],
        seconds: float,
        columns: tuple[Column, ...] = (),
        *,
        gap: float = 0.0,
    ) -> Outcome:
        """Ask once with more rows and columns, for so many seconds; nothing is held, recorded or kept.

        Args:
            goal: what is made small.
            rows: beside those of the program.
            seconds: wall time at most.
            columns: beside those of the program.
            gap: at which it is enough, where that is more than what the options ask for.
        """
        return self._minimize(self.program.plus(columns, rows), goal, min(seconds, self.seconds_left), gap)

    def excludes(self, rows: tuple[Row, ...], seconds: float) -> bool:
        """Whether it is proven at little cost that no plan keeps these rows too."""
        if not isinstance(self.engine, Excluding) or seconds <= 0:
            return False
        return self.engine.excludes(self._about_excess(rows, seconds))

    def excluded_caps(
        self, rows: tuple[Row, ...], sums: Sequence[Mapping[Key, int]], caps: Sequence[int], seconds: float
    ) -> int | None:
        """How many of the caps, which rise, are proven at little cost to be too low for some sums; None: cannot tell."""
        if not isinstance(self.engine, Capping) or seconds <= 0:
            return None
        return self.engine.excluded_caps(self._about_excess(rows, seconds), sums, caps)

    def _about_excess(self, rows: tuple[Row, ...], seconds: float) -> Ask:
        """By how much rows must be broken, these among them; no goal of a level."""
        goal = Goal("excess", {})
        return self._asked(self.program.plus(rows=rows), goal, seconds, _Told(self, goal))

    def _ask(self, goal: Goal, share: float, *, tie_break: bool = False) -> Outcome:
        if self.values and not goal.terms:
            return Outcome(Termination.OPTIMAL, self.values, goal.constant)
        if tie_break and self.values:
            return self._break_ties(goal, share)
        start_s, given = self.clock.monotonic_s(), self.seconds_left * share
        outcome = self._minimize(self.program, goal, given)
        used_up = self.clock.monotonic_s() - start_s >= _USED_UP * given
        if self.values or outcome.termination is not Termination.TIMED_OUT or not used_up:
            return outcome
        # What was kept for later levels is of no use to anybody without a plan.
        again = self._minimize(self.program, goal, self.seconds_left)
        return again if again.values is not None or outcome.bound is None else outcome

    def _break_ties(self, goal: Goal, share: float) -> Outcome:
        """Little time for a goal among near ties; where an earlier descent could not prove it, no more than that one.

        What that one reached in all the time that ties may take is a measure: a plan that is as near to its bound, or
        farther by less than the gap asked for, needs no search. Bounds are proven anew, and the gap that is left is told.
        """
        patience = max(self.tie_s, self.tie_share * (self.clock.monotonic_s() - self.start_s))
        left = self.seconds_left * share
        reached = self.reached.get(goal.name)
        gap = self.options.gap + (reached or 0.0)
        outcome = self._minimize(self.program, goal, min(left, patience), gap)
        if reached is not None:
            # As good as before is no proof; whether it is one, the gap asked for decides.
            optimal = outcome.termination is Termination.OPTIMAL
            return replace(outcome, termination=Termination.FEASIBLE) if optimal else outcome
        found = _gap(goal, outcome)
        cut = patience > left or self.options.cancelled()
        if found is not None and found > self.options.gap and not cut:
            self.reached[goal.name] = found
        return outcome

    def _minimize(self, program: IntegerProgram, goal: Goal, seconds: float, gap: float = 0.0) -> Outcome:
        if seconds <= 0:
            return Outcome(Termination.TIMED_OUT)
        told = _Told(self, goal)
        ask = self._asked(program, goal, seconds, told)
        outcome = self.engine.minimize(replace(ask, gap=max(gap, ask.gap)))
        told(None if outcome.values is None else goal.activity(outcome.values), outcome.bound)
        return outcome

    def _asked(self, program: IntegerProgram, goal: Goal, seconds: float, told: Report) -> Ask:
        return Ask(
            program=program,
            goal=goal,
            seconds=seconds,
            gap=self.options.gap,
            threads=self.options.threads,
            seed=self.options.seed,
            hint=self.hint or None,
            report=told,
            cancelled=self.options.cancelled,
            memory=self.memory,
        )

    def _hold(self, goal: Goal, value: int, bound: float | None) -> None:
        """Keep the goal at its value, or as far above its bound as the tolerance allows, whichever is more."""
        if not goal.terms:
            return
        slack = value if bound is None else floor(bound + self.tolerance * abs(bound))
        limit = max(value, slack) - goal.constant
        self.extend(rows=(Row(("level", goal.name), goal.terms, upper=limit),))

    def levels_at(self, values: Mapping[Key, int]) -> tuple[Level, ...]:
        """Every recorded level with its value in the final plan."""
        return tuple(_level(proved, values) for proved in self.levels)


class _Told:
    """Progress of one minimization: every event carries the best value and bound so far."""

    def __init__(self, descent: Descent, goal: Goal) -> None:
        self._descent = descent
        self._goal = goal
        self._known: tuple[int | None, float | None, int | None] = (None, None, None)

    def __call__(self, value: int | None, bound: float | None, *, columns: int | None = None) -> None:
        """Hear of an incumbent, a bound or patterns, and pass on what is known by now, where that is more."""
        before = self._known
        best = min((known for known in (before[0], value) if known is not None), default=None)
        proven = max((known for known in (before[1], bound) if known is not None), default=None)
        self._known = (best, proven, before[2] if columns is None else columns)
        if self._known != before:
            self._tell(best, proven, self._known[2])

    def _tell(self, value: int | None, bound: float | None, columns: int | None) -> None:
        goal, descent = self._goal, self._descent
        descent.progress(
            ProgressEvent(
                solver=descent.engine.name,
                level=goal.name,
                seconds=descent.clock.monotonic_s() - descent.start_s,
                value=None if value is None else goal.in_units(value),
                bound=None if bound is None else goal.in_units(bound),
                columns=columns,
            )
        )


def _level(proved: Proved, values: Mapping[Key, int]) -> Level:
    goal = proved.goal
    value = proved.value(values)
    bound = proved.bound
    gap = None
    if bound is not None:
        distance = max(0.0, value - bound)
        gap = distance / abs(value) if value else distance * goal.unit
    return Level(
        name=goal.name,
        value=goal.in_units(value),
        bound=None if bound is None else goal.in_units(min(bound, value)),
        gap=gap,
        unit=goal.unit_name,
    )


def _gap(goal: Goal, outcome: Outcome) -> float | None:
    """Relative distance of value and bound; None where one is missing or the value is 0."""
    if outcome.values is None or outcome.bound is None:
        return None
    value = goal.activity(outcome.values)
    return max(0.0, value - outcome.bound) / abs(value) if value else None


def _integer_bound(bound: float | None) -> float | None:
    """Goals are integers, so a bound is one too; a millionth is left to the engine's tolerance."""
    return None if bound is None else float(ceil(bound - max(1e-6, 1e-9 * abs(bound))))
