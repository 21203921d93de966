"""Plans and variants that nearly are as good: fewer moves at almost the same cost, runners-up, other answers."""

from __future__ import annotations

from typing import Any

import streamlit as st

from models.problem import CostUnit
from models.report import Report
from planner.ui.answers.frames import show_rows
from planner.ui.tasks.closer import Closer
from planner.ui.words import said
from planner.wording import near_sentence, runner_up_sentence

__all__ = ["near_rows", "show_nearby"]


def show_nearby(report: Report, found: Closer | None) -> None:
    """What a closer look found near by."""
    if found is None:
        st.caption("Nobody has looked yet: *Look closer*, under the limits, does.")
        return
    st.markdown("**Fewest moves**")
    _show_fewest(report, found)
    st.markdown("**Variants that nearly are in the plan**")
    if found.explanation is None:
        st.caption("They are being worked out.")
        return
    runners = found.explanation.runners_up
    if not runners:
        st.caption("None was found: every candidate is used, or limits leave no plan that has another one.")
    unit = report.problem.cost_unit
    st.markdown("\n".join(f"- {said(runner_up_sentence(each, unit))}" for each in runners))


def _show_fewest(report: Report, found: Closer) -> None:
    shown = report.shown.assessment
    if found.near is None or shown is None:
        st.caption("There was no time to look for a plan that moves less, or a heuristic made this one.")
        return
    unit = "$/h" if report.problem.cost_unit is CostUnit.USD_PER_H else ""
    beside = () if found.near_answer is None else (found.near_answer,)
    st.markdown(said(near_sentence(found.near, shown, beside, unit)))
    rows = near_rows(report, found)
    if rows:
        show_rows(rows, name="near", says="Replicas now, in the plan, and in the plan that moves less.")


def near_rows(report: Report, found: Closer) -> list[dict[str, Any]]:
    """Candidates of which the two plans have different counts."""
    if found.near_answer is None:
        return []
    plan, other = report.shown.solution, found.near_answer.solution
    return [
        {
            "service": each.service,
            "variant @ pool": f"{each.variant} @ {each.pool}",
            "now": each.on_order,
            "plan": plan.count(each.id),
            "fewest moves": other.count(each.id),
        }
        for each in report.problem.candidates
        if plan.count(each.id) != other.count(each.id)
    ]
