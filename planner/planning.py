"""From a scenario to a report: size, solve, judge, compare, explain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from models.explanation import Difference, Explanation
from models.ids import Name, ServiceId
from models.problem import PATHS, Demand, DemandBucket, Problem
from models.report import Comparison, EngineWork, Report, Violation
from models.scenario import Scenario
from models.solution import Proof, Solution, Status
from models.variant import Role
from models.workload import Routing
from planner.clock import Clock, SolvingClock
from planner.collecting import collection_paused
from planner.errors import InternalError
from planner.optimization.protocol import Progress, SolveOptions, SolveResult, silent

if TYPE_CHECKING:
    from planner.catalog import Catalog
    from planner.optimization.explaining.limits import Rerate, Rerated

__all__ = [
    "HEURISTICS",
    "NOT_RUN",
    "NOW",
    "closer",
    "differences",
    "judge",
    "known_catalog",
    "plan_problem",
    "plan_scenario",
    "rerating",
    "services_without_candidates",
    "shapes_without_candidates",
    "sized",
    "solve_with",
    "unkept_promises",
]

HEURISTICS: Final = ("greedy", "cost-aware", "fair-share", "rescale")
"""Solvers that prove nothing and may break limits, in the order in which they stand beside the answer."""

NOW: Final = "now"
"""Name of the comparison that is the fleet as it runs."""

NOT_RUN: Final = "not run: no time left"
"""Note of a baseline that was left out."""

_ANSWER: Final = 0.8
"""Share of the time that the answer may take; the rest is for what an infeasible problem needs beside it."""

_BESIDE: Final = 0.5
"""Share of the time left that the baselines may take; the rest is for the explanation and the way to the plan."""

_BESIDE_LEAST: Final = 0.05
"""Share of the time limit that they have in any case: most are over in a moment."""

_CLOSER_LEAST: Final = 0.1
"""Share of the time limit that a closer look has in any case."""

_PROMISES: Final = ("ttft_s", "itl_s", "e2e_s")

_MOMENT_S: Final = 1e-3

_BEST_EFFORT: Final = 0.7
"""Share of the time left that the best plan under scarcity may take; the rest is for the explanation."""

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
        options: time limit, gap, threads; None: the defaults. The time limit is for all of it: sizing, the answer (at
            most 80 % of what is left then), where that is infeasible the best plan under scarcity, baselines and the
            explanation. Baselines that no time is left for stand there without a plan, with the note :data:`NOT_RUN`.
        progress: told what the solver finds on its way.
        clock: measures the phases.
        allow_unserved: demand is an objective for every service, not a promise.

    Raises:
        ConfigurationError: the scenario cannot be sized, or there is no such solver.
        InternalError: a plan of ours fails the referee, or a baseline does what was found to be impossible.
    """
    run = _run(options, progress, _Watch(clock or SolvingClock()))
    with run.watch.phase("size"):
        problem = sized(scenario, allow_unserved=allow_unserved)
    return _report(problem, solver, run, rerate=rerating(scenario, problem))


def plan_problem(
    problem: Problem,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
    progress: Progress = silent,
    clock: Clock | None = None,
    scenario: Scenario | None = None,
) -> Report:
    """As :func:`plan_scenario`, for a problem that is sized already.

    With the ``scenario`` that it was sized from, looser latency promises are among the relaxations.
    """
    rerate = None if scenario is None else rerating(scenario, problem)
    return _report(problem, solver, _run(options, progress, _Watch(clock or SolvingClock())), rerate=rerate)


def closer(
    report: Report,
    *,
    scenario: Scenario | None = None,
    worth: bool = False,
    time_limit_s: float = 30.0,
    clock: Clock | None = None,
) -> Report:
    """A report that also tells of runners-up, of what greedy does differently, and of what more is worth.

    Args:
        report: of the plan.
        scenario: what it was made from; None: latency promises are not touched, since nothing can be sized again.
        worth: whether to find what a little more of each limit is worth.
        time_limit_s: for the report and the solves that this needs: what the report took is not left, but for a tenth.
        clock: measures that time.
    """
    from planner.optimization import look_closer

    shown = report.shown
    problem = report.problem.but(allow_unserved=True) if report.best_effort is not None else report.problem
    found = look_closer(
        problem,
        shown.solution,
        time_limit_s=max(time_limit_s * _CLOSER_LEAST, time_limit_s - sum(report.seconds.values())),
        clock=clock,
        rerate=None if scenario is None else rerating(scenario, problem),
        worth=worth,
    )
    greedy = [each for each in report.beside if each.name == HEURISTICS[0]]
    explanation = report.explanation.but(
        runners_up=found.runners_up, worth=found.worth, differences=differences(report, greedy)
    )
    return report.but(explanation=explanation)


def differences(report: Report, others: Iterable[Comparison]) -> tuple[Difference, ...]:
    """What other answers do differently from the one of a report; nothing where one of them has no plan."""
    from planner.optimization import difference_of

    shown = report.shown
    if shown.assessment is None:
        return ()
    ours = (shown.solution, shown.assessment)
    return tuple(
        difference_of(ours, (each.solution, each.assessment), name=each.name)
        for each in others
        if each.assessment is not None
    )


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


def rerating(scenario: Scenario, problem: Problem) -> Rerate:
    """Sizes a scenario again with the latency promises of one service times a factor.

    Args:
        scenario: what the user states.
        problem: what it was sized to; where nothing changes, nothing is said.
    """

    def rerate(service: ServiceId, factor: float) -> Rerated | None:
        from planner.optimization.explaining.limits import Rerated

        old = next(each for each in scenario.services if each.id == service)
        promised = {name: value for name in _PROMISES if (value := getattr(old.slo, name)) is not None}
        looser = {name: float(f"{value * factor:.6g}") for name, value in promised.items()}
        if not looser:
            return None
        new = old.but(slo=old.slo.but(**looser))
        services = tuple(new if each.id == service else each for each in scenario.services)
        again = sized(scenario.but(services=services), allow_unserved=problem.allow_unserved)
        if again.candidates == problem.candidates:
            return None
        before = {f"{name.removesuffix('_s')}_before_s": value for name, value in promised.items()}
        return Rerated(again, {**before, **looser})

    return rerate


def judge(problem: Problem, name: str, solution: Solution) -> Comparison:
    """A solution with what the referee says of it; without a plan there is nothing to judge."""
    from planner.referee import assess

    assessment = assess(problem, solution) if solution.has_plan else None
    return Comparison(name=name, solution=solution, assessment=assessment)


def unkept_promises(report: Report) -> tuple[Violation, ...]:
    """Promises to serve all demand that the answer does not keep; nothing where there is no plan.

    Only a heuristic's plan has any: missing demand is what its answer amounts to, not a limit that it breaks.
    """
    from planner.referee import check

    if report.answer.name not in HEURISTICS:
        return ()
    broken = check(report.problem, report.answer.solution)
    return tuple(violation for violation in broken if violation.family == "demand")


def services_without_candidates(problem: Problem) -> dict[ServiceId, tuple[Role, ...]]:
    """Services that nothing can serve, each with the roles that it lacks; where one of a pair is there, the other.

    What runs and is rated by nothing serves nobody. A service that borrows replicas needs none of its own.
    """
    return {
        demand.service: min(
            (_lacking(problem, demand, roles) for roles in sorted(PATHS.values(), key=len, reverse=True)),
            key=len,
        )
        for demand in problem.demands
        if demand.arrival_rps > 0
        and demand.shares_replicas_of is None
        and all(_lacking(problem, demand, roles) for roles in PATHS.values())
    }


def shapes_without_candidates(problem: Problem) -> tuple[tuple[ServiceId, DemandBucket], ...]:
    """Request shapes that nothing carries though their services have candidates: routing is by length."""
    hopeless = services_without_candidates(problem)
    return tuple(
        (demand.service, bucket)
        for demand in problem.demands
        if demand.routing is Routing.BY_LENGTH
        and demand.service not in hopeless
        and demand.shares_replicas_of is None
        for bucket in demand.buckets
        if bucket.arrival_rps > 0 and not _is_carried(problem, demand, bucket)
    )


def _is_carried(problem: Problem, demand: Demand, bucket: DemandBucket) -> bool:
    """Whether on some path every role has a candidate that carries the shape."""
    there = {
        candidate.role
        for candidate in problem.candidates_of[demand.service]
        if not candidate.unrated and bucket.id in candidate.by_bucket
    }
    return any(there.issuperset(roles) for roles in PATHS.values())


def _lacking(problem: Problem, demand: Demand, roles: tuple[Role, ...]) -> tuple[Role, ...]:
    """Those of the roles that no candidate of a service fills."""
    there = {
        candidate.role
        for candidate in problem.candidates_of[demand.service]
        if not candidate.unrated and candidate.max_replicas != 0
    }
    return tuple(role for role in roles if role not in there)


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

    with collection_paused():
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


def _run(options: SolveOptions | None, progress: Progress, watch: _Watch) -> _Run:
    options = options or SolveOptions()
    return _Run(options, progress, watch, watch.clock.monotonic_s() + options.time_limit_s)


@dataclass(frozen=True, slots=True)
class _Run:
    """How one report is made, and until when."""

    options: SolveOptions
    progress: Progress
    watch: _Watch
    deadline_s: float
    engines: list[EngineWork] = field(default_factory=list)

    def seconds_left(self) -> float:
        """Time that is left for solving; a moment where none is, or none is wanted, since every solver wants some."""
        if self.options.cancelled():
            return _MOMENT_S
        return max(_MOMENT_S, self.deadline_s - self.watch.clock.monotonic_s())

    def answer(self, problem: Problem, solver: str, *, part: float) -> Comparison:
        """Solve in this part of the time left and judge, with the time of both."""
        from planner.optimization import solve

        options = replace(self.options, time_limit_s=self.seconds_left() * part)
        result = solve(problem, solver=solver, options=options, progress=self.progress)
        self.watch.seconds["formulate"] += result.formulate_s
        self.watch.seconds["solve"] += result.solve_s
        self.engines.extend(result.engines)
        with self.watch.phase("check"):
            # A heuristic was never told of promises: what it leaves unserved is a figure, not a broken limit.
            judged = problem.but(allow_unserved=True) if solver in HEURISTICS else problem
            comparison = judge(judged, solver, result.solution)
        if solver not in HEURISTICS and comparison.assessment is not None:
            _trust(solver, [violation.text for violation in comparison.assessment.violations])
        return comparison

    def beside(self, problem: Problem, solver: str) -> tuple[Comparison, ...]:
        """Every heuristic that is installed and was not asked for itself, and the fleet as it runs.

        They promise nothing: what they leave unserved is a figure of theirs, and rules that they break are real
        limits. They run in order; when the next one would end too late, going by the slowest so far, it and those
        after it are left out.
        """
        from planner.optimization import SOLVERS, solve

        judged, clock = problem.but(allow_unserved=True), self.watch.clock
        names = [name for name in HEURISTICS if name in SOLVERS.names() and name != solver]
        least_s = self.options.time_limit_s * _BESIDE_LEAST
        now_s = clock.monotonic_s()
        end_s = now_s + max(least_s, self.seconds_left() * _BESIDE)
        # To judge a baseline takes as long as to judge the answer.
        slowest_s = self.watch.seconds["check"]
        found: list[Comparison] = []
        for name in names:
            if now_s + slowest_s > end_s or self.options.cancelled():
                break
            found.append(judge(judged, name, solve(problem, solver=name, options=self.options).solution))
            start_s, now_s = now_s, clock.monotonic_s()
            slowest_s = max(slowest_s, now_s - start_s)
        left_out = (_not_run(problem, name) for name in names[len(found) :])
        return (*found, *left_out, judge(judged, NOW, _now(problem)))


def _report(problem: Problem, solver: str, run: _Run, *, rerate: Rerate | None = None) -> Report:
    answer = run.answer(problem, solver, part=_ANSWER)
    scarce = problem.but(allow_unserved=True)
    infeasible = answer.solution.status is Status.INFEASIBLE
    # A heuristic that finds no plan has not shown that there is none; scarcity is for the proof alone.
    again = infeasible and solver not in HEURISTICS
    best_effort = run.answer(scarce, solver, part=_BEST_EFFORT) if again else None
    with run.watch.phase("explain"):
        beside = run.beside(scarce if infeasible else problem, solver)
        if again:
            _refuse_contradictions(problem, answer, beside)
        explanation = _explained(problem, answer, run.seconds_left(), rerate=rerate)
        if best_effort is not None and best_effort.assessment is not None:
            # What would serve all is told already.
            shown = _explained(scarce, best_effort, 0.0)
            explanation = explanation.but(binding=shown.binding, rejected=shown.rejected)
    return Report(
        problem=problem,
        answer=answer,
        best_effort=best_effort,
        beside=beside,
        explanation=explanation,
        seconds=run.watch.seconds,
        engines=tuple(run.engines),
    )


def _now(problem: Problem) -> Solution:
    """The fleet as it runs."""
    from planner.referee import WHILE_NOTHING_FAILS, state_of

    return state_of(problem, families=WHILE_NOTHING_FAILS)


def _not_run(problem: Problem, name: str) -> Comparison:
    """A baseline that there was no time for."""
    proof = Proof(solver=name, notes=(NOT_RUN,))
    solution = Solution(status=Status.TIMED_OUT, proof=proof, derived_from=problem.fingerprint)
    return Comparison(name=name, solution=solution)


def _refuse_contradictions(problem: Problem, answer: Comparison, beside: Iterable[Comparison]) -> None:
    """No plan may keep every promise where none was found to."""
    from planner.referee import check

    for each in beside:
        if _may_keep_all(problem, each) and not check(problem, each.solution):
            raise InternalError(
                f"solver {answer.name!r} found that no plan keeps every promise, and the plan of {each.name!r} does"
            )


def _may_keep_all(problem: Problem, each: Comparison) -> bool:
    """Whether the figures of a plan speak of no promise that is not kept."""
    figures = each.assessment
    return (
        figures is not None
        and not figures.violations
        and all(problem.demand[one.service].best_effort for one in figures.services if one.unserved_share > 0)
    )


def _explained(
    problem: Problem, comparison: Comparison, time_limit_s: float, *, rerate: Rerate | None = None
) -> Explanation:
    from planner.optimization import explain

    return explain(
        problem, comparison.solution, comparison.assessment, time_limit_s=time_limit_s, rerate=rerate
    )


def _trust(solver: str, broken: list[str]) -> None:
    if broken:
        listed = "".join(f"\n  {text}" for text in broken)
        raise InternalError(
            f"the plan of solver {solver!r} fails the referee and is not shown; it breaks:{listed}"
        )
