"""The whole answer to a draft, part by part."""

from __future__ import annotations

import streamlit as st

from models.explanation import Relaxation
from planner.ui.answers.beside import show_beside
from planner.ui.answers.changes import show_changes
from planner.ui.answers.conflict import show_conflict
from planner.ui.answers.head import show_figures, show_head
from planner.ui.answers.limiting import show_limits
from planner.ui.answers.looking import found_closer, show_looking
from planner.ui.answers.nearby import show_nearby
from planner.ui.answers.paying import show_paying
from planner.ui.answers.proof import show_proof
from planner.ui.answers.where import show_where
from planner.ui.solving import Answer
from planner.ui.tasks.closer import Closer
from planner.ui.workspace import Draft

__all__ = ["show_answer"]


def show_answer(draft: Draft, answer: Answer) -> Relaxation | None:
    """Draw an answer; the relaxation that somebody wants applied.

    Args:
        draft: as it is now.
        answer: to it, or to what it was before.
    """
    report = answer.report
    show_head(report, first=answer.first)
    relaxation = show_conflict(report, open_to_change=not (answer.old or answer.first))
    if report.shown.assessment is None:
        return relaxation
    show_figures(report)
    st.header("Now → planned")
    show_changes(report, answer.key)
    where, limits = st.columns([3, 2], gap="medium")
    with where:
        st.header("Which node holds which replica")
        show_where(report)
    if answer.first:
        return relaxation
    found = found_closer(answer.key)
    with limits:
        _show_limits(draft, answer, found)
    _show_more(answer, found)
    return relaxation


def _show_limits(draft: Draft, answer: Answer, found: Closer | None) -> None:
    """What binds, and the price of the next step beside it."""
    explanation = None if found is None else found.explanation
    st.header("What limits it, and what more is worth")
    show_limits(answer.report, None if explanation is None else explanation.worth)
    if not answer.old:
        show_looking(draft, answer.key)


def _show_more(answer: Answer, found: Closer | None) -> None:
    """What stands beside the plan; only the part that somebody looks at is worked out."""
    st.header("Other answers, and who pays")
    beside, near, paying, proof = st.tabs(
        ["Side by side", "Nearly as good", "Who pays", "Proof"], on_change="rerun", key="answer-parts"
    )
    if beside.open:
        with beside:
            show_beside(answer.report)
    if near.open:
        with near:
            show_nearby(answer.report, found)
    if paying.open:
        with paying:
            show_paying(answer.report, answer.key)
    if proof.open:
        with proof:
            show_proof(answer.report)
