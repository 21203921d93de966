"""Elastic EP: sizes of an elastic deployment, ways to another size beside each other, and the calls."""

from __future__ import annotations

import streamlit as st

from planner.elasticity import elastic_pictures
from planner.errors import ConfigurationError
from planner.ui import session
from planner.ui.answers.elastic import show_deployment
from planner.ui.faults import show_sentences

draft = session.workspace().draft
st.title("Elastic EP")
st.caption(
    "Deployments that change size in place: which sizes they reach, what each way takes, what to call."
)
try:
    pictures = elastic_pictures(draft.scenario)
except ConfigurationError as error:
    show_sentences(str(error), [])
else:
    if pictures:
        show_deployment(draft.scenario, pictures)
    else:
        st.markdown(
            "No variant of this draft is elastic. The example **10-elastic-ep** has one; a variant becomes elastic by "
            "`elastic:` in the scenario."
        )
