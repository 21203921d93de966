"""The staircase of two objectives: a dot for each plan, and between them what none can reach."""

from __future__ import annotations

from typing import Any, Final, Literal

from models.pareto import Axis, ParetoFront
from models.solution import Status
from planner.charts.style import COLORS, styled, values

__all__ = ["PICKED", "front_chart", "front_rows"]

PICKED: Final = "picked"
"""Name of the selection that holds the number of the point that was clicked."""

_HEIGHT: Final = 380
_SHAPES: Final = {"proven": "circle", "not proven": "triangle-up"}


def front_rows(front: ParetoFront) -> list[dict[str, Any]]:
    """The points with all their figures, numbered from 1 in the order of the front."""
    return [
        {
            "point": number,
            str(front.x): point.x,
            str(front.y): point.y,
            "proof": "proven" if point.status is Status.OPTIMAL else "not proven",
            "cost of plan": point.cost,
            "unserved, req/s": point.unserved_rps,
            "power, W": point.power_w,
            "changes of plan": point.changes,
            "least headroom": point.headroom,
        }
        for number, point in enumerate(front.points, start=1)
    ]


def front_chart(front: ParetoFront, titles: tuple[str, str]) -> Any:  # noqa: ANN401 - a layered chart
    """Dots that can be clicked, on the stairs that bound them.

    Args:
        front: at least one point.
        titles: of the axes, with their units.
    """
    import altair as alt

    rows = [
        {
            "point": row["point"],
            "x": row[str(front.x)],
            "y": row[str(front.y)],
            "proof": row["proof"],
        }
        for row in front_rows(front)
    ]
    axes = {
        "x": alt.X("x:Q", title=titles[0], scale=alt.Scale(zero=False, nice=True), axis=_axis(front.x)),
        "y": alt.Y("y:Q", title=titles[1], scale=alt.Scale(zero=False, nice=True), axis=_axis(front.y)),
    }
    # Until the next plan is reached the one before is the best; but for more headroom one must go on to the next.
    step: Literal["step-before", "step-after"] = "step-before" if front.x is Axis.HEADROOM else "step-after"
    stairs = alt.Chart(values(rows)).mark_line(interpolate=step, color=COLORS[0], opacity=0.5).encode(**axes)
    picks = alt.selection_point(name=PICKED, fields=["point"], on="click", toggle=False)
    dots = (
        alt.Chart(values(rows))
        .mark_point(filled=True, opacity=1)
        .encode(
            **axes,
            shape=alt.Shape(
                "proof:N",
                scale=alt.Scale(domain=list(_SHAPES), range=list(_SHAPES.values())),
                title=None,
                legend=alt.Legend(orient="top"),
            ),
            size=alt.condition(picks, alt.value(300), alt.value(110), empty=False),
            color=alt.condition(picks, alt.value(COLORS[5]), alt.value(COLORS[0]), empty=False),
            tooltip=[
                alt.Tooltip("point:O"),
                alt.Tooltip("x:Q", title=titles[0], format=",.5~g"),
                alt.Tooltip("y:Q", title=titles[1], format=",.5~g"),
            ],
        )
        .add_params(picks)
    )
    return styled((stairs + dots).properties(height=_HEIGHT))


def _axis(axis: Axis) -> Any:  # noqa: ANN401 - an axis of Altair
    import altair as alt

    return alt.Axis(format="~%" if axis is Axis.HEADROOM else "~s", tickCount=6)
