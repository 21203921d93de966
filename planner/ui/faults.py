"""What is wrong, as sentences, each with the field it is about."""

from __future__ import annotations

import streamlit as st

from planner.errors import ConfigurationError

__all__ = ["show_fault", "show_sentences"]


def show_fault(fault: ConfigurationError, consequence: str = "") -> None:
    """All that is wrong with an input, at once."""
    heading = str(fault).splitlines()[0].removesuffix(":")
    show_sentences(f"{heading}. {consequence}".strip(), [str(finding) for finding in fault.findings])


def show_sentences(heading: str, sentences: list[str]) -> None:
    """A heading and its sentences as bare text: names in them come from files, and are never markup."""
    with st.container(border=True):
        st.markdown(":red[:material/error:] **This does not work yet**")
        st.text(heading)
        for sentence in sentences:
            st.text(f"• {sentence}")
