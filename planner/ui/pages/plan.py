"""Plan: what is to be served and where, solved; greedy at once, the optimum when it is proven."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.answers.head import show_head
from planner.ui.answers.where import show_where
from planner.ui.editing.panel import show_editing
from planner.ui.solving import QUESTION, show_solving
from planner.ui.words import plain

draft = session.workspace().draft
st.title(plain(draft.scenario.name))
with st.expander("Edit the scenario", icon=":material/edit:"):
    solve = show_editing(draft)
if solve:
    session.ask(QUESTION, session.plan_task_of(session.workspace().draft))
    st.rerun()
answer = show_solving(session.workspace().draft)
if answer is not None:
    show_head(answer.report, first=answer.first)
    show_where(answer.report)
