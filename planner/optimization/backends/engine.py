"""What an engine is asked and what it answers, in a closed set of endings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Protocol, runtime_checkable

from planner.optimization.backends.memory import Memory
from planner.optimization.program import Goal, IntegerProgram, Key
from planner.optimization.protocol import Cancelled, never

__all__ = [
    "Ask",
    "Capping",
    "Engine",
    "Excluding",
    "Outcome",
    "Report",
    "Termination",
    "better_of",
    "proves",
    "unheard",
]


class Termination(StrEnum):
    """How an engine ended. Values are there for OPTIMAL and FEASIBLE, and only then."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


class Report(Protocol):
    """Hears of progress."""

    def __call__(self, value: int | None, bound: float | None, *, columns: int | None = None) -> None:
        """The integer value of the incumbent, the bound and the number of patterns, as far as they are known."""
        ...


def unheard(value: int | None, bound: float | None, *, columns: int | None = None) -> None:
    """Progress for nobody."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One minimization.

    Attributes:
        program: columns and rows.
        goal: what is made small; a goal without terms asks for any feasible point.
        seconds: wall time at most.
        gap: relative gap at which to stop.
        threads: workers; None lets the engine choose.
        seed: equal asks with equal seeds give equal answers.
        hint: values to start from; may be partial or infeasible.
        report: told about every better incumbent or bound.
        cancelled: asked often; when it says so the engine ends with what it has.
        memory: what the engine may keep for the next minimization; None: it keeps nothing.
    """

    program: IntegerProgram
    goal: Goal
    seconds: float
    gap: float
    threads: int | None = None
    seed: int = 0
    hint: Mapping[Key, int] | None = None
    report: Report = unheard
    cancelled: Cancelled = never
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """An engine's answer.

    Attributes:
        termination: how it ended.
        values: a value for every column, when there is a plan.
        bound: proven lower bound on the integer value of the goal; None when nothing is proven.
    """

    termination: Termination
    values: Mapping[Key, int] | None = None
    bound: float | None = None


class Engine(Protocol):
    """A solver behind the smallest door."""

    name: str

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization; never raises for what a solver may end with."""
        ...


@runtime_checkable
class Excluding(Protocol):
    """An engine that can tell by its relaxation alone that there is no plan."""

    def excludes(self, ask: Ask) -> bool:
        """Whether it is proven that nothing keeps all rows; False says nothing."""
        ...


@runtime_checkable
class Capping(Protocol):
    """An engine that can tell by its relaxation alone which caps of some sums are too low."""

    def excluded_caps(self, ask: Ask, sums: Sequence[Mapping[Key, int]], caps: Sequence[int]) -> int | None:
        """How many of the caps, which rise, are proven to have no plan with every sum at most so much; None: cannot tell."""
        ...


def better_of(ask: Ask, old: Outcome, new: Outcome) -> Outcome:
    """The better plan with the better bound; an infeasibility that is proven ends the search."""
    if new.termination is Termination.INFEASIBLE and old.values is None:
        return new
    bounds = [bound for bound in (old.bound, new.bound) if bound is not None]
    bound = max(bounds) if bounds else None
    plans = [outcome for outcome in (old, new) if outcome.values is not None]
    if not plans:
        return new if new.termination is Termination.FAILED else replace(old, bound=bound)
    best = min(plans, key=lambda outcome: ask.goal.activity(outcome.values or {}))
    value = ask.goal.activity(best.values or {})
    proven = new.termination is Termination.OPTIMAL or proves(value, bound, ask.gap)
    return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, best.values, bound)


def proves(value: float, bound: float | None, gap: float) -> bool:
    """Whether a bound is as near to a value of a goal as is asked for, relative to the value."""
    return bound is not None and value - bound <= gap * abs(value)
