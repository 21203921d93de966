"""Replay: traffic against the fleet of the draft, under several policies, before anyone pays for it."""

from __future__ import annotations

import streamlit as st

from planner.ui import session
from planner.ui.replaying.asking import QUESTION, show_asking
from planner.ui.replaying.playing import how_far, show_played
from planner.ui.waiting import say_if_of_another, show_waiting

draft = session.workspace().draft
st.title("Replay")
st.caption("Traffic against the fleet of the draft, request by request, in the digital twin.")
show_asking(draft)
found = show_waiting(QUESTION, how_far)
if found is not None:
    say_if_of_another(QUESTION, draft)
    show_played(found)
elif session.asked(QUESTION) is None:
    st.info(
        "Choose traffic and policies: each policy is played on the same requests, and you see whom it serves, how fast, "
        "and what it costs.",
        icon=":material/replay:",
    )
