"""Edited fields become the scenario of the open draft, or sentences that say why they cannot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.scenario import check_scenario
from planner.ui import session
from planner.ui.editing.knowledge import catalog
from planner.ui.faults import show_fault

__all__ = ["fields_of", "keep_fields"]

Fields = dict[str, Any]


@st.cache_resource(show_spinner=False, max_entries=20)
def _fields(fingerprint: str, _scenario: Scenario) -> Fields:
    return _scenario.model_dump(mode="json", exclude_defaults=True)


def fields_of(scenario: Scenario) -> Fields:
    """The bare values of a scenario without defaults; everyone has the same ones, so nobody may change them."""
    return _fields(scenario.fingerprint, scenario)


def keep_fields(edit: Callable[[Fields], Fields]) -> bool:
    """Change the open draft by its bare values; all that is wrong with what comes out is shown, and nothing changed."""
    fields = fields_of(session.workspace().draft.scenario)
    try:
        scenario = check_scenario(edit(fields), catalog=catalog())
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was changed.")
        return False
    session.change(lambda draft: draft.edited(scenario))
    return True
