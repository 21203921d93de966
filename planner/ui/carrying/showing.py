"""The page Apply below its plan: commands, differences to the cluster, typed confirmation, progress, the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import streamlit as st

from models.applied import ApplyEvent, ApplyEventKind, ApplyReview
from models.plan import WaveLimits
from models.problem import Problem
from models.report import Report
from planner.control.carrying import Order
from planner.errors import ConfigurationError, FleetPlanError
from planner.ui.allowing import APPLY, is_allowed
from planner.ui.answers.frames import show_rows
from planner.ui.answers.moving import Way
from planner.ui.answers.rendering import show_commands
from planner.ui.carrying.runs import Run, reviewed, runs
from planner.ui.faults import show_fault, show_sentences
from planner.ui.jobs import Task
from planner.ui.solving import Answer
from planner.ui.tasks.moves import Moves, moves_task
from planner.ui.waiting import show_until_done
from planner.ui.words import plain, said
from planner.wording import counted

__all__ = ["code_of", "show_apply"]

_REVIEW: Final = "fleetplan.review"
_EVERY_S: Final = 1.0
_HOW_TO_ALLOW: Final = (
    f"From here no cluster is asked or changed. Start the app with {APPLY}=1 to compare the plan with the cluster of the "
    "server's kubeconfig and to carry it out, or run what stands above: fleetplan apply PLAN does the same from a terminal."
)
_ICONS: Final = {
    ApplyEventKind.WROTE: ":material/edit:",
    ApplyEventKind.AWAITED: ":material/check:",
    ApplyEventKind.WAVE: ":material/route:",
    ApplyEventKind.REFUSED: ":red[:material/block:]",
    ApplyEventKind.STOPPED: ":orange[:material/stop:]",
    ApplyEventKind.DONE: ":green[:material/verified:]",
}


def show_apply(answer: Answer, name: str) -> None:
    """All of it; the answer has a plan.

    Args:
        answer: to the open draft.
        name: of the draft.
    """
    report = _shown(answer.key, answer.report)
    task = _task(answer.key, report.problem, report)
    result = show_until_done("apply-moves", task, doing="Working out the waves")
    if result is None:
        return
    moves = Moves.model_validate_json(result)
    if moves.there.waves:
        with st.expander("As commands", icon=":material/terminal:", expanded=not is_allowed(APPLY)):
            show_commands(Way(report.problem, moves.there), f"apply-{task.key}")
    else:
        st.markdown("What runs is what the plan says: there is nothing to carry out.")
    st.header("On the cluster")
    if not is_allowed(APPLY):
        st.info(_HOW_TO_ALLOW, icon=":material/lock:")
        return
    order = Order(report=report, plan=moves.there)
    try:
        order.route()
    except ConfigurationError as fault:
        show_fault(fault, "It cannot be carried out.")
        return
    except FleetPlanError as fault:
        show_sentences(str(fault), [])
        return
    _show_run()
    _show_order(order, name)


@st.cache_resource(show_spinner=False, max_entries=20)
def _shown(key: str, _report: Report) -> Report:
    """The report with the plan that is shown as its answer: under scarcity the best effort."""
    if _report.best_effort is None:
        return _report
    problem: Problem = _report.problem.but(allow_unserved=True)
    return _report.but(problem=problem, answer=_report.best_effort, best_effort=None)


@st.cache_resource(show_spinner=False, max_entries=20)
def _task(key: str, _problem: Problem, _report: Report) -> Task:
    return moves_task(_problem, _report.answer.solution, WaveLimits())


def code_of(order: Order) -> str:
    """What is typed to carry this very plan out, and no other."""
    return f"{'undo' if order.back else 'apply'} {order.plan.fingerprint[:6]}"


def _show_order(order: Order, name: str) -> None:
    """Compare, confirm, apply."""
    place, button = st.columns([3, 1], vertical_alignment="bottom")
    context = place.text_input(
        "Context of the kubeconfig",
        key="apply-context",
        placeholder="the current one, or those called like the clusters",
    ).strip()
    if button.button("Compare (dry run)", icon=":material/difference:", key="apply-compare", width="stretch"):
        st.session_state[_REVIEW] = None
        with st.spinner("Asking the cluster"):
            _review(order, context)
    kept = st.session_state.get(_REVIEW)
    if kept is None or kept[:2] != (code_of(order), context):
        st.caption("Nothing was asked yet: compare first. A dry run reads and changes nothing.")
        return
    review: ApplyReview = kept[2]
    _show_review(review)
    if not review.refusals and not review.done:
        _show_confirmation(order, name, context)


def _review(order: Order, context: str) -> None:
    try:
        st.session_state[_REVIEW] = (code_of(order), context, reviewed(order, context))
    except ConfigurationError as fault:
        show_fault(fault, "Nothing was asked.")
    except FleetPlanError as fault:
        show_sentences(str(fault), [])


def _show_review(review: ApplyReview) -> None:
    if review.done:
        st.success("The cluster has what the plan says.", icon=":material/verified:")
    elif review.refusals:
        sentences = [
            f"{each.subject}: {each.problem}{f' ({each.remedy})' if each.remedy else ''}"
            for each in review.refusals
        ]
        show_sentences("The plan cannot be carried out now. Nothing was changed.", sentences)
    if review.changes and not review.refusals:
        rows = [
            {
                "wave": each.wave or review.waves,
                "object": each.object,
                "field": each.field,
                "now": each.before or "–",
                "then": each.after or "–",
            }
            for each in review.changes
        ]
        says = f"{counted(len(rows), 'field')} that differ from the cluster, in the order in which they are written."
        st.markdown(says)
        show_rows(rows, name="apply-changes", says=says)
    if review.notes:
        st.markdown("**Not done from here**")
        st.markdown("\n".join(f"- {said(each)}" for each in review.notes))


def _show_confirmation(order: Order, name: str, context: str) -> None:
    code = code_of(order)
    verb = "Lead back" if order.back else "Apply"
    st.markdown(f"To carry this out for **{plain(name)}**, type `{code}`.")
    typed, reason, button = st.columns([2, 3, 1], vertical_alignment="bottom")
    said_code = typed.text_input("Confirmation", key=f"confirm-{code}").strip()
    why = reason.text_input("Reason, for the record", key=f"reason-{code}", max_chars=500)
    clicked = button.button(
        verb,
        type="primary",
        icon=":material/play_arrow:",
        key=f"carry-{code}",
        disabled=said_code != code,
        help="Until what is asked for is typed, nothing can be pressed.",
        width="stretch",
    )
    # The server looks again: a button that is off can be pressed by whoever knows how.
    if not clicked or said_code != code or not is_allowed(APPLY):
        return
    run = Run(key=code, name=name, order=order, context=context)
    if runs().begin(run, why=why):
        st.session_state[_REVIEW] = None
        st.rerun()
    st.warning("Another plan is being carried out from this server.", icon=":material/hourglass_top:")


def _show_run() -> None:
    """What is carried out now, or was last."""
    run = runs().last
    if run is None:
        return
    if run.over:
        _show_events(run)
        _show_way_back(run)
    else:
        _show_going(run.key)


@st.fragment(run_every=_EVERY_S)
def _show_going(key: str) -> None:
    run = runs().last
    if run is None or run.over or run.key != key:
        st.rerun()
    words, place = st.columns([5, 1], vertical_alignment="center")
    words.markdown(f"**{plain(run.name)}** is being carried out.")
    place.button(
        "Stopping" if run.stopping.is_set() else "Stop",
        icon=":material/stop:",
        key="apply-stop",
        help="Before the next write; what is written stays.",
        disabled=run.stopping.is_set(),
        on_click=run.stopping.set,
        width="stretch",
    )
    _show_events(run)


def _show_events(run: Run) -> None:
    if run.failure:
        show_sentences(f"{run.name}: {run.failure}", [])
    lines = [_line(event) for event in run.events if event.kind is not ApplyEventKind.BEGUN]
    if lines:
        with st.container(border=True):
            st.markdown(f"**{plain(run.name)}**")
            st.markdown("\n".join(f"- {line}" for line in lines))
            if run.applied is not None:
                st.caption(said(f"Record: {run.applied.record}"))


def _line(event: ApplyEvent) -> str:
    return f"{_ICONS.get(event.kind, '')} {said(event.message)}".strip()


def _show_way_back(run: Run) -> None:
    """The same plan, undone, as far as it was begun."""
    if run.applied is None or run.applied.undo is None or run.order.back:
        return
    waves = max((event.wave for event in run.events if event.kind is ApplyEventKind.WAVE), default=0)
    plan = run.order.plan.but(waves=run.order.plan.waves[:waves], stuck=None)
    order = replace(run.order, plan=plan, back=True, begun=True)
    with st.expander("The way back", icon=":material/undo:"):
        st.caption(said(f"From a terminal: fleetplan apply {run.applied.undo}"))
        _show_confirmation(order, run.name, run.context)
