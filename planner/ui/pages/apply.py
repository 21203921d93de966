"""Apply: the plan as commands, compared with the cluster, and carried out where that is allowed."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.carrying.showing import show_apply
from planner.ui.solving import show_solving

draft = session.workspace().draft
st.title("Apply")
st.caption("From the plan to the cluster: what differs, then wave by wave, each looked at afresh.")
answer = show_solving(draft)
if answer is not None and (answer.old or answer.first):
    st.caption("Only the proven plan to the draft as it is can be carried out: it is on its way.")
elif answer is not None and answer.report.shown.solution.has_plan:
    show_apply(answer, draft.name)
elif answer is not None:
    st.markdown(
        "There is no plan to carry out. The page Plan says what stands against it, and what to relax."
    )
