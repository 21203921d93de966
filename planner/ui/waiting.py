"""Work that is on its way: how far it is, a way to stop it, and what there is of it so far; one look for all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Job, State, Task
from planner.ui.words import said
from planner.ui.workspace import Draft

__all__ = ["HowFar", "SoFar", "patiently", "say_if_of_another", "show_until_done", "show_waiting", "watch"]

_PATIENCE_S: Final = 1.0
"""A page waits so long before it draws that something is being worked out: most is there by then."""

_LOOK_AGAIN_S: Final = 0.4
_WAITED: Final = "fleetplan.waited-for"


@dataclass(frozen=True, slots=True)
class HowFar:
    """What is told of work that goes on.

    Attributes:
        text: where it is; Markdown.
        share: that is done; None: nobody knows.
        before: what was told of earlier parts.
    """

    text: str
    share: float | None = None
    before: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SoFar:
    """What there is of an answer.

    Attributes:
        key: what it is remembered by; with ``-first`` and a count while it is on its way.
        text: JSON.
        over: nothing more will come.
    """

    key: str
    text: str
    over: bool


def show_waiting(question: str, tell: Callable[[Job], HowFar]) -> SoFar | None:
    """Progress while a task is on its way, its fault where it failed, and what there is of it.

    Args:
        question: that was asked of the session.
        tell: how far a running job is.
    """
    job = session.job_of(question)
    if job is None:
        return None
    if job.failure is not None:
        show_sentences(job.failure.message, list(job.failure.findings))
        return None
    if job.result is not None:
        return SoFar(job.answer, job.result, over=True)
    if job.over:
        st.markdown("It was stopped before there was anything to see.")
        return None
    watch(job, tell)
    if job.partial is None:
        return None
    return SoFar(f"{job.answer}-first-{job.partials}", job.partial, over=False)


def show_until_done(question: str, task: Task, *, doing: str) -> str | None:
    """The result of a task that is asked for without being told to; None while there is none.

    Args:
        question: of this visitor; another task for it takes the place of this one.
        task: what is needed.
        doing: what is being done, for those who wait.
    """
    if session.asked(question) != task.key or session.workers().look(task.key) is None:
        session.ask(question, task)
    job = patiently(question, task.key)
    if job is None:
        return None
    if job.result is not None:
        return job.result
    if not job.over:
        watch(job, lambda job: HowFar(f"{doing}, {job.seconds:.1f} s."))
        return None
    if job.failure is not None:
        show_sentences(job.failure.message, list(job.failure.findings))
    else:
        st.markdown("Stopped before it was done.")
    if st.button("Try again", icon=":material/refresh:", key=f"again-{question}"):
        session.ask(question, task)
        st.rerun()
    return None


def say_if_of_another(question: str, draft: Draft) -> None:
    """Say so where what is shown was asked of another draft, or of what this one was."""
    job = session.job_of(question)
    fields = session.plan_task_of(draft).arguments["scenario"]
    if job is not None and job.task.arguments["scenario"] != fields:
        st.markdown(":orange[:material/history:] This is of what the draft was, or of another draft.")


def patiently(question: str, key: str, *, seconds: float = _PATIENCE_S) -> Job | None:
    """The job; one that just began is given a moment, once for a question, since most need no more."""
    job = session.workers().look(key)
    waited: dict[str, str] = st.session_state.setdefault(_WAITED, {})
    if job is None or job.over or waited.get(question) == key:
        return job
    waited[question] = key
    return session.workers().wait(key, seconds)


def watch(
    job: Job,
    tell: Callable[[Job], HowFar],
    *,
    stop: str = "Stop",
    help: str = "End with what was found by now.",
) -> None:
    """How far a job is, again and again, and a button that stops it; the page is drawn anew when there is more to see.

    Args:
        job: as it stands.
        tell: how far it is, while it runs.
        stop: the button.
        help: what stopping does.
    """
    _watch(job.task.key, job.partials, tell, (stop, help))


@st.fragment(run_every=_LOOK_AGAIN_S)
def _watch(key: str, seen: int, tell: Callable[[Job], HowFar], button: tuple[str, str]) -> None:
    job = session.workers().look(key)
    if job is None or job.over or job.partials > seen:
        st.rerun()
    words, place = st.columns([5, 1], vertical_alignment="center")
    with words:
        _show(HowFar("Waiting for other work to be done.") if job.state is State.WAITING else tell(job))
    stop, help = button
    stopping = job.state is State.STOPPING
    place.button(
        "Stopping" if stopping else stop,
        icon=":material/stop:",
        key=f"stop-{key}",
        disabled=stopping,
        help=help,
        width="stretch",
        on_click=session.workers().stop,
        args=(key,),
    )


def _show(far: HowFar) -> None:
    if far.share is None:
        st.markdown(far.text)
    else:
        st.progress(min(1.0, max(0.0, far.share)), far.text)
    if far.before:
        st.caption("  \n".join(said(each) for each in far.before))
