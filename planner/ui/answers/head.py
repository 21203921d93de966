"""The answer in one line and four numbers, each with its change against now."""

from __future__ import annotations

import streamlit as st

from models.problem import CostUnit
from models.report import Assessment, Report
from planner.planning import HEURISTICS, NOW
from planner.ui.words import plain
from planner.wording import money, number, percent, quantity
from planner.wording.statuses import headline

__all__ = ["show_head"]


def show_head(report: Report, *, first: bool = False) -> None:
    """Status and figures of the plan that is shown.

    Args:
        report: of the plan.
        first: it is the greedy answer, shown while the proven one is on its way.
    """
    shown = report.shown
    if first:
        st.info("Greedy's plan, while the proven one is on its way.", icon=":material/hourglass_top:")
    else:
        said = headline(report.answer, proves=report.answer.name not in HEURISTICS)
        st.markdown(f"**{report.answer.solution.status}** · {plain(said)}")
    if shown.assessment is None:
        return
    now = next((each.assessment for each in report.beside if each.name == NOW), None)
    _show_figures(shown.assessment, now, in_dollars=report.problem.cost_unit is CostUnit.USD_PER_H)


def _show_figures(plan: Assessment, now: Assessment | None, *, in_dollars: bool) -> None:
    unit = " $/h" if in_dollars else ""
    cost, power, unserved, headroom, changes = st.columns(5)
    cost.metric(
        "Cost",
        f"{money(plan.cost)}{unit}",
        None if now is None else f"{money(plan.cost - now.cost)}{unit}",
        delta_color="inverse",
        help="Of all replicas and added nodes, switching included; the arrow is against what runs now.",
    )
    watts = None if now is None or now.power_w is None or plan.power_w is None else plan.power_w - now.power_w
    power.metric(
        "Power",
        quantity(plan.power_w, "W"),
        None if watts is None else quantity(watts, "W"),
        delta_color="inverse",
        help="Draw of all replicas on the power basis of the scenario.",
    )
    unserved.metric(
        "Unserved",
        f"{number(plan.unserved_rps)} req/s",
        None if now is None else f"{number(plan.unserved_rps - now.unserved_rps)} req/s",
        delta_color="inverse",
        help="Demand that no replica carries inside its promises.",
    )
    headroom.metric(
        "Least headroom",
        percent(_least_headroom(plan)),
        help="Of the service that has least, as a share of its load.",
    )
    changes.metric("Changes", number(plan.changes), help="Replicas started, stopped or moved.")


def _least_headroom(plan: Assessment) -> float | None:
    known = [each.headroom for each in plan.services if each.headroom is not None]
    return min(known, default=None)
