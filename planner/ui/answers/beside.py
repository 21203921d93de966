"""Answers beside the one that is shown: what stays unserved beside what it costs, always."""

from __future__ import annotations

from typing import Any

import streamlit as st

from models.problem import CostUnit
from models.report import Comparison, Report
from planner.planning import HEURISTICS, NOT_RUN
from planner.ui.answers.frames import show_rows
from planner.ui.words import said
from planner.wording import answer_name

__all__ = ["beside_rows", "show_beside"]

_RULES_SHOWN = 5


def show_beside(report: Report) -> None:
    """One line per answer, and below the rules that answers break."""
    rows = beside_rows(report)
    if len(rows) < 2:  # noqa: PLR2004 - the answer alone is no comparison
        st.caption("Nothing stands beside this plan yet.")
        return
    cost = _cost_name(report)
    show_rows(
        rows,
        name="beside",
        says="Answers side by side: unserved demand, cost, power, changes and broken rules of each.",
        formats={
            "unserved, req/s": "number",
            "worst service": "share",
            cost: "money",
            "W": "watts",
        },
        help={
            "unserved, req/s": "Cheap is easy for who serves less: read cost beside this.",
            "worst service": "Largest unserved share of one service.",
            "broken rules": "Limits that the answer does not keep; a plan of ours keeps all.",
        },
    )
    for each in report.beside:
        _show_broken(each)


def beside_rows(report: Report) -> list[dict[str, Any]]:
    """The answer first, then what stands beside it."""
    shown = report.shown
    name = answer_name(shown, heuristic=shown.name in HEURISTICS, scarce=report.best_effort is not None)
    return [_row(name, shown, report), *(_row(each.name, each, report) for each in report.beside)]


def _row(name: str, each: Comparison, report: Report) -> dict[str, Any]:
    figures, notes = each.assessment, each.solution.proof.notes
    if figures is None:
        said_so = "not run" if NOT_RUN in notes else "no plan"
        empty = dict.fromkeys(
            ("unserved, req/s", "worst service", _cost_name(report), "W", "changes", "broken rules")
        )
        return {"answer": f"{name}: {said_so}", **empty}
    return {
        "answer": name,
        "unserved, req/s": figures.unserved_rps,
        "worst service": figures.unserved_share_worst,
        _cost_name(report): figures.cost,
        "W": figures.power_w,
        "changes": figures.changes,
        "broken rules": len(figures.violations),
    }


def _cost_name(report: Report) -> str:
    return "$/h" if report.problem.cost_unit is CostUnit.USD_PER_H else "cost"


def _show_broken(each: Comparison) -> None:
    violations = () if each.assessment is None else each.assessment.violations
    if not violations:
        return
    listed = "".join(f"\n- {said(violation.text)}" for violation in violations[:_RULES_SHOWN])
    more = len(violations) - _RULES_SHOWN
    rest = f"\n- and {more} more" if more > 0 else ""
    st.markdown(f"**{said(each.name)} breaks rules:**{listed}{rest}")
