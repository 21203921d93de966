"""Opening and keeping scenarios: examples, files of the visitor, and the open draft as a file."""

from __future__ import annotations

import streamlit as st

from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.scenario import dump_scenario
from planner.ui import session
from planner.ui.examples import example, examples
from planner.ui.faults import show_fault
from planner.ui.seeing import open_observation, show_observing
from planner.ui.store import default_folder
from planner.ui.uploads import LIMIT_BYTES, Upload, observation_of, scenario_of
from planner.ui.workspace import DRAFTS_LIMIT, Draft

__all__ = ["show_opening"]


def show_opening() -> None:
    """An example or a file into a draft of its own; the open draft as a file."""
    draft = session.workspace().draft
    full = len(session.workspace().drafts) >= DRAFTS_LIMIT
    name = st.selectbox("Example", list(examples()), key="example")
    if st.button("Open example", icon=":material/folder_open:", disabled=full, width="stretch"):
        _open(example(name))
    files = st.file_uploader(
        "Your scenario",
        type=["yaml", "yml", "json", "jsonl", "csv"],
        accept_multiple_files=True,
        key="upload",
        help=f"One YAML file, and the CSV tables that it names as profiles; {LIMIT_BYTES / 1e6:.0f} MB each. Or what "
        "'fleetplan observe -o' wrote: it becomes a draft, with all that is assumed.",
    )
    if st.button("Open files", icon=":material/upload:", disabled=full or not files, width="stretch"):
        _open_files([Upload(file.name, file.getvalue()) for file in files or ()])
    show_observing(full=full)
    if full:
        st.caption(
            f"There are {DRAFTS_LIMIT} drafts, as many as there can be; delete one on the page What-if."
        )
    st.download_button(
        "Download draft",
        lambda: dump_scenario(draft.scenario),
        file_name=f"{_file_name(draft.name)}.yaml",
        on_click="ignore",
        mime="application/yaml",
        icon=":material/download:",
        width="stretch",
    )


def _open_files(uploads: list[Upload]) -> None:
    try:
        seen = observation_of(uploads)
        if seen is None:
            _open(scenario_of(uploads, default_folder()))
        else:
            open_observation(seen)
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was opened.")


def _open(scenario: Scenario) -> None:
    session.keep(session.workspace().added(Draft(name=scenario.name[:60], scenario=scenario)))
    st.rerun()


def _file_name(name: str) -> str:
    return (
        "".join(
            letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "-" for letter in name
        )
        or "scenario"
    )
