"""Solving every draft that is not solved, one after the other, and how far that is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from models.report import Report
from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Job, State
from planner.ui.words import plain
from planner.ui.workspace import Draft

__all__ = ["reports_of", "show_solving_all"]

_LOOK_AGAIN_S: Final = 0.5


def reports_of(drafts: Sequence[Draft]) -> dict[str, Report | None]:
    """The report of every draft as it is now, by name; None where it is not solved."""
    return {draft.name: session.report_of(draft) for draft in drafts}


def show_solving_all(drafts: Sequence[Draft]) -> None:
    """A button for all that are not solved, progress, and what went wrong."""
    jobs = {draft.name: session.workers().look(session.plan_task_of(draft).key) for draft in drafts}
    missing = [draft for draft in drafts if (job := jobs[draft.name]) is None or job.result is None]
    for name, job in jobs.items():
        if job is not None and job.failure is not None:
            st.markdown(f"**{plain(name)}**")
            show_sentences(job.failure.message, list(job.failure.findings))
    running = [name for name, job in jobs.items() if job is not None and not job.over]
    if running:
        _show_progress(tuple(drafts), len(running))
        return
    if not missing:
        return
    noun = "draft that is" if len(missing) == 1 else "drafts that are"
    if st.button(
        f"Solve {len(missing)} {noun} not solved",
        type="primary",
        icon=":material/play_arrow:",
        key="solve-all",
    ):
        for draft in missing:
            session.ask(_question(draft.name), session.plan_task_of(draft))
        st.rerun()


def _question(name: str) -> str:
    return f"plan-{name}"


@st.fragment(run_every=_LOOK_AGAIN_S)
def _show_progress(drafts: Sequence[Draft], before: int) -> None:
    jobs = {draft.name: session.workers().look(session.plan_task_of(draft).key) for draft in drafts}
    running = {name: job for name, job in jobs.items() if job is not None and not job.over}
    if len(running) < before:
        st.rerun()
    asked = [job for job in jobs.values() if job is not None]
    st.progress(1 - len(running) / max(1, len(asked)), f"{len(asked) - len(running)} of {len(asked)} solved")
    for name, job in running.items():
        st.markdown(f"{plain(name)}: {_said(job)}")
    if st.button("Stop solving", icon=":material/stop:", key="stop-all", help="Keep what is solved."):
        for name in running:
            session.stop(_question(name))


def _said(job: Job) -> str:
    match job.state:
        case State.WAITING:
            return "waiting"
        case State.STOPPING:
            return "stopping"
        case _:
            latest = list(job.progress.values())[-1:]
            level = f", {plain(str(latest[0]['level']))}" if latest else ""
            return f"solving, {job.seconds:.1f} s{level}"
