"""What every solver takes and gives: one protocol, the options, and progress as values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from models.problem import Problem
from models.report import EngineWork
from models.solution import Solution
from planner.optimization.warm import WarmStart

__all__ = [
    "Cancelled",
    "Progress",
    "ProgressEvent",
    "SolveOptions",
    "SolveResult",
    "Solver",
    "never",
    "silent",
]


Cancelled = Callable[[], bool]
"""Whether whoever asked wants an end; asked often and from any thread, e.g. ``threading.Event().is_set``."""


def never() -> bool:
    """Nobody will cancel."""
    return False


@dataclass(frozen=True, slots=True)
class SolveOptions:
    """How long, how exact, how wide.

    Attributes:
        time_limit_s: wall time for formulating and for all levels together, s.
        gap: relative gap at which a level counts as proven.
        threads: workers; ``None``: the cores there are (CP-SAT never below eight: two are a trap on covering programs).
        seed: equal seeds and inputs give equal answers where every level is proven.
        warm: what an answer to nearly the same problem left (``SolveResult.warm``); None: start from nothing.
        cancelled: once it says so, the best plan so far is the answer, with the bound that is proven by then.
    """

    time_limit_s: float = 60.0
    gap: float = 1e-4
    threads: int | None = None
    seed: int = 0
    warm: WarmStart | None = None
    cancelled: Cancelled = never


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One sign of life of a solver.

    Attributes:
        solver: engine that works.
        level: what it makes small.
        seconds: wall time since the solver was called, formulation included, s.
        value: of the best plan that it has; None: none yet, or not told.
        bound: proven so far; None: nothing yet, or not told.
        columns: patterns that column generation has made so far; None where there are none.
    """

    solver: str
    level: str
    seconds: float
    value: float | None
    bound: float | None
    columns: int | None = None

    @property
    def gap(self) -> float | None:
        """Relative distance of value and bound; absolute where the value is 0; None while one is missing."""
        if self.value is None or self.bound is None:
            return None
        distance = max(0.0, self.value - self.bound)
        return distance / abs(self.value) if self.value else distance


Progress = Callable[[ProgressEvent], None]


def silent(event: ProgressEvent) -> None:
    """Progress for nobody."""


@dataclass(frozen=True, slots=True)
class SolveResult:
    """A solution and the wall time it took; times are no part of the solution's bytes.

    ``warm`` makes the next answer to nearly the same problem faster; None where a solver keeps nothing.
    ``engines`` tells who did what where there are several.
    """

    solution: Solution
    formulate_s: float
    solve_s: float
    warm: WarmStart | None = None
    engines: tuple[EngineWork, ...] = ()


class Solver(Protocol):
    """Anything that answers a problem. Never raises for a hard or infeasible problem: the status says so."""

    def __call__(self, problem: Problem, options: SolveOptions, progress: Progress = silent) -> SolveResult:
        """Answer ``problem`` within ``options``."""
        ...
