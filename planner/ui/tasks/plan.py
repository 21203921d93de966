"""Plan a scenario: greedy at once, the optimum when it is proven, or the best so far when stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.report import Report
from models.scenario import Scenario
from planner.optimization.protocol import SolveOptions
from planner.planning import judge, plan_scenario, sized, solve_with
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter
from planner.ui.workspace import How

__all__ = ["plan_task", "run"]


def plan_task(scenario: Scenario, how: How) -> Task:
    """The task that plans a scenario."""
    fields = scenario.model_dump(mode="json", exclude_defaults=True)
    return Task("plan", {"scenario": fields, "how": how.model_dump(mode="json")})


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """The report of a plan, JSON; its greedy beginning as a partial answer."""
    scenario = Scenario.model_validate(given["scenario"])
    how = How.model_validate(given["how"])
    problem = sized(scenario, allow_unserved=how.allow_unserved)
    greedy = judge(problem, "greedy", solve_with(problem, solver="greedy").solution)
    report.partial(Report(problem=problem, answer=greedy).model_dump_json())
    answer = plan_scenario(
        scenario,
        solver=how.solver,
        options=SolveOptions(time_limit_s=how.time_limit_s, gap=how.gap, cancelled=report.stopped),
        progress=report.progress,
        allow_unserved=how.allow_unserved,
    )
    return answer.model_dump_json()
