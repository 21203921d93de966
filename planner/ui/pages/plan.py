"""Plan: what is to be served and where, solved; greedy at once, the optimum when it is proven."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.solving import show_solving

draft = session.workspace().draft
st.title(draft.scenario.name)
report = show_solving(draft)
