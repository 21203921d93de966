"""The waves to a plan, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from models.plan import Plan, WaveLimits
from models.problem import Problem
from models.solution import Solution
from models.value import Value
from planner.errors import TemporaryError
from planner.rollout import reverse, roll_out
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter

__all__ = ["Moves", "moves_task", "run"]


class Moves(Value):
    """Both ways."""

    there: Plan = Field(description="from what runs now to the plan")
    back: Plan = Field(description="from the plan to what runs now")


def moves_task(problem: Problem, solution: Solution, limits: WaveLimits) -> Task:
    """The task that works out waves.

    Args:
        problem: that was solved.
        solution: with a plan.
        limits: how much may change at once.
    """
    return Task(
        "moves",
        {
            "problem": problem.model_dump_json(),
            "solution": solution.model_dump_json(),
            "limits": limits.model_dump(mode="json"),
        },
    )


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """:class:`Moves`, JSON.

    Raises:
        ConfigurationError: no step can be as small as is asked.
        TemporaryError: somebody wants an end.
    """
    problem = Problem.model_validate_json(given["problem"])
    solution = Solution.model_validate_json(given["solution"])

    def tick() -> None:
        if report.stopped():
            raise TemporaryError("Stopped before the waves were worked out.")

    plan = roll_out(problem, solution, limits=WaveLimits.model_validate(given["limits"]), tick=tick)
    return Moves(there=plan, back=reverse(plan, problem)).model_dump_json()
