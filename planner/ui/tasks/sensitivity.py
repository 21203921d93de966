"""Move inputs one by one and plan again; what is known so far when stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.scenario import Scenario
from planner.optimization.protocol import ProgressEvent, SolveOptions
from planner.sensitivity import How as HowToMeasure
from planner.sensitivity import Step, sensitivity
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter
from planner.ui.workspace import How

__all__ = ["run", "sensitivity_task"]

_SOLVER = "sensitivity"
_LEVEL = "answers"


def sensitivity_task(scenario: Scenario, how: How, share: float, most: int) -> Task:
    """The task that moves the inputs of a scenario.

    Args:
        scenario: what the user states.
        how: solver and gap of every answer; time for all of them together.
        share: how far, e.g. 0.1 for 10 %.
        most: services, and pools, that are moved one by one too.
    """
    return Task(
        "sensitivity",
        {
            "scenario": scenario.model_dump(mode="json", exclude_defaults=True),
            "how": how.model_dump(mode="json"),
            "share": share,
            "most": most,
        },
    )


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """The sensitivity, JSON; what is known so far as partial answers. Progress counts answers: value of bound."""
    scenario = Scenario.model_validate(given["scenario"])
    how = How.model_validate(given["how"])

    def told(step: Step) -> None:
        report.progress(ProgressEvent(_SOLVER, _LEVEL, 0.0, float(step.done), float(step.of)))
        report.partial(step.so_far.model_dump_json())

    options = SolveOptions(time_limit_s=how.time_limit_s, gap=how.gap, cancelled=report.stopped)
    measuring = HowToMeasure(how.solver, options, how.allow_unserved, told)
    found = sensitivity(scenario, float(given["share"]), most=int(given["most"]), how=measuring)
    return found.model_dump_json()
