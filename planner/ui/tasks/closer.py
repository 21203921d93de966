"""A closer look at a plan: what moves less at almost the same cost, what nearly won, and what a little more is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from models.explanation import Explanation
from models.report import Comparison, FewestMoves, Report
from models.scenario import Scenario
from models.value import Value
from planner.clock import Clock, SolvingClock
from planner.optimization.protocol import SolveOptions
from planner.planning import closer
from planner.rolling import FEWEST_MOVES, with_rollout
from planner.ui.jobs import Task
from planner.ui.tasks.protocol import Reporter
from planner.ui.workspace import How

__all__ = ["Closer", "closer_task", "run"]

_LONG_OVER_S: Final = 1e12


class Closer(Value):
    """What a closer look found."""

    near: FewestMoves | None = Field(None, description="what moves less; None: there was no time")
    near_answer: Comparison | None = Field(None, description="that plan; None: nothing moves less")
    explanation: Explanation | None = Field(
        None, description="with runners-up and worth; None: not worked out yet"
    )


def closer_task(scenario: Scenario, how: How, report: str) -> Task:
    """The task that looks closer.

    Args:
        scenario: what the report is of.
        how: its time limit is given once more.
        report: of a plan, JSON.
    """
    fields = scenario.model_dump(mode="json", exclude_defaults=True)
    return Task("closer", {"scenario": fields, "how": how.model_dump(mode="json"), "report": report})


def run(given: Mapping[str, Any], report: Reporter) -> str:
    """What was found, JSON; what moves less comes first, as a partial answer."""
    scenario = Scenario.model_validate(given["scenario"])
    how = How.model_validate(given["how"])
    plan = Report.model_validate_json(given["report"])
    # Both count what the plan took; the time limit is for the look alone.
    limit_s = how.time_limit_s + sum(plan.seconds.values())
    options = SolveOptions(time_limit_s=limit_s, gap=how.gap, cancelled=report.stopped)
    near = with_rollout(plan, options=options)
    answer = next((each for each in near.beside if each.name == FEWEST_MOVES), None)
    first = Closer(near=near.fewest_moves, near_answer=answer)
    report.partial(first.model_dump_json())
    looked = closer(
        plan, scenario=scenario, worth=True, time_limit_s=limit_s, clock=_Impatient(SolvingClock(), report)
    )
    return first.but(explanation=looked.explanation).model_dump_json()


@dataclass(frozen=True, slots=True)
class _Impatient(Clock):
    """A clock on which all time is over once somebody wants an end: what is not reached by then is left out."""

    clock: Clock
    report: Reporter

    def sleep(self, duration_s: float) -> None:
        self.clock.sleep(duration_s)

    def unix_s(self) -> float:
        return self.clock.unix_s()

    def monotonic_s(self) -> float:
        return _LONG_OVER_S if self.report.stopped() else self.clock.monotonic_s()
