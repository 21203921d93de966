"""Two drafts: what changed in what was asked, what changed in the plan, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from models.explanation import Difference
from models.report import Report
from planner.ui.answers.frames import show_rows
from planner.ui.comparing.inputs import input_changes
from planner.ui.comparing.why import plan_change
from planner.ui.words import said
from planner.ui.workspace import Draft

__all__ = ["show_differing"]

_SHOWN: Final = 12


def show_differing(before: Draft, after: Draft, reports: Mapping[str, Report | None]) -> None:
    """Inputs and plans of two drafts."""
    asked, planned = st.columns(2)
    with asked:
        st.markdown("**What was asked**")
        changes = input_changes(before.scenario, after.scenario)
        _show_list(changes or ("Nothing differs.",))
    with planned:
        st.markdown("**What came of it**")
        old, new = reports.get(before.name), reports.get(after.name)
        if old is None or new is None:
            st.markdown("Solve both, and the difference of their plans stands here.")
            return
        change = plan_change(old, new, after.name)
        _show_list(change.sentences)
    if change.difference is not None and change.difference.allocations:
        _show_allocations(change.difference, before.name, after.name)


def _show_list(sentences: Sequence[str]) -> None:
    for sentence in sentences[:_SHOWN]:
        st.markdown(f"- {said(sentence)}")
    if len(sentences) > _SHOWN:
        with st.expander(f"{len(sentences) - _SHOWN} more"):
            for sentence in sentences[_SHOWN : _SHOWN + 200]:
                st.markdown(f"- {said(sentence)}")


def _show_allocations(difference: Difference, before: str, after: str) -> None:
    rows: list[dict[str, Any]] = [
        {
            "candidate": each.candidate,
            f"replicas: {before}": each.replicas,
            f"replicas: {after} ": each.theirs,
            "cost": each.cost,
        }
        for each in difference.allocations
    ]
    show_rows(
        rows,
        name="differences",
        says=f"Candidates of which {before} and {after} have different counts.",
        formats={"cost": "money"},
        help={"cost": "How much more the second spends on it."},
    )
