"""What is proven: value, bound and gap of each level of the objective."""

from __future__ import annotations

from typing import Any

import streamlit as st

from models.report import Report
from planner.ui.answers.frames import show_rows
from planner.ui.words import said, spaced
from planner.wording import level_rows, seconds_sentence

__all__ = ["proof_rows", "show_proof"]


def show_proof(report: Report) -> None:
    """A line per level, what the solver did, and how long it took."""
    rows = proof_rows(report)
    proof = report.shown.solution.proof
    if rows:
        show_rows(rows, name="proof", says="Levels of the objective with value, proven bound and gap.")
        st.caption("No plan that is equal on earlier levels goes below the proven bound of a level.")
    else:
        st.caption("Nothing is proven about this plan.")
    st.caption(said(f"Solver {proof.solver}. " + ". ".join(proof.notes)))
    if report.seconds:
        st.caption(said(seconds_sentence(report.seconds)))


def proof_rows(report: Report) -> list[dict[str, Any]]:
    """Levels in their order, as people read them."""
    return [
        {"level": name, "value": spaced(value), "proven bound": spaced(bound), "gap": gap}
        for name, value, bound, gap in level_rows(report.shown.solution.proof.levels)
    ]
