"""Two objectives weighed: the form, the staircase as it grows, and the plan that was picked."""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from models.pareto import Axis, ParetoFront
from models.report import Report
from planner.charts.front import PICKED, front_chart, front_rows
from planner.planning import judge
from planner.ui import session
from planner.ui.answers.drawing import show_chart
from planner.ui.answers.frames import show_rows
from planner.ui.answers.head import show_figures
from planner.ui.answers.where import show_where
from planner.ui.jobs import Job
from planner.ui.tasks.pareto import Stairs, pareto_task
from planner.ui.waiting import HowFar, SoFar, say_if_of_another, show_waiting
from planner.ui.weighing.pinning import pinned
from planner.ui.words import plain, said, spaced
from planner.ui.workspace import DRAFTS_LIMIT, Draft
from planner.wording import axis_figure, axis_name, front_sentence

__all__ = ["show_weighing"]

_QUESTION: Final = "pareto"
_TITLES: Final = {
    "Cost": Axis.COST,
    "Power": Axis.POWER,
    "Headroom": Axis.HEADROOM,
    "Changes": Axis.CHANGES,
    "Unserved demand": Axis.UNSERVED,
}
_MOST_POINTS: Final = 50
_FORMATS: Final = {"power, W": "watts", "least headroom": "share", "unserved, req/s": "number"}


def show_weighing(draft: Draft) -> None:
    """The form and what came of it."""
    _show_form(draft)
    found = show_waiting(_QUESTION, _progress)
    if found is None:
        if session.asked(_QUESTION) is None:
            st.info(
                "Choose two objectives: each dot will be a plan that is proven, and none between the dots is better "
                "in both.",
                icon=":material/stairs:",
            )
        return
    stairs = _read(found.key, found.text)
    _show_front(draft, stairs, found)


def _show_form(draft: Draft) -> None:
    titles = list(_TITLES)
    with st.form("weigh", border=True):
        across, upwards, many, limit = st.columns([2, 2, 1, 1])
        x = across.selectbox("To the right", titles, index=0)
        y = upwards.selectbox("Upwards", titles, index=2)
        points = many.number_input("Plans at most", 2, _MOST_POINTS, 12)
        seconds = limit.number_input("Time, s", 1.0, 3600.0, 60.0, 10.0, help="For all plans together.")
        asked = st.form_submit_button("Weigh", type="primary", icon=":material/balance:")
    if not asked:
        return
    axes = (_TITLES[x or titles[0]], _TITLES[y or titles[0]])
    fault = _fault(axes)
    if fault:
        st.markdown(f":red[:material/error:] {fault}")
        return
    how = session.workspace().how.but(time_limit_s=seconds)
    session.ask(_QUESTION, pareto_task(draft.scenario, how, axes, int(points)), again=True)
    st.session_state.pop("front-point", None)
    st.rerun()


def _fault(axes: tuple[Axis, Axis]) -> str:
    if axes[0] is axes[1]:
        return "Upwards: choose another objective than to the right."
    if {*axes} == {Axis.HEADROOM, Axis.UNSERVED}:
        return "Headroom is asked for all demand; weigh it against cost, power or changes."
    return ""


def _progress(job: Job) -> HowFar:
    most = int(job.task.arguments["points"])
    found = max((int(event["value"] or 0) for event in job.progress.values()), default=0)
    noun = "plan" if found == 1 else "plans"
    return HowFar(f"{found} {noun} so far, at most {most}; {job.seconds:.0f} s", found / most)


@st.cache_resource(show_spinner=False, max_entries=8)
def _read(key: str, _text: str) -> Stairs:
    return Stairs.model_validate_json(_text)


def _show_front(draft: Draft, stairs: Stairs, found: SoFar) -> None:
    front = stairs.front
    if found.over:
        sentence = front_sentence(front).replace("'fleetplan plan' says", "the page Plan says")
        st.markdown(said(sentence.replace("--points, or more time, shows", "more plans, or more time, show")))
    say_if_of_another(_QUESTION, draft)
    if not front.points:
        return
    titles = (axis_name(front.x, front.x_unit), axis_name(front.y, front.y_unit))
    rows = front_rows(front)
    picks = show_chart(front_chart(front, titles), rows, name="trade-off", says=_says(front), picks=PICKED)
    _show_picked(draft, stairs, found.key, picks)
    with st.expander("All plans as a table"):
        formats = {name: kind for name, kind in _FORMATS.items() if name in rows[0]}
        show_rows(rows, name="front", says="The plans of the staircase.", formats=formats)


def _says(front: ParetoFront) -> str:
    first, last = front.points[0], front.points[-1]
    return spaced(
        f"From {axis_figure(first.x, front.x_unit)} {front.x} with {axis_figure(first.y, front.y_unit)} {front.y} "
        f"to {axis_figure(last.x, front.x_unit)} with {axis_figure(last.y, front.y_unit)}. "
        "Click a dot, or choose a plan below."
    )


def _show_picked(draft: Draft, stairs: Stairs, key: str, picks: list[dict[str, Any]]) -> None:
    front = stairs.front
    numbers = list(range(1, len(front.points) + 1))
    clicked = next((int(pick["point"]) for pick in picks if pick.get("point") in numbers), None)
    if clicked is not None and st.session_state.get("front-clicked") != (key, clicked):
        st.session_state["front-point"] = clicked
    st.session_state["front-clicked"] = (key, clicked)
    number = st.selectbox(
        "Plan",
        numbers,
        index=None,
        key="front-point",
        placeholder="Choose a plan",
        format_func=_labels(front),
    )
    if number is None:
        return
    point = front.points[number - 1]
    report = _report(f"{key}-{number}", stairs, number)
    show_figures(report)
    _show_taking(draft, stairs, number)
    with st.expander("Where it runs"):
        show_where(report)
    if point.unserved_rps > 0:
        st.caption("Unserved demand counts alike here, whatever its priority.")


def _labels(front: ParetoFront) -> Any:  # noqa: ANN401 - a function of any option
    def label(number: int) -> str:
        point = front.points[number - 1]
        return spaced(
            f"{number}: {axis_figure(point.x, front.x_unit)} {front.x}, "
            f"{axis_figure(point.y, front.y_unit)} {front.y}"
        )

    return label


@st.cache_resource(show_spinner=False, max_entries=64)
def _report(key: str, _stairs: Stairs, number: int) -> Report:
    """The plan of a point as a report, judged as one that may leave demand unserved."""
    problem = _stairs.problem.but(allow_unserved=True)
    solution = _stairs.front.points[number - 1].solution
    return Report(problem=problem, answer=judge(problem, "pareto", solution))


def _show_taking(draft: Draft, stairs: Stairs, number: int) -> None:
    point = stairs.front.points[number - 1]
    scenario = pinned(draft.scenario, stairs.problem, stairs.front, point)
    if scenario is None:
        st.markdown(
            "No limit of a scenario holds these two objectives, so this plan cannot be opened as a draft: costs have "
            "no unit, or power counts idle GPUs."
        )
        return
    full = len(session.workspace().drafts) >= DRAFTS_LIMIT
    name = f"{draft.name[:40]}, plan {number}"
    if st.button(
        "Open as a draft",
        icon=":material/open_in_new:",
        disabled=full,
        key="take-point",
        help="A draft that asks for this plan: one objective held by a limit, the other made small.",
    ):
        session.keep(session.workspace().added(Draft(name=name, scenario=scenario)))
        session.ask("plan", session.plan_task_of(session.workspace().draft))
        st.toast(f"{plain(name)} is open, and is being solved: see Plan or What-if.", icon=":material/check:")
        st.rerun()
