"""The whole scenario as text, for all that tables do not show."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import streamlit as st

from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.scenario import dump_scenario, parse_scenario
from planner.ui import session
from planner.ui.editing.knowledge import catalog
from planner.ui.faults import show_fault
from planner.ui.store import default_folder
from planner.ui.workspace import Draft

__all__ = ["show_text"]

_HEIGHT: Final = 480


def show_text(draft: Draft) -> bool:
    """A form with the scenario as YAML; whether it was changed and should be solved."""
    scenario = draft.scenario
    with st.form(f"text-{draft.name}-{scenario.fingerprint}", border=False):
        text = st.text_area(
            "Scenario, YAML",
            _text_of(scenario.fingerprint, scenario),
            height=_HEIGHT,
            help="Every field is described in docs/scenario.md.",
        )
        only, both = _buttons()
    if not (only or both):
        return False
    try:
        new = parse_scenario(
            text, name=scenario.name, base_folder=_tables_of(scenario), catalog=catalog(), confined=True
        )
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was changed.")
        return False
    session.change(lambda draft: draft.edited(new))
    if only:
        st.rerun()
    return both


def _buttons() -> tuple[bool, bool]:
    apply, solve, _ = st.columns([1, 1, 3])
    only = apply.form_submit_button("Apply text", icon=":material/check:", width="stretch")
    both = solve.form_submit_button(
        "Apply text and solve", icon=":material/play_arrow:", type="primary", width="stretch"
    )
    return only, both


@st.cache_resource(show_spinner=False, max_entries=10)
def _text_of(fingerprint: str, _scenario: Scenario) -> str:
    return dump_scenario(_scenario)


def _tables_of(scenario: Scenario) -> Path | None:
    """The folder of the tables that came with a scenario: the only files that its text may name."""
    folders = {Path(profile).parent for profile in scenario.profiles}
    kept = default_folder() / "tables"
    return folders.pop() if len(folders) == 1 and next(iter(folders)).is_relative_to(kept) else None
