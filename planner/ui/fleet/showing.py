"""How the controller stands: who leads and how fresh that is, decisions with their reasons, history, findings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import streamlit as st

from models.controller_status import ControllerStatus
from models.cycle_record import VariantDecision
from models.observation import Finding, Freshness, FreshnessLimits
from planner.charts.decisions import decisions_chart
from planner.control.tracing import history_of
from planner.ui.answers.drawing import show_chart
from planner.ui.answers.frames import show_rows
from planner.ui.fleet.looking import Look
from planner.ui.words import said, spaced
from planner.wording import counted, number, time_span

__all__ = ["decision_rows", "history_rows", "show_fleet"]

_BADGES: Final = {
    Freshness.FRESH: ("green", ":material/check_circle:"),
    Freshness.STALE: ("orange", ":material/schedule:"),
    Freshness.UNAVAILABLE: ("red", ":material/error:"),
    Freshness.MISSING: ("red", ":material/error:"),
}
_MOST_LINES: Final = 12
_MOST_FINDINGS: Final = 50


def show_fleet(look: Look) -> None:
    """Draw all of it."""
    _show_head(look)
    _show_figures(look.status)
    st.header("Decisions")
    rows = decision_rows(look.status.decisions)
    if rows:
        show_rows(
            rows,
            name="decisions",
            says=f"{counted(len(rows), 'variant')}: replicas now and wanted, and why; those that change come first.",
            help={
                "now": "Replicas that its workload asked for when this was decided.",
                "wanted": "Replicas that it is to have.",
            },
        )
    else:
        st.markdown("It has decided nothing yet.")
    if look.records:
        _show_history(look)
    _show_findings(look.status.findings)


def _show_head(look: Look) -> None:
    status = look.status
    age_s = None if status.last_cycle_s is None else max(0.0, status.at_s - status.last_cycle_s)
    fresh = FreshnessLimits().of(age_s)
    color, icon = _BADGES[fresh]
    ago = (
        "no cycle has ended yet"
        if age_s is None
        else f"last {'cycle' if look.live else 'record'} {time_span(age_s)} ago"
    )
    st.markdown(f":{color}-badge[{icon} {fresh}] {said(ago)}")
    who = status.controller or "nobody named"
    leads = "leads" if status.leader else f"does not lead; {status.holder or 'nobody'} does"
    acts = "It carries decisions out." if status.act else "A dry run: it only says what it would do."
    st.markdown(said(f"{who} {leads}. {acts}"))
    if not status.report.complete:
        st.warning("A source did not answer in full: nothing is scaled in.", icon=":material/warning:")


def _show_figures(status: ControllerStatus) -> None:
    report = status.report
    figures = (
        ("Variants", number(report.variants), None),
        ("Engines", number(report.engines), None),
        ("Replicas", number(report.replicas_after), report.replicas_after - report.replicas_before),
        ("GPUs", number(report.gpus_after), report.gpus_after - report.gpus_before),
        ("Written", number(report.writes), None),
    )
    for column, (name, value, change) in zip(st.columns(len(figures)), figures, strict=True):
        column.metric(name, spaced(value), str(change) if change else None, delta_color="off")


def decision_rows(decisions: tuple[VariantDecision, ...]) -> list[dict[str, Any]]:
    """A row per variant; those that change come first."""
    return [
        {
            "variant": "/".join(part for part in each.key if part),
            "accelerator": each.accelerator or "?",
            "now": each.before,
            "ready": each.ready,
            "pending": each.pending,
            "wanted": each.desired,
            "reason": each.reason,
            "why": each.message,
        }
        for each in sorted(decisions, key=lambda one: (not one.changes, one.key))
    ]


def _show_history(look: Look) -> None:
    rows = history_rows(look)
    if not rows:
        return
    st.header("History")
    changes = sum(row["changes"] for row in rows)
    variants = len({row["variant"] for row in rows})
    show_chart(
        decisions_chart(rows),
        rows,
        name="history",
        says=f"Replicas wanted over time: {counted(variants, 'variant')}, {counted(changes, 'change')}; a dot for each.",
    )


def history_rows(look: Look) -> list[dict[str, Any]]:
    """What variants were to have over time; of many those that moved most."""
    moments = history_of(look.records, most=_MOST_LINES)
    rows = [
        {
            "variant": each.variant,
            "at": _moment(each.at_s),
            "desired": each.desired,
            "reason": each.reason,
            "why": each.message,
            "changes": each.desired != each.before,
        }
        for each in moments
    ]
    if not rows:
        return []
    # What held last holds until the last record.
    last = {row["variant"]: row for row in rows}
    end = _moment(look.records[-1].at_s)
    return rows + [{**row, "at": end, "changes": False} for row in last.values() if row["at"] != end]


def _moment(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _show_findings(findings: tuple[Finding, ...]) -> None:
    st.header("Findings")
    if not findings:
        st.markdown("Everything that was expected was seen.")
        return
    for each in findings[:_MOST_FINDINGS]:
        remedy = f" ({each.remedy})" if each.remedy else ""
        st.markdown(f"- {said(f'{each.subject}: {each.problem}{remedy}')}")
    if len(findings) > _MOST_FINDINGS:
        st.caption(f"and {len(findings) - _MOST_FINDINGS} more")
