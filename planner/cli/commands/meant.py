"""What ``commands`` and ``apply`` have in common: which plan of an answer is meant, and how far."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from planner.cli.commands.waves import Waves, wave_limits
from planner.errors import ConfigurationError, Finding

if TYPE_CHECKING:
    from models.plan import Plan
    from models.report import Report

__all__ = ["first_waves", "moving_less", "refuse_without_plan", "wanted_waves"]


def wanted_waves(report: Report, options: Waves) -> Plan:
    """The saved waves, unless there are none or other limits are asked for."""
    from planner.rolling import plan_rollout

    saved = report.rollout
    limits = wave_limits(options, base=None if saved is None else saved.limits)
    return saved if saved is not None and limits is None else plan_rollout(report, limits=limits)


def moving_less(report: Report, path: Path) -> Report:
    """The report with the plan near by as its answer.

    Raises:
        ConfigurationError: there is none.
    """
    found = report.fewest_moves
    other = next((each for each in report.beside if found is not None and each.name == found.name), None)
    if found is None or other is None:
        finding = Finding(
            str(path), None, "", "no plan that changes less", "the answer itself, without --fewest-moves"
        )
        raise ConfigurationError.from_findings([finding])
    return report.but(answer=other, rollout=found.rollout)


def refuse_without_plan(report: Report, path: Path) -> None:
    """Refuse an answer that has no plan.

    Raises:
        ConfigurationError: it has none.
    """
    status = report.answer.solution.status
    if not report.answer.solution.has_plan:
        finding = Finding(
            str(path),
            None,
            "",
            f"status {status}",
            "an answer with a plan; 'plan --allow-unserved' may find one",
        )
        raise ConfigurationError.from_findings([finding])


def first_waves(plan: Plan, number: int | None) -> Plan:
    """The plan up to a wave; whether it gets stuck later is of no concern then."""
    if number is None or number >= len(plan.waves):
        return plan
    return plan.but(waves=plan.waves[:number], stuck=None)
