"""What ``import planner`` offers: the verbs, taking a scenario, a problem or the path of a scenario."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING

from models.explanation import Explanation
from models.pareto import Axis, ParetoFront
from models.problem import Problem
from models.report import Report
from models.scenario import Scenario
from models.solution import Solution
from planner.optimization.protocol import Cancelled, SolveOptions, SolveResult
from planner.optimization.warm import WarmStart
from planner.planning import known_catalog, plan_problem, plan_scenario, rerating, sized, solve_with

if TYPE_CHECKING:
    from planner.replaying import Replayed, ReplayOptions
    from planner.traces import HowRead, Trace

__all__ = ["Question", "explain", "load_scenario", "pareto", "plan", "simulate", "solve", "solve_again"]

Question = Scenario | Problem | str | PathLike[str]
"""What can be planned: a scenario, a sized problem, or the path of a scenario file."""


def load_scenario(path: str | PathLike[str], *, overrides: Iterable[str] = ()) -> Scenario:
    """Read a scenario file.

    Args:
        path: the YAML file.
        overrides: changes as ``path=value``, e.g. ``limits.spend_usd_per_h=40``.

    Raises:
        ConfigurationError: the file or an override is wrong; lists every finding.
    """
    from planner.scenario import load_scenario as load

    return load(path, overrides=overrides, catalog=known_catalog())


def plan(
    question: Question,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
    cancel: Cancelled | None = None,
) -> Report:
    """Plan: the answer, its proof, what stands beside it, and why it is so.

    Args:
        question: what is planned.
        solver: name of a solver.
        options: time limit, gap, threads; None: the defaults.
        cancel: asked often and from any thread, e.g. ``threading.Event().is_set``; once it says so, the best plan so
            far is the answer.

    Raises:
        ConfigurationError: the question is wrong, or there is no such solver.
        InternalError: a plan of ours fails the referee.
    """
    options = _cancelled_by(options, cancel)
    if isinstance(question, Problem):
        return plan_problem(question, solver=solver, options=options)
    scenario = question if isinstance(question, Scenario) else load_scenario(question)
    return plan_scenario(scenario, solver=solver, options=options)


def solve(
    question: Question,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
    cancel: Cancelled | None = None,
) -> Solution:
    """The solution alone, without baselines and reasons; arguments as for :func:`plan`.

    Raises:
        ConfigurationError: the question is wrong, or there is no such solver.
        InternalError: a plan of ours fails the referee.
    """
    return solve_with(_problem(question), solver=solver, options=_cancelled_by(options, cancel)).solution


def _cancelled_by(options: SolveOptions | None, cancel: Cancelled | None) -> SolveOptions | None:
    return options if cancel is None else replace(options or SolveOptions(), cancelled=cancel)


def solve_again(
    question: Question,
    warm: WarmStart | None = None,
    *,
    solver: str = "auto",
    options: SolveOptions | None = None,
) -> SolveResult:
    """The solution, with what makes the next one to nearly the same question faster.

    Args:
        question: what is planned.
        warm: ``warm`` of the last result; whatever changed since then, the answer is as good as one from nothing.
        solver: its name.
        options: time, gap, threads.

    Raises:
        ConfigurationError: the question is wrong, or there is no such solver.
        InternalError: a plan of ours fails the referee.
    """
    given = options or SolveOptions()
    return solve_with(_problem(question), solver=solver, options=replace(given, warm=warm or given.warm))


def explain(question: Question, solution: Solution) -> Explanation:
    """Why a solution is as it is: limits that bind, candidates that are out, and what to relax if there is no plan."""
    from planner.optimization import explain as reasons
    from planner.referee import assess

    problem, rerate = _problem(question), None
    if not isinstance(question, Problem):
        scenario = question if isinstance(question, Scenario) else load_scenario(question)
        rerate = rerating(scenario, problem)
    judged = assess(problem, solution) if solution.has_plan else None
    return reasons(problem, solution, judged, rerate=rerate)


def _untold(front: ParetoFront) -> None:
    """Nobody wants to hear of points as they are found."""


def pareto(
    question: Question,
    x: Axis | str = Axis.COST,
    y: Axis | str = Axis.POWER,
    *,
    points: int = 25,
    options: SolveOptions | None = None,
    told: Callable[[ParetoFront], None] = _untold,
) -> ParetoFront:
    """Plans of which none is better than another in both axes, each proven.

    Args:
        question: what is planned.
        x: ``cost``, ``power``, ``unserved``, ``changes`` or ``headroom``.
        y: another of them.
        points: how many at most, the ends among them.
        options: time for all of them together, gap (default 0), threads; once cancelled, the points so far are the
            answer.
        told: is given the front so far whenever there is another point.

    Raises:
        ConfigurationError: the question or an axis is wrong.
        InternalError: a plan of ours fails the referee.
    """
    from planner.optimization.fronts import EXACTLY
    from planner.optimization.fronts import pareto as front

    axes = (Axis(x), Axis(y))
    return front(_problem(question), axes, points=points, options=options or EXACTLY, told=told)


def simulate(
    question: Scenario | str | PathLike[str],
    trace: Trace | str | Sequence[str],
    policies: Iterable[str] = ("static",),
    *,
    solver: str = "auto",
    options: ReplayOptions | None = None,
    how: HowRead | None = None,
) -> Replayed:
    """Replay a trace against a scenario's fleet, under one policy after another.

    Args:
        question: the scenario, or the path of its file.
        trace: path of a trace, a line such as ``poisson:rate=5,duration=10m,input=512,output=128``, several of either
            (``service=TRACE`` says for which service), or chunks that can be iterated again.
        policies: ``static`` (the plan as it is), ``hpa``, ``keda``, ``epp-keda``, ``kpa``, ``wva``, ``wva-v2``, ``planner``.
        solver: makes the plan that runs start from, by name.
        options: seed, length, start, metrics, the planner in the loop.
        how: traces are read: policy on bad rows, order, slice, scale, speed.

    Raises:
        ConfigurationError: the scenario, a policy or the trace is wrong.
        TemporaryError: no plan was found in the time given.
    """
    from planner.replaying import prepare, replay_all

    scenario = question if isinstance(question, Scenario) else load_scenario(question)
    return replay_all(prepare(scenario, solver=solver), trace, policies, options=options, how=how)


def _problem(question: Question) -> Problem:
    if isinstance(question, Problem):
        return question
    scenario = question if isinstance(question, Scenario) else load_scenario(question)
    return sized(scenario)
