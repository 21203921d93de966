"""The row of drafts: duplicate, rename, delete, and take the last of these back."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.ui import session
from planner.ui.workspace import DRAFTS_LIMIT, Draft, Step, StepKind

__all__ = ["show_managing"]

_DONE: Final = {StepKind.ADDED: "add", StepKind.REMOVED: "delete", StepKind.RENAMED: "rename"}


def show_managing() -> None:
    """A form for one draft, and a button that takes the last step back."""
    workspace = session.workspace()
    names = [draft.name for draft in workspace.drafts]
    chosen = st.selectbox(
        "Which draft", names, index=names.index(workspace.opened), key=f"manage-{workspace.opened}"
    )
    with st.form("manage", border=False, clear_on_submit=True):
        name = st.text_input("New name", max_chars=60, help="For a rename, or for the duplicate.")
        with st.container(horizontal=True):
            twin = st.form_submit_button(
                "Duplicate", icon=":material/content_copy:", disabled=len(names) >= DRAFTS_LIMIT
            )
            rename = st.form_submit_button("Rename", icon=":material/edit:")
            delete = st.form_submit_button("Delete", icon=":material/delete:", disabled=len(names) == 1)
    draft = next(each for each in workspace.drafts if each.name == chosen)
    if twin:
        session.keep(
            workspace.added(
                Draft(name=" ".join(name.split()) or f"{chosen[:52]} copy", scenario=draft.scenario)
            )
        )
        st.rerun()
    if rename and name.strip():
        session.keep(workspace.renamed(chosen, name))
        st.rerun()
    if rename:
        st.markdown(":red[:material/error:] Type the new name first.")
    if delete:
        session.keep(workspace.removed(chosen))
        st.rerun()
    _show_taking_back()


def _show_taking_back() -> None:
    workspace = session.workspace()
    if not workspace.steps:
        return
    if st.button(_label(workspace.steps[-1]), icon=":material/undo:", key="take-back"):
        session.keep(workspace.taken_back())
        st.rerun()


def _label(step: Step) -> str:
    return f"Undo: {_DONE[step.kind]} “{step.name}”"
