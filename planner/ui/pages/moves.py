"""Moves: the waves from what runs now to the plan, over time, and the commands that carry them out."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.answers.moves import show_moves
from planner.ui.solving import show_solving

draft = session.workspace().draft
st.title("Moves")
st.caption("From what runs now to the plan, in waves of which none makes anything worse on the way.")
answer = show_solving(draft)
if answer is not None and answer.old:
    st.caption("The waves come with the next plan: those to an old one would lead nowhere.")
elif answer is not None and answer.first:
    st.caption("The waves come with the proven plan.")
elif answer is not None and answer.report.shown.solution.has_plan:
    show_moves(answer)
elif answer is not None:
    st.markdown("There is no plan to move to. The page Plan says what stands against it, and what to relax.")
