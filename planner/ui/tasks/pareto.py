"""Weigh two objectives: the staircase of proven plans, point by point; those so far when stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from models.pareto import Axis, ParetoFront
from models.problem import Problem
from models.scenario import Scenario
from models.value import Value
from planner.door import pareto
from planner.optimization.protocol import ProgressEvent, SolveOptions
from planner.planning import sized
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter
from planner.ui.workspace import How

__all__ = ["Stairs", "pareto_task", "run"]

_SOLVER = "pareto"
_LEVEL = "points"


class Stairs(Value):
    """A front with the problem that its plans answer."""

    problem: Problem = Field(description="the question in numbers")
    front: ParetoFront = Field(description="its plans, each with its place")


def pareto_task(scenario: Scenario, how: How, axes: tuple[Axis, Axis], points: int) -> Task:
    """The task that weighs two objectives of a scenario.

    Args:
        scenario: what the user states.
        how: time for all points together; every point is proven to gap 0, whatever gap is asked of plans.
        axes: x and y.
        points: how many at most.
    """
    return Task(
        "pareto",
        {
            "scenario": scenario.model_dump(mode="json", exclude_defaults=True),
            "how": how.model_dump(mode="json"),
            "axes": [str(axis) for axis in axes],
            "points": points,
        },
    )


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """The stairs, JSON; those so far as partial answers."""
    scenario = Scenario.model_validate(given["scenario"])
    how = How.model_validate(given["how"])
    problem = sized(scenario, allow_unserved=how.allow_unserved)
    x, y = (Axis(name) for name in given["axes"])

    def told(front: ParetoFront) -> None:
        report.progress(ProgressEvent(_SOLVER, _LEVEL, 0.0, float(len(front.points)), None))
        report.partial(Stairs(problem=problem, front=front).model_dump_json())

    options = SolveOptions(time_limit_s=how.time_limit_s, gap=0.0, cancelled=report.stopped)
    front = pareto(problem, x, y, points=int(given["points"]), options=options, told=told)
    return Stairs(problem=problem, front=front).model_dump_json()
