"""The moves to an answer: which plan, how carefully, there or back; then the way and its commands."""

from __future__ import annotations

from typing import Final

import streamlit as st

from models.plan import WaveLimits
from models.problem import Problem
from models.report import Comparison, Report
from planner.ui.answers.looking import found_closer
from planner.ui.answers.moving import Way, show_way
from planner.ui.answers.rendering import show_commands
from planner.ui.jobs import Task
from planner.ui.solving import Answer
from planner.ui.tasks.moves import Moves, moves_task
from planner.ui.waiting import show_until_done

__all__ = ["show_moves"]

_THERE: Final = "to the plan"
_BACK: Final = "back again"
_PLAN: Final = "the plan"
_FEWEST: Final = "fewest moves"
_MOST: Final = 10**6


def show_moves(answer: Answer) -> None:
    """All of it; the answer has a plan."""
    report = answer.report
    if report.best_effort is not None:
        st.info(
            "No plan keeps every promise: these are the moves to the best plan under scarcity.",
            icon=":material/info:",
        )
    shown, name = _wanted(answer)
    limits = _limits()
    problem = _problem(answer.key, report)
    task = _task(f"{answer.key}-{name}-{limits.fingerprint}", problem, shown, limits)
    result = show_until_done("moves", task, doing="Working out the waves")
    if result is None:
        return
    moves = _read(task.key, result)
    direction = _THERE
    if moves.there.waves:
        direction = st.radio(
            "Direction",
            [_THERE, _BACK],
            horizontal=True,
            key="moves-direction",
            help="The way back leads from the end of these waves to what runs now.",
        )
    way = Way(problem, moves.there) if direction == _THERE else Way(problem, moves.back, undone=moves.there)
    show_way(way)
    if way.plan.waves:
        show_commands(way, f"{task.key}-{direction}")


@st.cache_resource(show_spinner=False, max_entries=20)
def _problem(key: str, _report: Report) -> Problem:
    """The problem that the plan which is shown was found for."""
    return _report.problem if _report.best_effort is None else _report.problem.but(allow_unserved=True)


def _wanted(answer: Answer) -> tuple[Comparison, str]:
    """The plan, or the one of almost the same cost that moves less, where a closer look has found one."""
    closer = found_closer(answer.key)
    if closer is None or closer.near_answer is None:
        return answer.report.shown, _PLAN
    chosen = st.radio(
        "Moves to",
        [_PLAN, _FEWEST],
        horizontal=True,
        key="moves-plan",
        help="Fewest moves: the plan of almost the same cost that a closer look has found.",
    )
    return (closer.near_answer, chosen) if chosen == _FEWEST else (answer.report.shown, chosen)


def _limits() -> WaveLimits:
    """How much may change at once, as the form says."""
    with st.expander("How carefully", icon=":material/tune:"), st.form("moves-limits", border=False):
        given = {**_counts(), **_times()}
    return WaveLimits.model_validate(given)


def _counts() -> dict[str, float | None]:
    """Fields for GPUs and replicas; none of them has to be filled in."""
    surge, replicas, away, step = st.columns(4)
    return {
        "max_surge_gpus": surge.number_input(
            "Extra GPUs at most",
            0,
            _MOST,
            None,
            key="moves-surge-gpus",
            help="Held on the way above the larger of start and plan, all pools together. Empty: what the scenario's "
            "limits allow.",
        ),
        "max_surge_replicas": replicas.number_input(
            "Extra replicas at most",
            0,
            _MOST,
            None,
            key="moves-surge-replicas",
            help="The same, per service.",
        ),
        "max_unavailable": away.number_input(
            "Replicas away at most",
            0,
            _MOST,
            None,
            key="moves-unavailable",
            help="Ready replicas that a service may lack on the way. Empty: as many as leave it what it serves.",
        ),
        "max_step_gpus": step.number_input(
            "GPUs of one step at most", 1, _MOST, None, key="moves-step", help="Empty: any number."
        ),
    }


def _times() -> dict[str, float | None]:
    """Fields for times, and the button."""
    default = WaveLimits()
    drain, nodes, _, button = st.columns(4, vertical_alignment="bottom")
    given: dict[str, float | None] = {
        "drain_s": drain.number_input(
            "Drain, s",
            0.0,
            1e6,
            default.drain_s,
            key="moves-drain",
            help="In which a replica ends its requests.",
        ),
        "node_start_s": nodes.number_input(
            "Start of a node, s",
            0.0,
            1e6,
            default.node_start_s,
            key="moves-node",
            help="Until it takes pods.",
        ),
    }
    button.form_submit_button("Work out waves", icon=":material/route:", width="stretch")
    return given


@st.cache_resource(show_spinner=False, max_entries=20)
def _task(key: str, _problem: Problem, _shown: Comparison, _limits: WaveLimits) -> Task:
    return moves_task(_problem, _shown.solution, _limits)


@st.cache_resource(show_spinner=False, max_entries=20)
def _read(key: str, _text: str) -> Moves:
    return Moves.model_validate_json(_text)
