"""Who pays: the cost of the plan by team, with headroom and idle capacity shared out."""

from __future__ import annotations

import streamlit as st

from models.problem import CostUnit
from models.report import Report
from models.showback import Showback
from planner.charts.bills import bill_rows, bills_chart
from planner.showback import showback
from planner.ui.answers.drawing import show_chart
from planner.ui.answers.frames import show_rows
from planner.ui.words import said
from planner.wording import quantity

__all__ = ["show_paying"]

_PARTS = ("used", "headroom", "idle", "starts", "total")

_NOISE = 1e-9
"""Amounts below this share of all are what sums of floats leave over."""


def show_paying(report: Report, key: str) -> None:
    """A bar and a line per team."""
    bills = _bills(key, report)
    if bills is None or not bills.bills:
        st.caption("There is no plan that anybody could pay for.")
        return
    unit = "$/h" if report.problem.cost_unit is CostUnit.USD_PER_H else ""
    rows = bill_rows(bills)
    total = quantity(bills.total, unit)
    show_chart(
        bills_chart(rows, unit=unit),
        rows,
        name="bills",
        says=f"Cost by team, {total} in all: what carries load, what is kept free as headroom, what is idle.",
    )
    show_rows(
        [
            {
                "team": bill.team,
                "services": len(bill.services),
                **{part: getattr(bill, part) for part in _PARTS},
            }
            for bill in bills.bills
        ],
        name="bills",
        says="Cost by team.",
        formats=dict.fromkeys(_PARTS, "money"),
        help={
            "team": "Of the services; their namespace where they name no team.",
            "used": "Share of the replicas that carries load.",
            "headroom": "Kept free because services ask for it.",
            "idle": "Free beyond that: whole replicas, least counts.",
            "starts": "Of replicas that start, spread over the horizon.",
        },
    )
    if bills.unassigned > bills.total * _NOISE:
        st.caption(said(f"{quantity(bills.unassigned, unit)} are for added nodes on which nothing runs."))


@st.cache_resource(show_spinner=False, max_entries=20)
def _bills(key: str, _report: Report) -> Showback | None:
    shown = _report.shown
    return None if shown.assessment is None else showback(_report.problem, shown.solution, shown.assessment)
