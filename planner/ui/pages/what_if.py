"""What-if: drafts of a scenario side by side, one thing changed in each, and what came of it."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.comparing.changing import show_changing
from planner.ui.comparing.differing import show_differing
from planner.ui.comparing.managing import show_managing
from planner.ui.comparing.passing_on import show_passing_on
from planner.ui.comparing.side_by_side import show_side_by_side
from planner.ui.comparing.solving_all import reports_of, show_solving_all

workspace = session.workspace()
drafts = workspace.drafts
names = [draft.name for draft in drafts]

st.title("What-if")
st.markdown(
    "Change one thing in a copy of the open draft, solve, and see beside each other what it costs, serves and draws."
)
controls, row = st.columns([3, 2])
with controls:
    st.header("Change one thing")
    show_changing(workspace.draft)
with row:
    st.header("Drafts")
    show_managing()

st.header("Side by side")
show_solving_all(drafts)
reports = reports_of(drafts)
against = names[0]
if len(drafts) == 1:
    st.info(
        "There is one draft. Change one thing in a new draft, and both stand here.",
        icon=":material/compare_arrows:",
    )
else:
    against = st.selectbox("Compare with", names, key="against", help="Differences are to this draft.")
show_side_by_side(reports, against)

if len(drafts) > 1:
    st.header("What changed, and why")
    others = [name for name in names if name != against]
    first = others.index(workspace.opened) if workspace.opened in others else 0
    other = st.selectbox("Which draft, against the one above", others, index=first)
    by_name = {draft.name: draft for draft in drafts}
    show_differing(by_name[against], by_name[other], reports)

st.header("Pass on")
show_passing_on()
