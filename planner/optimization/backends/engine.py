"""What an engine is asked and what it answers, in a closed set of endings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from planner.optimization.program import Goal, IntegerProgram, Key

__all__ = ["Ask", "Engine", "Outcome", "Report", "Termination", "unheard"]


class Termination(StrEnum):
    """How an engine ended. Values are there for OPTIMAL and FEASIBLE, and only then."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    TIMED_OUT = "timed_out"
    FAILED = "failed"


Report = Callable[[int | None, float | None], None]
"""Called with the integer value of the incumbent and the bound, as far as they are known."""


def unheard(value: int | None, bound: float | None) -> None:
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
    """

    program: IntegerProgram
    goal: Goal
    seconds: float
    gap: float
    threads: int | None = None
    seed: int = 0
    hint: Mapping[Key, int] | None = None
    report: Report = unheard


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
