"""A suggested relaxation put into the open draft."""

from __future__ import annotations

import streamlit as st

from models.explanation import Relaxation
from models.problem import Problem
from planner.applying import applied
from planner.errors import ConfigurationError
from planner.ui import session
from planner.ui.faults import show_fault

__all__ = ["apply"]


def apply(problem: Problem, relaxation: Relaxation) -> bool:
    """Whether the draft was changed; where it cannot be, the reason is on the page."""
    draft = session.workspace().draft
    try:
        scenario = applied(draft.scenario, problem, relaxation)
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was changed.")
        return False
    session.change(lambda draft: draft.edited(scenario))
    st.toast("Applied to the draft; Undo takes it back.", icon=":material/check:")
    return True
