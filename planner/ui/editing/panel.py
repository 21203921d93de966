"""The tables on the screen: one form, so that nothing is checked or solved while somebody types."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.planning import known_catalog
from planner.scenario import check_scenario, dump_scenario, parse_scenario
from planner.ui import session
from planner.ui.editing.frames import frame_of, rows_in
from planner.ui.editing.tables import NUMBER, OWNER, TABLES, Column, Fields, Kind, Table, fields_with, rows_of
from planner.ui.faults import show_fault
from planner.ui.workspace import Draft

__all__ = ["show_editing"]

_HEIGHT: Final = 420
_LIMITS: Final = (
    ("spend_usd_per_h", "Spend at most, $/h", float),
    ("max_changes", "Changes at most, replicas", int),
)


def show_editing(draft: Draft) -> bool:
    """Tables of a draft; whether it was changed and should be solved."""
    fields = draft.scenario.model_dump(mode="json", exclude_defaults=True)
    version = f"{draft.name}-{len(draft.past)}-{draft.scenario.fingerprint}"
    with st.form(f"edit-{version}", border=False):
        tabs = st.tabs([*(table.title for table in TABLES), "Limits"])
        edited = dict(fields)
        for tab, table in zip(tabs, TABLES, strict=False):
            with tab:
                edited = _table(edited, table, version)
        with tabs[-1]:
            edited = _limits(edited, draft.scenario)
        apply, solve, _ = st.columns([1, 1, 4])
        only = apply.form_submit_button("Apply", icon=":material/check:", width="stretch")
        both = solve.form_submit_button(
            "Apply and solve", icon=":material/play_arrow:", type="primary", width="stretch"
        )
    if not (only or both):
        return False
    try:
        scenario = check_scenario(edited, catalog=known_catalog())
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was changed.")
        return False
    session.change(lambda draft: draft.edited(scenario))
    return both


def show_text(draft: Draft) -> None:
    """The whole scenario as text, for all that tables do not show."""
    with st.form(f"text-{draft.name}-{draft.scenario.fingerprint}", border=False):
        text = st.text_area(
            "Scenario, YAML",
            dump_scenario(draft.scenario),
            height=_HEIGHT,
            help="Every field; see docs/scenario.md.",
        )
        done = st.form_submit_button("Apply", icon=":material/check:")
    if not done:
        return
    try:
        scenario = parse_scenario(text, name=draft.scenario.name, catalog=known_catalog(), confined=True)
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was changed.")
        return
    session.change(lambda draft: draft.edited(scenario))
    st.rerun()


def _table(fields: Fields, table: Table, version: str) -> Fields:
    rows = rows_of(fields, table)
    frame = frame_of(rows, table)
    configuration: dict[str, Any] = {NUMBER: None, **{c.path: _configured(c) for c in table.columns}}
    if table.owner:
        owners = [owner["id"] for owner in fields[table.owner[0]]]
        configuration[OWNER] = st.column_config.SelectboxColumn(OWNER, options=owners, required=True)
    edited = st.data_editor(
        frame,
        key=f"{table.name}-{version}",
        column_config=configuration,
        hide_index=True,
        num_rows="dynamic" if table.grows else "delete" if len(rows) > 1 else "fixed",
        height=min(_HEIGHT, 38 * (len(rows) + 3)),
        disabled=[column.path for column in table.columns if column.fixed],
    )
    return fields_with(fields, table, rows_in(edited))


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


def _limits(fields: Fields, scenario: Scenario) -> Fields:
    limits = dict(fields.get("limits", {}))
    for name, label, kind in _LIMITS:
        field = type(scenario.limits).model_fields[name]
        value = st.text_input(
            label,
            value="" if limits.get(name) is None else f"{limits[name]:g}",
            help=f"{field.description}; empty: none",
        ).strip()
        limits.pop(name, None)
        if value:
            limits[name] = _number(value, kind)
    return {
        **{key: value for key, value in fields.items() if key != "limits"},
        **({"limits": limits} if limits else {}),
    }


def _number(text: str, kind: type[float] | type[int]) -> float | int | str:
    """The number in a text; what is none stays a text, and is refused where the scenario is checked."""
    try:
        return kind(text)
    except ValueError:
        return text
