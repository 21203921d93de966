"""Tables of a scenario on the screen, and rules that speak of all of it, in one form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from models.scenario import Scenario
from planner.ui.editing.edits import fields_of, keep_fields
from planner.ui.editing.frames import frame_of, rows_in
from planner.ui.editing.parts import without_strays
from planner.ui.editing.rules import fields_with_rules, show_rules
from planner.ui.editing.tables import NUMBER, OWNER, TABLES, Column, Kind, Table, fields_with, rows_of
from planner.ui.workspace import Draft

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["show_sheets"]

_HEIGHT: Final = 420
_ROW: Final = 38


def show_sheets(draft: Draft) -> bool:
    """The form; whether something was changed and should be solved."""
    scenario = draft.scenario
    version = f"{draft.name}-{len(draft.past)}-{scenario.fingerprint}"
    with st.form(f"edit-{version}", border=False):
        tabs = st.tabs([*(table.title for table in TABLES), "Rules"])
        frames: dict[str, pd.DataFrame] = {}
        for tab, table in zip(tabs, TABLES, strict=False):
            with tab:
                frames[table.name] = _show_table(scenario, table, version)
        with tabs[-1]:
            rules = show_rules(scenario)
        apply, solve, _ = st.columns([1, 1, 3])
        only = apply.form_submit_button("Apply", icon=":material/check:", width="stretch")
        both = solve.form_submit_button(
            "Apply and solve", icon=":material/play_arrow:", type="primary", width="stretch"
        )
    if not (only or both):
        return False
    kept = keep_fields(lambda fields: _edited(fields, scenario, frames, rules))
    if kept and only:
        st.rerun()
    return kept


def _edited(
    fields: dict[str, Any],
    scenario: Scenario,
    frames: Mapping[str, pd.DataFrame],
    rules: Mapping[tuple[str, str], object],
) -> dict[str, Any]:
    edited = fields
    for table in TABLES:
        frame = frames[table.name]
        if not frame.equals(_frame(scenario.fingerprint, table.name, scenario)):
            edited = fields_with(edited, table, rows_in(frame))
    return without_strays(fields_with_rules(edited, rules), fields)


@st.cache_resource(show_spinner=False, max_entries=60)
def _frame(fingerprint: str, name: str, _scenario: Scenario) -> pd.DataFrame:
    table = next(table for table in TABLES if table.name == name)
    return frame_of(rows_of(fields_of(_scenario), table), table)


def _show_table(scenario: Scenario, table: Table, version: str) -> pd.DataFrame:
    frame = _frame(scenario.fingerprint, table.name, scenario)
    if table.about:
        st.caption(table.about)
    configuration: dict[str, Any] = {NUMBER: None, **{c.path: _configured(c) for c in table.columns}}
    if table.owner:
        owners = [pool.id for pool in scenario.pools]
        configuration[OWNER] = st.column_config.SelectboxColumn(OWNER, options=owners, required=True)
    edited: pd.DataFrame = st.data_editor(
        frame,
        key=f"{table.name}-{version}",
        column_config=configuration,
        hide_index=True,
        num_rows="dynamic" if table.grows else "delete" if len(frame) > 1 else "fixed",
        height=min(_HEIGHT, _ROW * (len(frame) + 3)),
        disabled=[column.path for column in table.columns if column.fixed],
        placeholder="",
        alt=f"{table.title} of the scenario, one row each",
    )
    return edited


def _configured(column: Column) -> Any:  # noqa: ANN401 - a column configuration
    match column.kind:
        case Kind.NUMBER:
            return st.column_config.NumberColumn(column.label, help=column.help)
        case Kind.COUNT:
            return st.column_config.NumberColumn(column.label, help=column.help, step=1)
        case Kind.FLAG:
            return st.column_config.CheckboxColumn(column.label, help=column.help)
        case Kind.TEXT:
            return st.column_config.TextColumn(column.label, help=column.help, max_chars=200)
