"""What a page may know of its visitor: the workspace, the workers, and reports that were asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import streamlit as st

from models.report import Report
from models.scenario import Scenario
from planner.errors import ConfigurationError
from planner.ui.browsers import browser_of, is_of, new_token
from planner.ui.examples import first_scenario
from planner.ui.jobs import Job, Task, Workers
from planner.ui.notices import Notice, give, take_back
from planner.ui.sharing import opened_link
from planner.ui.store import Kept, Saved, Store, default_folder
from planner.ui.tasks.plan import plan_task
from planner.ui.workspace import DRAFTS_LIMIT, Draft, How, Workspace

__all__ = [
    "LINK",
    "ask",
    "asked",
    "change",
    "job_of",
    "keep",
    "link_fault",
    "open_workspace",
    "plan_task_of",
    "read_report",
    "report_of",
    "stop",
    "workers",
    "workspace",
]

_PLACE: Final = "w"
"""Where in the address bar, and in the visit, the token stands."""

LINK: Final = "d"
"""Where in the address bar a draft stands that somebody passed on."""

_LINK_FAULT: Final = "fleetplan.link-fault"
_WORKSPACE: Final = "fleetplan.workspace"
_KEPT: Final = "fleetplan.kept"
"""What lies on disk as far as this visit knows: two tabs can have one workspace open."""

_ASKED: Final = "fleetplan.asked"
_TASKS: Final = "fleetplan.tasks"


@st.cache_resource(show_spinner=False)
def workers() -> Workers:
    """The worker processes of this server."""
    return Workers(2)


@st.cache_resource(show_spinner=False)
def _store() -> Store:
    return Store(default_folder())


def open_workspace() -> None:
    """Have a workspace: the one of this visit, one of this browser that the address names, or a new one.

    A new one holds the draft of a link, a copy of what another browser's address names, or an example. Nobody works on
    in a workspace that was made for another browser.
    """
    if _WORKSPACE not in st.session_state:
        browser = browser_of(st.context.cookies)
        token = st.query_params.get(_PLACE, "")
        found = None if LINK in st.query_params else _store().load(token)
        mine = found is not None and is_of(token, browser)
        st.session_state[_WORKSPACE] = (
            _linked() or Workspace.of(first_scenario()) if found is None else found.workspace
        )
        if mine:
            st.session_state[_PLACE], st.session_state[_KEPT] = token, found
        else:
            _keep_apart()
        if found is not None and not mine:
            give(Notice.COPIED)
    if LINK in st.query_params:
        del st.query_params[LINK]
    if st.query_params.get(_PLACE) != st.session_state[_PLACE]:
        st.query_params[_PLACE] = st.session_state[_PLACE]


def _linked() -> Workspace | None:
    """A workspace with the draft of the link that was opened; None: there is none, or it cannot be read."""
    text = st.query_params.get(LINK)
    if text is None:
        return None
    try:
        shared = opened_link(text, default_folder())
    except ConfigurationError as fault:
        st.session_state[_LINK_FAULT] = fault
        return None
    first, *others = shared.drafts
    linked = Workspace(drafts=(first,), opened=first.name, how=shared.how)
    for draft in others:
        linked = linked.added(draft)
    return linked.open(first.name)


def link_fault() -> ConfigurationError | None:
    """What is wrong with the link that this visit began with; None: nothing, or it had none."""
    fault: ConfigurationError | None = st.session_state.get(_LINK_FAULT)
    return fault


def workspace() -> Workspace:
    """What the visitor works on."""
    value: Workspace = st.session_state[_WORKSPACE]
    return value


def keep(new: Workspace) -> None:
    """Go on with another state of the workspace; a reload finds it again."""
    if new == workspace():
        return
    st.session_state[_WORKSPACE] = new
    st.session_state.pop(_LINK_FAULT, None)
    known: Kept | None = st.session_state.get(_KEPT)
    came_of, kept = _store().save(st.session_state[_PLACE], new, over=known)
    if came_of is Saved.OVERTAKEN:
        came_of = _keep_apart()
        give(Notice.OVERTAKEN)
    elif kept is not None:
        st.session_state[_KEPT] = kept
    if came_of is Saved.FAILED:
        give(Notice.NOT_KEPT)
    else:
        take_back(Notice.NOT_KEPT)


def _keep_apart() -> Saved:
    """Go on under an address of this visit's own."""
    st.session_state[_PLACE] = new_token(browser_of(st.context.cookies))
    came_of, st.session_state[_KEPT] = _store().save(st.session_state[_PLACE], workspace())
    return came_of


def change(edit: Callable[[Draft], Draft]) -> None:
    """Change the open draft."""
    keep(workspace().put(edit(workspace().draft)))


# Work beside the page. Which job belongs to which question is remembered for this visit.


def ask(question: str, task: Task, *, again: bool = False) -> str:
    """Have a task done for a question of this visitor; the job that it replaces is not waited for any more.

    Args:
        question: of this visitor.
        task: what is to be done.
        again: also where it was done and cut short.
    """
    remembered = _remembered()
    before = remembered.get(question)
    job = None if before is None else workers().look(before)
    if before == task.key and job is not None and not job.over:
        return before  # asked for once, so that one stop is enough
    if before is not None and before != task.key:
        workers().stop(before)
    remembered[question] = workers().ask(task, again=again)
    return task.key


def asked(question: str) -> str | None:
    """The key of the job that answers a question; None: it was not asked."""
    return _remembered().get(question)


def job_of(question: str) -> Job | None:
    """The job that answers a question, as it stands."""
    key = asked(question)
    return workers().look(key) if key is not None else None


def stop(question: str) -> None:
    """Stop working on a question."""
    key = asked(question)
    if key is not None:
        workers().stop(key)


def _remembered() -> dict[str, str]:
    remembered: dict[str, str] = st.session_state.setdefault(_ASKED, {})
    return remembered


def plan_task_of(draft: Draft) -> Task:
    """The task that plans a draft exactly as it is now, the way this workspace solves."""
    how = workspace().how
    made: list[tuple[Scenario, How, Task]] = st.session_state.setdefault(_TASKS, [])
    for scenario, with_how, task in made:
        if scenario is draft.scenario and with_how == how:
            return task
    task = plan_task(draft.scenario, how)
    made.append((draft.scenario, how, task))
    del made[:-DRAFTS_LIMIT]
    return task


def report_of(draft: Draft) -> Report | None:
    """The report of a draft exactly as it is now; None while there is none."""
    job = workers().look(plan_task_of(draft).key)
    return read_report(job.answer, job.result) if job is not None and job.result is not None else None


@st.cache_resource(show_spinner=False, max_entries=DRAFTS_LIMIT + 4)
def read_report(key: str, _text: str) -> Report:
    """The report in a text; ``key`` is the name of the answer that it is."""
    return Report.model_validate_json(_text)
