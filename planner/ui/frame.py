"""The frame around all pages: navigation, which draft is open, undo and redo."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner import __version__
from planner.ui import session
from planner.ui.faults import show_fault
from planner.ui.notices import show_notices
from planner.ui.opening import show_opening
from planner.ui.pages import PAGES
from planner.ui.seeing import show_assumptions

__all__ = ["show"]

_ICON: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="#0b5cad">'
    '<rect x="2" y="3" width="20" height="8" rx="2"/><rect x="2" y="13" width="20" height="8" rx="2"/>'
    '<circle cx="6" cy="7" r="1.5" fill="#fff"/><circle cx="6" cy="17" r="1.5" fill="#fff"/></svg>'
)
"""Served by the app itself: for the symbol of a font, browsers would ask a server elsewhere."""


def show() -> None:
    """Run the app: the frame, then the page that the visitor is on."""
    st.set_page_config(
        page_title="fleetplan",
        page_icon=_ICON,
        layout="wide",
        menu_items={
            "About": f"fleetplan {__version__}: how many replicas of which variant run on which GPUs."
        },
    )
    session.workers()  # its process loads the solvers while the page is drawn
    session.open_workspace()
    if (fault := session.link_fault()) is not None:
        show_fault(fault, "An example is open instead.")
    page = st.navigation(
        [
            st.Page(each.path, title=each.title, icon=each.icon, url_path=each.name, default=each is PAGES[0])
            for each in PAGES
        ]
    )
    with st.sidebar:
        _show_open_draft()
        with st.expander("Open or keep", icon=":material/folder:"):
            show_opening()
    show_notices()
    page.run()


def _show_open_draft() -> None:
    workspace = session.workspace()
    names = [draft.name for draft in workspace.drafts]
    opened = st.selectbox(
        "Draft", names, index=names.index(workspace.opened), help="The scenario that the pages show."
    )
    if opened != workspace.opened:
        session.keep(workspace.open(opened))
        st.rerun()
    draft = workspace.draft
    show_assumptions(draft.name)
    back, forth = st.columns(2)
    if back.button("Undo", icon=":material/undo:", disabled=not draft.past, width="stretch"):
        session.change(lambda draft: draft.undone())
        st.rerun()
    if forth.button("Redo", icon=":material/redo:", disabled=not draft.future, width="stretch"):
        session.change(lambda draft: draft.redone())
        st.rerun()
