"""Asking for a plan and watching it come: button, live value and bound, stop; a first answer meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import streamlit as st

from models.report import Report
from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Failure, Job, State
from planner.ui.workspace import Draft
from planner.wording.numbers import number, percent

__all__ = ["QUESTION", "Answer", "show_solving"]

QUESTION: Final = "plan"
_LOOK_AGAIN_S: Final = 0.4


@dataclass(frozen=True, slots=True)
class Answer:
    """What there is to draw.

    Attributes:
        report: of the draft as it is now.
        first: it is greedy's, the proven one is on its way.
    """

    report: Report
    first: bool


def show_solving(draft: Draft) -> Answer | None:
    """Controls and progress of solving, and what there is to draw so far.

    The first visit is solved without asking, so that there is something to look at.
    """
    task = session.plan_task_of(draft)
    if session.asked(QUESTION) is None:
        session.ask(QUESTION, task)
    job = session.workers().look(task.key)
    if job is None or job.state is State.STOPPED:
        _show_button(draft, "Solve", primary=True)
        return None
    if job.failure is not None:
        _show_failure(job.failure)
        _show_button(draft, "Try again")
        return None
    if not job.over:
        _show_progress(task.key)
        if job.partial is None:
            return None
        return Answer(session.read_report(f"{task.key}-first", job.partial), first=True)
    report = session.report_of(draft)
    return None if report is None else Answer(report, first=False)


def _show_button(draft: Draft, label: str, *, primary: bool = False) -> None:
    if st.button(
        label, type="primary" if primary else "secondary", icon=":material/play_arrow:", key="solve"
    ):
        session.ask(QUESTION, session.plan_task_of(draft))
        st.rerun()


@st.fragment(run_every=_LOOK_AGAIN_S)
def _show_progress(key: str) -> None:
    job = session.workers().look(key)
    if job is None or job.over:
        st.rerun()
    said, button = st.columns([5, 1], vertical_alignment="center")
    said.markdown(_sentence(job))
    label = "Stopping" if job.state is State.STOPPING else "Stop"
    stops = button.button(
        label,
        icon=":material/stop:",
        disabled=job.state is State.STOPPING,
        help="End with the best plan so far.",
        key="stop",
    )
    if stops:
        session.stop(QUESTION)
    if job.partial is not None and st.session_state.get("fleetplan.partial") != key:
        st.session_state["fleetplan.partial"] = key
        st.rerun()


def _sentence(job: Job) -> str:
    if job.state is State.WAITING:
        return "Waiting for another plan to be finished."
    levels = list(job.progress.values())
    if not levels:
        return f"Sizing and formulating, {job.seconds:.1f} s."
    latest = levels[-1]
    value, bound, gap = (latest[name] for name in ("value", "bound", "gap"))
    parts = [
        f"**{latest['level']}**",
        f"value {number(value)}" if value is not None else "no plan yet",
        f"proven bound {number(bound)}" if bound is not None else "no bound yet",
        f"gap {percent(gap)}" if gap is not None else "",
    ]
    return f"Solving, {job.seconds:.1f} s: " + ", ".join(part for part in parts if part) + "."


def _show_failure(failure: Failure) -> None:
    show_sentences(failure.message, list(failure.findings))
