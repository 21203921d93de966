"""Asking for a plan and watching it come: button, live value and bound, stop; a first answer meanwhile.

What was answered before an edit stays on the page, marked as such, until there is an answer to the draft as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import streamlit as st

from models.report import Report
from models.solution import Level
from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Failure, Job, State
from planner.ui.waiting import HowFar, patiently, watch
from planner.ui.words import said
from planner.ui.workspace import Draft
from planner.wording import level_name, percent, quantity

__all__ = ["QUESTION", "Answer", "ask_plan", "show_solving"]

QUESTION: Final = "plan"
_PATIENCE_S: Final = 0.8
"""A page waits so long for an answer before it draws progress: most are there by then."""

_DRAWING: Final = ("pandas", "altair")
"""What an answer is drawn with; loaded while it is on its way."""

_ANSWERED: Final = "fleetplan.answered"


@dataclass(frozen=True, slots=True)
class Answer:
    """What there is to draw.

    Attributes:
        key: of the job that it comes from; what is worked out of it is kept under this.
        report: of the draft as it is now, or where ``old`` of what it was.
        first: it is greedy's, the proven one is on its way.
        old: the draft, or how it is solved, was changed since.
    """

    key: str
    report: Report
    first: bool = False
    old: bool = False


def ask_plan() -> None:
    """Have the open draft planned, as it is now."""
    session.ask(QUESTION, session.plan_task_of(session.workspace().draft))


def show_solving(draft: Draft) -> Answer | None:
    """Controls and progress of solving, and what there is to draw so far.

    The first visit is solved without asking, so that there is something to look at.
    """
    key = session.plan_task_of(draft).key
    if session.asked(QUESTION) is None:
        ask_plan()
    job = _patiently(key)
    if job is not None and job.result is not None:
        _show_going_on(job)
        return _current(draft, job)
    if job is not None and not job.over:
        watch(job, _how_far, help="End with the best plan so far.")
        if job.partial is not None:
            first = f"{job.answer}-first"
            return Answer(first, session.read_report(first, job.partial), first=True)
        return _old(draft)
    if job is not None and job.failure is not None:
        _show_failure(job.failure)
    old = _old(draft)
    _show_button(job, old)
    return old


def _patiently(key: str) -> Job | None:
    job = session.workers().look(key)
    if job is not None and not job.over:
        for name in _DRAWING:
            import_module(name)
    return patiently(QUESTION, key, seconds=_PATIENCE_S)


def _show_going_on(job: Job) -> None:
    """A way to the proof that somebody did not wait for."""
    if not job.cut:
        return
    words, button = st.columns([5, 1], vertical_alignment="center")
    words.markdown(
        ":orange[:material/timer_off:] It was stopped: this is the best plan so far, and how good that is."
    )
    if button.button("Solve on", icon=":material/play_arrow:", key="solve-on", width="stretch"):
        session.ask(QUESTION, job.task, again=True)
        st.rerun()


def _current(draft: Draft, job: Job) -> Answer | None:
    report = session.report_of(draft)
    if report is None:
        return None
    _answered()[draft.name] = job.task.key
    return Answer(job.answer, report)


def _old(draft: Draft) -> Answer | None:
    """What the draft was answered before it was changed."""
    key = _answered().get(draft.name)
    job = None if key is None else session.workers().look(key)
    if key is None or job is None or job.result is None:
        return None
    return Answer(job.answer, session.read_report(job.answer, job.result), old=True)


def _answered() -> dict[str, str]:
    """Jobs with the last answers, by draft."""
    answered: dict[str, str] = st.session_state.setdefault(_ANSWERED, {})
    return answered


def _show_button(job: Job | None, old: Answer | None) -> None:
    if old is not None:
        st.warning(
            "Edited since this plan: solve again. All below is about the scenario as it was.",
            icon=":material/history:",
        )
    elif job is None:
        st.markdown(
            "Nobody has planned this draft yet. **Solve** finds which variant runs how often on which GPUs, proves how "
            "good that is, and says what limits it."
        )
    elif job.state is State.STOPPED:
        st.markdown("Stopped before there was a plan.")
    label = "Try again" if job is not None and job.failure is not None else "Solve"
    if st.button(label, type="primary", icon=":material/play_arrow:", key="solve"):
        ask_plan()
        st.rerun()


def _how_far(job: Job) -> HowFar:
    """How far each level is, the one that is worked on first."""
    levels = list(job.progress.values())
    if not levels:
        return HowFar(f"Sizing and formulating, {job.seconds:.1f} s.")
    sentences = [_sentence(level) for level in levels]
    return HowFar(f"Solving, {job.seconds:.1f} s: **{said(sentences[-1])}**", before=tuple(sentences[:-1]))


def _sentence(latest: Any) -> str:  # noqa: ANN401 - an event as JSON holds it
    name = level_name(Level(name=latest["level"], value=0.0))
    value, bound, gap = (latest[key] for key in ("value", "bound", "gap"))
    parts = [
        f"value {quantity(value, '')}" if value is not None else "no plan yet",
        f"proven bound {quantity(bound, '')}" if bound is not None else "no bound yet",
        f"gap {percent(gap)}" if gap is not None else "",
    ]
    return f"{name}: {', '.join(part for part in parts if part)}"


def _show_failure(failure: Failure) -> None:
    show_sentences(failure.message, list(failure.findings))
