"""Latency and saturation over the load of one replica, beside what is promised and what planning allows."""

from __future__ import annotations

import streamlit as st

from models.performance import Rating
from models.picture import CandidatePicture, LoadCurve
from planner.charts.latency import Panel, load_chart, load_rows, panels_of
from planner.ui.answers.drawing import show_chart
from planner.ui.words import said
from planner.wording import number, promises_phrase, statistic_phrase

__all__ = ["show_latency"]


def show_latency(found: CandidatePicture) -> None:
    """A chart per figure, two beside one another."""
    picture = found.picture
    if not found.curves:
        st.caption(
            "Nothing is known of its latency: no measured row is of this setup, it has no queueing parameters, and the "
            "roofline lacks a figure of its hardware or LLM."
            if picture.memory is None or not picture.memory.missing_bytes
            else "What does not fit has no latency."
        )
        return
    st.markdown(said(_reading(found)))
    answer = picture.answer
    marks = {"rated": answer.rated_rps, "surge": answer.surge_rps} if isinstance(answer, Rating) else {}
    if marks and marks["surge"] <= marks["rated"] * 1.001:
        marks = {"rated = surge": marks["rated"]}
    panels = panels_of(picture.question, found.curves)
    for place in range(0, len(panels), 2):
        for column, panel in zip(st.columns(2), panels[place : place + 2], strict=False):
            with column:
                _show_panel(panel, found, marks)


def _show_panel(panel: Panel, found: CandidatePicture, marks: dict[str, float]) -> None:
    rows = load_rows(found.curves, panel)
    lines = ", ".join(f"{name} at {number(value)}" for name, value in panel.lines.items())
    rates = ", ".join(f"{name} at {number(value, 3)} req/s" for name, value in marks.items())
    told = "; ".join(part for part in (lines, rates) if part)
    says = said(f"{panel.title} over load{f': {told}' if told else ''}.")
    show_chart(load_chart(rows, panel, marks=marks), rows, name=f"load-{panel.name}", says=says)


def _reading(found: CandidatePicture) -> str:
    """How to read the charts: the promise, and at which statistic each curve is."""
    question = found.picture.question
    told = [f"Promised: {promises_phrase(question.slo)}."]
    told += [f"{_name(curve)}: {statistic_phrase(curve.at)}{_band(curve)}." for curve in found.curves]
    return " ".join(told)


def _name(curve: LoadCurve) -> str:
    return f"{str(curve.origin).capitalize()}, {curve.source}"


def _band(curve: LoadCurve) -> str:
    return f"; the band holds {curve.band}" if curve.band else ""
