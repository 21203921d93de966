"""The way to a plan: its waves, what stops them, and the plan near by that moves less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from models.plan import Plan
from models.problem import CostUnit
from models.report import Report
from planner.cli.screen.layout import bullets, numbered, section
from planner.wording import near_sentence, rollout_sentence, stuck_sentence, wave_sentence

__all__ = ["show_way"]

_WAVES: Final = 12
"""Waves that a terminal shows unless all are asked for."""

_STEPS: Final = 10
"""Steps of a wave that it shows."""


def show_way(console: Console, report: Report, *, everything: bool) -> None:
    """Print how the fleet gets to the plan; nothing where there is no plan that may be reached.

    Args:
        console: where.
        report: what.
        everything: do not fold waves and steps, however many there are.
    """
    if "rollout" not in report.seconds:
        return
    section(console, "Getting there")
    if report.rollout is None:
        console.print("The waves were not worked out in the time given: allow more time.")
    else:
        _show_waves(console, report.rollout, everything=everything)
    near = _near(report)
    if near is not None:
        console.print(near)


def _show_waves(console: Console, plan: Plan, *, everything: bool) -> None:
    console.print(rollout_sentence(plan))
    numbered(console, _waves(plan, everything=everything))
    hidden = len(plan.waves) - _WAVES
    if not everything and hidden > 0:
        console.print(Text(f"... and {hidden} more waves; --all shows them", style="dim"))
    if plan.stuck is not None:
        bullets(console, [stuck_sentence(plan.stuck)], style="red")


def _waves(plan: Plan, *, everything: bool) -> Iterator[str]:
    waves, steps = (None, None) if everything else (_WAVES, _STEPS)
    for wave in plan.waves[:waves]:
        yield wave_sentence(wave, most=steps)


def _near(report: Report) -> str | None:
    """One sentence on the plan near by; None: nobody looked for it, or the plan changes nothing."""
    answer = report.shown.assessment
    if report.fewest_moves is None or answer is None or not answer.changes:
        return None
    unit = "$/h" if report.problem.cost_unit is CostUnit.USD_PER_H else ""
    return near_sentence(report.fewest_moves, answer, report.beside, unit)
