"""Passing drafts on: the open one as a link, all of them as a file, and a file back into the workspace."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from planner.errors import ConfigurationError
from planner.ui import session
from planner.ui.faults import show_fault
from planner.ui.sharing import file_of, link_of, opened_file
from planner.ui.store import default_folder
from planner.ui.uploads import LIMIT_BYTES, Upload
from planner.ui.workspace import DRAFTS_LIMIT

__all__ = ["address_of", "show_passing_on"]


def show_passing_on() -> None:
    """A link, a file, and an upload."""
    link, file, back = st.columns(3)
    with link:
        _show_link()
    with file:
        _show_file()
    with back:
        _show_back()


def address_of(url: str, page: str, parameter: str) -> str:
    """The address of the app that opens a draft.

    Args:
        url: of the page that the visitor is on.
        page: its last part, which is left away: a link opens on the first page.
        parameter: that holds the draft.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix(f"/{page}").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, f"{path}/", parameter, ""))


def _show_link() -> None:
    workspace = session.workspace()
    st.markdown("**The open draft as a link**")
    st.markdown("It holds a copy: whoever opens it goes on with a workspace of their own, never in yours.")
    if not st.toggle("Make the link", key="make-link"):
        return
    try:
        held = link_of(workspace.draft, workspace.how)
    except ConfigurationError as fault:
        show_fault(fault)
        return
    st.code(
        address_of(st.context.url or "", "what_if", f"{session.LINK}={held}"), language=None, wrap_lines=True
    )


def _show_file() -> None:
    workspace = session.workspace()
    st.markdown("**All drafts as a file**")
    st.markdown("To keep, or to give to somebody who runs fleetplan elsewhere; without the steps back.")
    st.download_button(
        "Download all drafts",
        lambda: file_of(workspace.drafts, workspace.how),
        file_name="drafts.fleetplan.json",
        on_click="ignore",
        mime="application/json",
        icon=":material/download:",
        key="download-drafts",
    )


def _show_back() -> None:
    st.markdown("**Drafts from a file**")
    given = st.file_uploader(
        "A file of drafts",
        type=["json"],
        key="drafts-file",
        help=f"What “Download all drafts” made, at most {LIMIT_BYTES / 1e6:.0f} MB; its drafts stand beside yours.",
    )
    if not st.button("Add its drafts", icon=":material/upload:", disabled=given is None) or given is None:
        return
    try:
        shared = opened_file(Upload(given.name, given.getvalue()), default_folder())
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was added.")
        return
    workspace = session.workspace()
    room = DRAFTS_LIMIT - len(workspace.drafts)
    if len(shared.drafts) > room:
        full = ConfigurationError(
            f"the file holds {len(shared.drafts)} drafts, and there is room for {room}; delete some first"
        )
        show_fault(full, "Nothing was added.")
        return
    for draft in shared.drafts:
        workspace = workspace.added(draft)
    session.keep(workspace)
    st.rerun()
