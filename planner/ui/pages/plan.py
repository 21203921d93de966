"""Plan: what is to be served and where, solved; greedy at once, the optimum when it is proven."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.answers.plan import show_answer
from planner.ui.editing.panel import show_editing
from planner.ui.relaxing import apply
from planner.ui.solving import ask_plan, show_solving
from planner.ui.words import plain

draft = session.workspace().draft
st.title(plain(draft.scenario.name))
if show_editing(draft):
    ask_plan()
    st.rerun()
answer = show_solving(draft)
if answer is not None:
    relaxation = show_answer(draft, answer)
    if relaxation is not None and apply(answer.report.problem, relaxation):
        ask_plan()
        st.rerun()
