"""Work that a page needs before it can draw: asked for once, waited for a moment, then watched."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Job, State, Task

__all__ = ["show_until_done"]

_PATIENCE_S: Final = 1.0
"""A page waits so long before it draws that something is being worked out."""

_LOOK_AGAIN_S: Final = 0.4
_WAITED: Final = "fleetplan.waited-for"


def show_until_done(question: str, task: Task, *, doing: str) -> str | None:
    """The result of a task, JSON; None while there is none, with the reason on the page.

    Args:
        question: of this visitor; another task for it takes the place of this one.
        task: what is needed.
        doing: what is being done, for those who wait.
    """
    if session.asked(question) != task.key or session.workers().look(task.key) is None:
        session.ask(question, task)
    job = _patiently(question, task.key)
    if job is None:
        return None
    if job.result is not None:
        return job.result
    if not job.over:
        _show_progress(question, doing)
        return None
    if job.failure is not None:
        show_sentences(job.failure.message, list(job.failure.findings))
    else:
        st.markdown("Stopped before it was done.")
    if st.button("Try again", icon=":material/refresh:", key=f"again-{question}"):
        session.ask(question, task)
        st.rerun()
    return None


def _patiently(question: str, key: str) -> Job | None:
    """The job; one that just began is given a moment, once, since most need no more."""
    job = session.workers().look(key)
    waited: dict[str, str] = st.session_state.setdefault(_WAITED, {})
    if job is None or job.over or waited.get(question) == key:
        return job
    waited[question] = key
    return session.workers().wait(key, _PATIENCE_S)


@st.fragment(run_every=_LOOK_AGAIN_S)
def _show_progress(question: str, doing: str) -> None:
    job = session.job_of(question)
    if job is None or job.over:
        st.rerun()
    words, button = st.columns([5, 1], vertical_alignment="center")
    waits = job.state is State.WAITING
    words.markdown("Waiting for other work to be done." if waits else f"{doing}, {job.seconds:.1f} s.")
    stopped = button.button(
        "Stop",
        icon=":material/stop:",
        key=f"stop-{question}",
        disabled=job.state is State.STOPPING,
        width="stretch",
    )
    if stopped:
        session.stop(question)
