"""Candidate: one variant with all that is known of it, and where each number is from."""

from __future__ import annotations

import streamlit as st

from models.picture import CandidatePicture
from planner.ui import session
from planner.ui.answers.candidate import show_candidate
from planner.ui.choosing import choose
from planner.ui.tasks.candidate import candidate_task
from planner.ui.waiting import show_until_done

draft = session.workspace().draft
st.title("Candidate")
st.caption("What one replica of a variant holds, carries, costs and draws, and who says so.")
*places, pool = st.columns(4)
choice = choose(draft, places)
if choice is None:
    st.markdown("No service of this draft has a variant of its own: give one, on the page Plan.")
else:
    task = candidate_task(draft.scenario, choice.service, choice.variant, choice.bucket)
    result = show_until_done("candidate", task, doing="Looking at the variant")
    if result is not None:
        show_candidate(CandidatePicture.model_validate_json(result), pool)
