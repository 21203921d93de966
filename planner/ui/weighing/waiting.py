"""A task that a page asked for: how far it is, a way to stop it, and what there is of it so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Job, State

__all__ = ["SoFar", "show_waiting"]

_LOOK_AGAIN_S: Final = 0.5
_SEEN: Final = "fleetplan.seen"


@dataclass(frozen=True, slots=True)
class SoFar:
    """What there is.

    Attributes:
        key: of the job; with ``-first`` and a count while it is on its way.
        text: JSON.
        over: nothing more will come.
    """

    key: str
    text: str
    over: bool


def show_waiting(question: str, said: Callable[[Job], tuple[float, str]]) -> SoFar | None:
    """Progress while a task is on its way, its fault where it failed, and what there is of it.

    Args:
        question: that was asked of the session.
        said: share that is done, and a sentence on it.
    """
    job = session.job_of(question)
    if job is None:
        return None
    if job.failure is not None:
        show_sentences(job.failure.message, list(job.failure.findings))
        return None
    if job.result is not None:
        return SoFar(job.task.key, job.result, over=True)
    if job.over:
        st.markdown("It was stopped before there was anything to see.")
        return None
    _show_progress(question, _steps(job), said)
    if job.partial is None:
        return None
    return SoFar(f"{job.task.key}-first-{_steps(job)}", job.partial, over=False)


def _steps(job: Job) -> float:
    """What was counted so far; a page is drawn anew when there is more."""
    return sum(float(event["value"] or 0) for event in job.progress.values())


@st.fragment(run_every=_LOOK_AGAIN_S)
def _show_progress(question: str, seen: float, said: Callable[[Job], tuple[float, str]]) -> None:
    job = session.job_of(question)
    if job is None or job.over or _steps(job) > seen:
        st.rerun()
    share, sentence = (0.0, "Waiting for another task.") if job.state is State.WAITING else said(job)
    st.progress(min(1.0, max(0.0, share)), sentence)
    if st.button(
        "Stop",
        icon=":material/stop:",
        key=f"stop-{question}",
        disabled=job.state is State.STOPPING,
        help="Keep what is found so far.",
    ):
        session.stop(question)
