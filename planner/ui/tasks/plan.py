"""Plan a scenario: greedy at once, the optimum when it is proven, or the best so far when stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from models.report import Report
from models.scenario import Scenario
from models.solution import Status
from planner.clock import SolvingClock
from planner.optimization.protocol import SolveOptions
from planner.planning import judge, plan_problem, sized, solve_with
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter
from planner.ui.workspace import How

__all__ = ["plan_task", "run"]

_GREEDY_S: Final = 10.0
"""Time for greedy's plan, its reasons and what stands beside it, where a stop came before any other."""

_LEAST_S: Final = 0.1
"""Time that the answer has even where sizing took all of it."""


def plan_task(scenario: Scenario, how: How) -> Task:
    """The task that plans a scenario."""
    fields = scenario.model_dump(mode="json", exclude_defaults=True)
    return Task("plan", {"scenario": fields, "how": how.model_dump(mode="json")})


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """The report of a plan, JSON; its greedy beginning as a partial answer."""
    scenario = Scenario.model_validate(given["scenario"])
    how = How.model_validate(given["how"])
    clock = SolvingClock()
    began_s = clock.monotonic_s()
    problem = sized(scenario, allow_unserved=how.allow_unserved)
    size_s = clock.monotonic_s() - began_s
    greedy = judge(problem, "greedy", solve_with(problem, solver="greedy").solution)
    report.partial(Report(problem=problem, answer=greedy).model_dump_json())
    left_s = max(_LEAST_S, how.time_limit_s - (clock.monotonic_s() - began_s))
    answer = plan_problem(
        problem,
        solver=how.solver,
        options=SolveOptions(time_limit_s=left_s, gap=how.gap, cancelled=report.stopped),
        progress=report.progress,
        scenario=scenario,
    )
    if report.stopped() and answer.answer.solution.status is Status.TIMED_OUT:
        answer = plan_problem(problem, solver="greedy", options=SolveOptions(time_limit_s=_GREEDY_S))
    return answer.but(seconds={**answer.seconds, "size": size_s}).model_dump_json()
