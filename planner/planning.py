"""From a scenario to a report: size, solve, judge, compare, explain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from models.explanation import Explanation
from models.ids import Name
from models.problem import Problem
from models.report import Comparison, Report
from models.scenario import Scenario
from models.solution import Solution, Status
from planner.clock import Clock, SystemClock
from planner.errors import InternalError
from planner.optimization.protocol import Progress, SolveOptions, SolveResult, silent

if TYPE_CHECKING:
    from planner.catalog import Catalog

__all__ = [
    "HEURISTICS",
    "NOW",
    "judge",
    "known_catalog",
    "plan_problem",
    "plan_scenario",
    "sized",
    "solve_with",
]

HEURISTICS: Final = ("greedy", "cost-aware", "fair-share", "rescale")
"""Solvers that prove nothing and may break limits, in the order in which they stand beside the answer."""

NOW: Final = "now"
"""Name of the comparison that is the fleet as it runs."""

PHASES: Final = ("size", "formulate", "solve", "check", "explain")


def plan_scenario(
    scenario: Scenario,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
    progress: Progress = silent,
    clock: Clock | None = None,
    allow_unserved: bool = False,
) -> Report:
    """Plan a scenario and say why.

    Args:
        scenario: what the user states.
        solver: name of a solver.
        options: time limit, gap, threads; None: the defaults.
        progress: told what the solver finds on its way.
        clock: measures the phases.
        allow_unserved: demand is an objective for every service, not a promise.

    Raises:
        ConfigurationError: the scenario cannot be sized, or there is no such solver.
        InternalError: a plan of ours fails the referee.
    """
    watch = _Watch(clock or SystemClock())
    with watch.phase("size"):
        problem = sized(scenario, allow_unserved=allow_unserved)
    return _report(problem, solver, _Run(options or SolveOptions(), progress, watch))


def plan_problem(
    problem: Problem,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
    progress: Progress = silent,
    clock: Clock | None = None,
) -> Report:
    """As :func:`plan_scenario`, for a problem that is sized already."""
    return _report(problem, solver, _Run(options or SolveOptions(), progress, _Watch(clock or SystemClock())))


def known_catalog(profiles: Iterable[str] = ()) -> Catalog:
    """The catalog that the settings name, with more profile tables.

    Raises:
        ConfigurationError: a setting or a file of the catalog is wrong.
    """
    from planner.catalog import load_catalog
    from planner.settings import load_settings

    return load_catalog(load_settings().catalog_dir, [Path(profile) for profile in profiles])


def sized(scenario: Scenario, *, allow_unserved: bool = False) -> Problem:
    """The problem of a scenario; with ``allow_unserved`` its demand is an objective and not a promise.

    Raises:
        ConfigurationError: the scenario names what nobody knows, or the catalog is wrong.
    """
    from planner.sizing import size

    return size(scenario, known_catalog(scenario.profiles), allow_unserved=allow_unserved)


def judge(problem: Problem, name: str, solution: Solution) -> Comparison:
    """A solution with what the referee says of it; without a plan there is nothing to judge."""
    from planner.referee import assess

    assessment = assess(problem, solution) if solution.has_plan else None
    return Comparison(name=name, solution=solution, assessment=assessment)


def solve_with(
    problem: Problem,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
    progress: Progress = silent,
) -> SolveResult:
    """Solve, and refuse to hand out a plan that breaks a rule unless a heuristic made it.

    Raises:
        ConfigurationError: there is no such solver.
        InternalError: the plan fails the referee.
    """
    from planner.optimization import solve
    from planner.referee import check

    result = solve(problem, solver=solver, options=options or SolveOptions(), progress=progress)
    if solver not in HEURISTICS and result.solution.has_plan:
        _trust(solver, [violation.text for violation in check(problem, result.solution)])
    return result


@dataclass(slots=True)
class _Watch:
    """Wall time by phase, s."""

    clock: Clock
    seconds: dict[Name, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a phase."""
        start_s = self.clock.monotonic_s()
        try:
            yield
        finally:
            self.seconds[name] += self.clock.monotonic_s() - start_s


@dataclass(frozen=True, slots=True)
class _Run:
    """How one report is made."""

    options: SolveOptions
    progress: Progress
    watch: _Watch

    def answer(self, problem: Problem, solver: str) -> Comparison:
        """Solve and judge, with the time of both."""
        from planner.optimization import solve

        result = solve(problem, solver=solver, options=self.options, progress=self.progress)
        self.watch.seconds["formulate"] += result.formulate_s
        self.watch.seconds["solve"] += result.solve_s
        with self.watch.phase("check"):
            comparison = judge(problem, solver, result.solution)
        if solver not in HEURISTICS and comparison.assessment is not None:
            _trust(solver, [violation.text for violation in comparison.assessment.violations])
        return comparison


def _report(problem: Problem, solver: str, run: _Run) -> Report:
    answer = run.answer(problem, solver)
    scarce = problem.but(allow_unserved=True)
    infeasible = answer.solution.status is Status.INFEASIBLE
    # A heuristic that finds no plan has not shown that there is none; scarcity is for the proof alone.
    best_effort = run.answer(scarce, solver) if infeasible and solver not in HEURISTICS else None
    with run.watch.phase("explain"):
        beside = _beside(scarce if infeasible else problem, solver, run.options)
        explanation = _explained(problem, answer, run.options)
        if best_effort is not None and best_effort.assessment is not None:
            shown = _explained(scarce, best_effort, run.options)
            explanation = explanation.but(binding=shown.binding, rejected=shown.rejected)
    return Report(
        problem=problem,
        answer=answer,
        best_effort=best_effort,
        beside=beside,
        explanation=explanation,
        seconds=run.watch.seconds,
    )


def _beside(problem: Problem, solver: str, options: SolveOptions) -> tuple[Comparison, ...]:
    """Every heuristic that is installed and was not asked for itself, and the fleet as it runs."""
    from planner.optimization import SOLVERS, solve
    from planner.referee import state_of

    names = [name for name in HEURISTICS if name in SOLVERS.names() and name != solver]
    found = [judge(problem, name, solve(problem, solver=name, options=options).solution) for name in names]
    return (*found, judge(problem, NOW, state_of(problem)))


def _explained(problem: Problem, comparison: Comparison, options: SolveOptions) -> Explanation:
    from planner.optimization import explain

    return explain(problem, comparison.solution, comparison.assessment, time_limit_s=options.time_limit_s)


def _trust(solver: str, broken: list[str]) -> None:
    if broken:
        listed = "".join(f"\n  {text}" for text in broken)
        raise InternalError(
            f"the plan of solver {solver!r} fails the referee and is not shown; it breaks:{listed}"
        )
