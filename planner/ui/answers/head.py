"""The answer in one line and a few numbers, each with its change against now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from models.problem import CostUnit
from models.report import Assessment, Report
from models.solution import Status
from planner.planning import HEURISTICS, NOW, unkept_promises
from planner.ui.words import said, spaced
from planner.wording import money, number, percent, promise_sentence, quantity
from planner.wording.statuses import headline

__all__ = ["show_figures", "show_head"]

_BADGES: Final = {
    Status.OPTIMAL: ("green", ":material/verified:"),
    Status.FEASIBLE: ("orange", ":material/hourglass_empty:"),
    Status.INFEASIBLE: ("red", ":material/block:"),
    Status.TIMED_OUT: ("red", ":material/timer_off:"),
    Status.FAILED: ("red", ":material/error:"),
}
_NO_CHANGE: Final = 1e-9
_NO_CENTS_FROM: Final = 1e4


def show_head(report: Report, *, first: bool = False) -> None:
    """Status of the answer.

    Args:
        report: of the plan.
        first: it is the greedy answer, shown while the proven one is on its way.
    """
    if first:
        st.info("Greedy's plan, while the proven one is on its way.", icon=":material/hourglass_top:")
        return
    status = report.answer.solution.status
    color, icon = _BADGES[status]
    sentence = headline(report.answer, proves=report.answer.name not in HEURISTICS)
    st.markdown(f":{color}-badge[{icon} {status}] {said(sentence)}")
    unkept = unkept_promises(report)
    if unkept:
        services = [*dict.fromkeys(violation.key[0] for violation in unkept)]
        st.markdown(f":red[:material/error:] {said(promise_sentence(services))}")


def show_figures(report: Report) -> None:
    """Cost, power, unserved demand, headroom and changes of the plan that is shown, against now."""
    if report.best_effort is not None:
        sentence = headline(report.best_effort, proves=report.best_effort.name not in HEURISTICS, scarce=True)
        st.header("The best plan if demand may stay unserved")
        st.markdown(said(sentence))
    plan = report.shown.assessment
    if plan is None:
        return
    now = next((each.assessment for each in report.beside if each.name == NOW), None)
    _show_metrics(plan, now, in_dollars=report.problem.cost_unit is CostUnit.USD_PER_H)


def _show_metrics(plan: Assessment, now: Assessment | None, *, in_dollars: bool) -> None:
    unit = " $/h" if in_dollars else ""
    costs, watts, missing = (None, None, None) if now is None else (now.cost, now.power_w, now.unserved_rps)
    cost, power, unserved, headroom, changes = st.columns(5)
    cost.metric(
        "Cost",
        spaced(f"{_amount(plan.cost)}{unit}"),
        _delta(plan.cost, costs, lambda value: f"{_amount(value)}{unit}"),
        delta_color="inverse",
        help="Of all replicas and added nodes, switching included; the arrow is against what runs now.",
    )
    power.metric(
        "Power",
        spaced(quantity(plan.power_w, "W")),
        _delta(plan.power_w, watts, lambda value: quantity(value, "W")),
        delta_color="inverse",
        help="Draw of all replicas on the power basis of the scenario.",
    )
    unserved.metric(
        "Unserved",
        spaced(f"{number(plan.unserved_rps)} req/s"),
        _delta(plan.unserved_rps, missing, lambda value: f"{number(value)} req/s"),
        delta_color="inverse",
        help="Demand that no replica carries inside its promises.",
    )
    least, before = _least_headroom(plan), None if now is None else _least_headroom(now)
    headroom.metric(
        "Least headroom",
        spaced(percent(least)),
        _delta(least, before, percent),
        help="Of the service that has least, as a share of its load.",
    )
    changes.metric("Changes", spaced(number(plan.changes)), help="Replicas started, stopped or moved.")


def _amount(value: float) -> str:
    """Money without cents where it is so much that they would not fit."""
    return f"{value:,.0f}" if abs(value) >= _NO_CENTS_FROM else money(value)


def _delta(value: float | None, before: float | None, write: Callable[[float], str]) -> str | None:
    """The change of a figure; None where there is none, so that no arrow stands beside it."""
    if value is None or before is None or abs(value - before) <= _NO_CHANGE * max(1.0, abs(before)):
        return None
    return spaced(write(value - before))


def _least_headroom(plan: Assessment) -> float | None:
    known = [each.headroom for each in plan.services if each.headroom is not None]
    return min(known, default=None)
