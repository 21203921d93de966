"""From a report to ordered waves, and back again: what needs an answer and a rollout."""

from __future__ import annotations

from models.plan import Plan, WaveLimits
from models.report import Report

__all__ = ["plan_rollout", "plan_way_back"]


def plan_rollout(report: Report, *, limits: WaveLimits | None = None) -> Plan:
    """The waves from the fleet that runs to a report's answer.

    Args:
        report: whose answer has a plan.
        limits: how much may change at once; None: no limits but those of the problem.

    Raises:
        ConfigurationError: the answer has no plan, or no step can be as small as is asked.
    """
    from planner.rollout import roll_out

    return roll_out(report.problem, report.answer.solution, limits=limits)


def plan_way_back(report: Report, plan: Plan) -> Plan:
    """The waves from the end of a plan of :func:`plan_rollout` to the fleet that ran before it."""
    from planner.rollout import reverse

    return reverse(plan, report.problem)
