"""Answers side by side: what stays unserved beside what it costs, always."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from models.problem import CostUnit, Problem
from models.report import Assessment, Comparison
from planner.cli.screen.layout import Column, table
from planner.planning import NOT_RUN
from planner.wording import money, number, percent

__all__ = ["comparison_table"]


def comparison_table(problem: Problem, rows: Iterable[tuple[str, Comparison]]) -> Table:
    """One line per named answer."""
    cost = "$/h" if problem.cost_unit is CostUnit.USD_PER_H else "cost"
    headers = ("unserved\nreq/s", "worst\nservice", cost, "W", "changes", "broken\nrules")
    made = table([Column("answer", right=False), *(Column(header) for header in headers)])
    for index, (name, comparison) in enumerate(rows):
        style = "bold" if index == 0 else ""
        made.add_row(Text(name, style=style), *_figures(comparison, style))
    return made


def _figures(comparison: Comparison, style: str) -> list[Text]:
    assessment = comparison.assessment
    if assessment is None:
        said = "not run" if NOT_RUN in comparison.solution.proof.notes else "no plan"
        return [Text(said, style="dim"), *[Text("–", style="dim")] * 5]
    bad = "red" if assessment.unserved_rps > 0 else style
    broken = len(assessment.violations)
    return [
        Text(number(assessment.unserved_rps), style=bad),
        Text(percent(assessment.unserved_share_worst), style=bad),
        Text(money(assessment.cost), style=style),
        Text(_watts(assessment), style=style),
        Text(f"{assessment.changes:,}", style=style),
        Text(str(broken), style="red" if broken else style),
    ]


def _watts(assessment: Assessment) -> str:
    return "?" if assessment.power_w is None else f"{assessment.power_w:,.0f}"
