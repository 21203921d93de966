"""Asking for a closer look at a plan, and watching it come: solves that nobody wants to wait for unasked."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Job, State
from planner.ui.tasks.closer import Closer, closer_task
from planner.ui.workspace import Draft

__all__ = ["found_closer", "show_looking"]

_QUESTION: Final = "closer"
_LOOK_AGAIN_S: Final = 0.5


def found_closer(key: str) -> Closer | None:
    """What a closer look at the plan of a job has found so far; None: nothing yet."""
    job = _job_of(key)
    if job is None:
        return None
    if job.result is not None:
        return _read(job.task.key, job.result)
    return None if job.partial is None else _read(f"{job.task.key}-first", job.partial)


def show_looking(draft: Draft, key: str) -> None:
    """A button, or how far it is.

    Args:
        draft: as it is now.
        key: of the job whose report is shown.
    """
    job = _job_of(key)
    if job is not None and not job.over:
        _show_progress(key)
        return
    if job is not None and job.result is not None:
        return
    if job is not None and job.failure is not None:
        show_sentences(job.failure.message, list(job.failure.findings))
    st.markdown(
        "What one more GPU, kilowatt or dollar is worth, which variants nearly are in the plan, and whether a plan "
        "at almost the same cost moves less: each of it is solved for, so it takes a while."
    )
    pressed = st.button("Look closer", icon=":material/search:", key=f"look-{key}")
    plan = session.workers().look(key)
    if pressed and plan is not None and plan.result is not None:
        task = closer_task(draft.scenario, session.workspace().how, plan.result)
        session.ask(_question(key), task)
        st.rerun()


def _question(key: str) -> str:
    return f"{_QUESTION}-{key}"


def _job_of(key: str) -> Job | None:
    return session.job_of(_question(key))


@st.fragment(run_every=_LOOK_AGAIN_S)
def _show_progress(key: str) -> None:
    job = _job_of(key)
    if job is None or job.over:
        st.rerun()
    limit_s = session.workspace().how.time_limit_s
    waits = job.state is State.WAITING
    text = (
        "Waiting for another task."
        if waits
        else f"Looking closer, {job.seconds:.0f} of at most {limit_s:.0f} s."
    )
    st.progress(min(1.0, job.seconds / limit_s), text)
    if st.button(
        "Stop looking",
        icon=":material/stop:",
        key=f"look-stop-{key}",
        disabled=job.state is State.STOPPING,
        help="End with what was found by now.",
    ):
        session.stop(_question(key))
    if job.partial is not None and st.session_state.get("fleetplan.looked") != key:
        st.session_state["fleetplan.looked"] = key
        st.rerun()


@st.cache_resource(show_spinner=False, max_entries=20)
def _read(key: str, _text: str) -> Closer:
    return Closer.model_validate_json(_text)
