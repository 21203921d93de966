"""Trade-offs: two objectives weighed against one another, and what the answer hangs on."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.weighing.sensing import show_sensing
from planner.ui.weighing.weighing import show_weighing

draft = session.workspace().draft
st.title("Trade-offs")
st.header("What one objective costs in another")
show_weighing(draft)
st.header("What the answer hangs on")
show_sensing(draft)
