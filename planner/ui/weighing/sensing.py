"""What the answer hangs on: the form, the tornado, and the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import streamlit as st

from models.problem import CostUnit
from models.sensitivity import Moved, Sensitivity, Swing
from planner.charts.tornado import Bar, tornado_chart
from planner.ui import session
from planner.ui.answers.drawing import show_chart
from planner.ui.answers.frames import show_rows
from planner.ui.jobs import Job
from planner.ui.tasks.sensitivity import sensitivity_task
from planner.ui.waiting import HowFar, say_if_of_another, show_waiting
from planner.ui.words import said, spaced
from planner.ui.workspace import Draft
from planner.wording.levers import breaks_more, lever_phrase, moved_phrase, sensitivity_sentence

__all__ = ["show_sensing"]

_QUESTION: Final = "sensitivity"
_SHARES: Final = {"5 %": 0.05, "10 %": 0.1, "20 %": 0.2, "50 %": 0.5}
_PARTS: Final = {
    "Each as a whole": 0,
    "Also the 3 services and pools that cost most": 3,
    "Also the 10 services and pools that cost most": 10,
}
_SHOWN: Final = 25


def show_sensing(draft: Draft) -> None:
    """The form and what came of it."""
    _show_form(draft)
    found = show_waiting(_QUESTION, _progress)
    if found is None:
        if session.asked(_QUESTION) is None:
            st.info(
                "Demand, prices, latency promises, τ and γ are moved one by one, and each time all is planned again.",
                icon=":material/tune:",
            )
        return
    say_if_of_another(_QUESTION, draft)
    _show_swings(_read(found.key, found.text), over=found.over)


def _show_form(draft: Draft) -> None:
    with st.form("sense", border=True):
        far, parts, limit = st.columns([1, 2, 1])
        share = far.selectbox("Move each by", list(_SHARES), index=1)
        most = parts.selectbox("Which inputs", list(_PARTS))
        seconds = limit.number_input("Time, s", 1.0, 3600.0, 120.0, 10.0, help="For all answers together.")
        asked = st.form_submit_button("Measure", type="primary", icon=":material/tune:")
    if asked:
        how = session.workspace().how.but(time_limit_s=seconds)
        task = sensitivity_task(
            draft.scenario, how, _SHARES[share or "10 %"], _PARTS[most or "Each as a whole"]
        )
        session.ask(_QUESTION, task, again=True)
        st.rerun()


def _progress(job: Job) -> HowFar:
    latest = list(job.progress.values())[-1:]
    if not latest:
        return HowFar(f"Planning as it is, {job.seconds:.0f} s", 0.0)
    done, of = float(latest[0]["value"] or 0), float(latest[0]["bound"] or 1)
    return HowFar(f"{done:.0f} of {of:.0f} answers, {job.seconds:.0f} s", done / of)


@st.cache_resource(show_spinner=False, max_entries=8)
def _read(key: str, _text: str) -> Sensitivity:
    return Sensitivity.model_validate_json(_text)


def _show_swings(found: Sensitivity, *, over: bool) -> None:
    if over:
        st.markdown(said(sensitivity_sentence(found)))
    if over and not found.complete:
        st.markdown(
            ":orange[:material/timer_off:] Not every input was reached: it was stopped, or the time was over."
        )
    if not found.swings:
        return
    rows = list(_rows(found))
    if found.base.cost is not None:
        unit = ", $/h" if found.cost_unit is CostUnit.USD_PER_H else ""
        chart = tornado_chart(list(_bars(found)), found.base.cost, title=f"cost{unit}")
        says = "Hollow bars with a cross: demand stays unserved, so their cost is that of less."
        show_chart(chart, rows, name="sensitivity", says=says)
    show_rows(rows, name="swings", says="Every input, and the answer with less and with more of it.")


def _bars(found: Sensitivity) -> Iterator[Bar]:
    for swing in found.swings[:_SHOWN]:
        for side in swing.sides:
            if side.cost is not None:
                yield Bar(
                    label=lever_phrase(swing.lever),
                    more=side.factor > 1,
                    cost=side.cost,
                    broken=breaks_more(found.base, side),
                    says=moved_phrase(found.base, side, found.cost_unit),
                )


def _rows(found: Sensitivity) -> Iterator[dict[str, Any]]:
    for swing in found.swings:
        yield {
            "input": lever_phrase(swing.lever),
            "with less of it": _said(found, swing.down, swing),
            "with more of it": _said(found, swing.up, swing),
        }


def _said(found: Sensitivity, side: Moved | None, swing: Swing) -> str:
    if side is None:
        return "cannot be moved that way"
    return spaced(moved_phrase(found.base, side, found.cost_unit))
