"""Asking for a closer look at a plan, and watching it come: solves that nobody wants to wait for unasked."""

from __future__ import annotations

from typing import Final

import streamlit as st

from planner.ui import session
from planner.ui.faults import show_sentences
from planner.ui.jobs import Job
from planner.ui.tasks.closer import Closer, closer_task
from planner.ui.waiting import HowFar, watch
from planner.ui.workspace import Draft

__all__ = ["found_closer", "show_looking"]

_QUESTION: Final = "closer"


def found_closer(key: str) -> Closer | None:
    """What a closer look at the plan of an answer has found so far; None: nothing yet."""
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
        key: of the answer that is shown.
    """
    job = _job_of(key)
    if job is not None and not job.over:
        watch(job, _how_far, stop="Stop looking")
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
    plan = session.workers().look(session.plan_task_of(draft).key)
    if pressed and plan is not None and plan.result is not None:
        task = closer_task(draft.scenario, session.workspace().how, plan.result)
        session.ask(_question(key), task)
        st.rerun()


def _question(key: str) -> str:
    return f"{_QUESTION}-{key}"


def _job_of(key: str) -> Job | None:
    return session.job_of(_question(key))


def _how_far(job: Job) -> HowFar:
    limit_s = session.workspace().how.time_limit_s
    return HowFar(f"Looking closer, {job.seconds:.0f} of at most {limit_s:.0f} s.", job.seconds / limit_s)


@st.cache_resource(show_spinner=False, max_entries=20)
def _read(key: str, _text: str) -> Closer:
    return Closer.model_validate_json(_text)
