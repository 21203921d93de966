"""Everything that can be edited, in parts; each is a form, so that nothing is checked or solved while somebody types."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.ui.editing.adding import show_adding
from planner.ui.editing.how import show_how
from planner.ui.editing.sheets import show_sheets
from planner.ui.editing.text import show_text
from planner.ui.workspace import Draft

__all__ = ["PARTS", "show_editing"]

PARTS: Final = ("Tables", "Add", "Text", "How to solve")


def show_editing(draft: Draft) -> bool:
    """What can be edited, where somebody wants to; whether something was changed and should be solved."""
    with st.expander("Edit the scenario", icon=":material/edit:", key="editing", on_change="rerun") as box:
        if not box.open:
            return False
        part = st.radio("What to edit", PARTS, horizontal=True, key="editing-part")
        if part == "Add":
            if show_adding(draft):
                st.rerun()
            return False
        if part == "Text":
            return show_text(draft)
        if part == "How to solve":
            return show_how()
        return show_sheets(draft)
