"""What a visitor has to know about the workspace: it stays on the page until it was read, or is not so any more."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import streamlit as st

__all__ = ["Notice", "give", "show_notices", "take_back"]

_NOTICES: Final = "fleetplan.notices"


class Notice(StrEnum):
    """What there can be to know."""

    COPIED = "This address was made for another browser: you go on with a copy."
    OVERTAKEN = (
        "Another tab changed this workspace meanwhile. Both are kept: you go on here in a copy, under an address of "
        "its own."
    )
    NOT_KEPT = "The last change could not be written to disk; a reload will lose it."


_ICONS: Final = {
    Notice.COPIED: ":material/content_copy:",
    Notice.OVERTAKEN: ":material/content_copy:",
    Notice.NOT_KEPT: ":material/warning:",
}


def give(notice: Notice) -> None:
    """Have it on every page from now on."""
    _given()[notice] = True


def take_back(notice: Notice) -> None:
    """It is not so any more."""
    _given().pop(notice, None)


def show_notices() -> None:
    """All that was not read yet, each with a button that says it was."""
    for notice in [*_given()]:
        words, button = st.columns([6, 1], vertical_alignment="center")
        words.info(notice.value, icon=_ICONS[notice])
        button.button(
            "Got it", key=f"read-{notice.name}", on_click=take_back, args=(notice,), width="stretch"
        )


def _given() -> dict[Notice, bool]:
    given: dict[Notice, bool] = st.session_state.setdefault(_NOTICES, {})
    return given
