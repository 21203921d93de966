"""What stands against serving all: the conflict in words, and what to relax, each with a button that does it."""

from __future__ import annotations

from typing import Final

import streamlit as st

from models.explanation import Relaxation
from models.report import Report
from models.solution import Status
from planner.planning import services_without_candidates, shapes_without_candidates
from planner.ui.words import said
from planner.wording import (
    NOTHING_ENOUGH,
    conflict_rows,
    conflict_sentence,
    hopeless_sentence,
    hopeless_shape_sentence,
    refusal_sentences,
    relaxation_sentence,
    together_sentences,
)

__all__ = ["show_conflict"]

_SHOWN: Final = 10
"""Services and relaxations that are told of; more are counted."""


def show_conflict(report: Report, *, open_to_change: bool) -> Relaxation | None:
    """The part of an answer that has a conflict; the relaxation that somebody wants applied.

    Args:
        report: of the plan.
        open_to_change: whether the draft still is what the report is of; relaxations of another one do not fit.
    """
    explanation, status = report.explanation, report.answer.solution.status
    _show_hopeless(report)
    if status is not Status.INFEASIBLE and explanation.conflict is None:
        return None
    with st.container(border=True):
        st.markdown("**What conflicts**")
        if explanation.conflict is None:
            st.markdown(
                "What conflicts was not found in the time given: allow more time, under *How to solve*."
            )
            return None
        st.markdown(said(conflict_sentence(explanation.conflict)))
        st.markdown("\n".join(f"- {said(row)}" for row in conflict_rows(explanation.conflict)))
        return _show_relaxations(report, open_to_change=open_to_change)


def _show_relaxations(report: Report, *, open_to_change: bool) -> Relaxation | None:
    relaxations = report.explanation.relaxations
    if not relaxations:
        _show_together(report)
        return None
    st.markdown("**Any one of these makes every promise hold**")
    wanted = None
    for place, relaxation in enumerate(relaxations[:_SHOWN]):
        words, button = st.columns([6, 1], vertical_alignment="center")
        sentence = relaxation_sentence(relaxation, report.problem)
        words.markdown(said(sentence))
        if button.button(
            "Apply",
            icon=":material/check:",
            key=f"relax-{place}-{report.problem.derived_from}",
            disabled=not open_to_change,
            help=f"Change the draft and solve it again; Undo takes it back. {said(sentence)}",
            width="stretch",
        ):
            wanted = relaxation
    if len(relaxations) > _SHOWN:
        st.caption(f"and {len(relaxations) - _SHOWN} more, which allow dearer plans")
    return wanted


def _show_together(report: Report) -> None:
    """Limits that have to move together."""
    moves = report.explanation.together
    if not moves:
        st.markdown(NOTHING_ENOUGH)
        return
    heading, sentences = together_sentences(moves, report.problem)
    st.markdown(f"**{said(heading)}**")
    st.markdown("\n".join(f"- {said(sentence)}" for sentence in sentences))


def _show_hopeless(report: Report) -> None:
    """Services and request shapes that nothing can serve, and the first reasons why."""
    problem = report.problem
    lines = [
        (hopeless_sentence(service, roles), refusal_sentences(problem, service))
        for service, roles in services_without_candidates(problem).items()
    ]
    lines += [
        (hopeless_shape_sentence(service, bucket), refusal_sentences(problem, service, bucket.id))
        for service, bucket in shapes_without_candidates(problem)
    ]
    for sentence, reasons in lines[:_SHOWN]:
        st.error(f"{said(sentence)}\n" + "".join(f"\n- {said(reason)}" for reason in reasons))
    if len(lines) > _SHOWN:
        st.caption(f"and {len(lines) - _SHOWN} more")
