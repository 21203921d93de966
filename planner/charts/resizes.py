"""Ways from one size of an elastic deployment to another, beside each other over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner.charts.style import COLORS, styled, values

__all__ = ["SERVING", "ways_chart"]

SERVING: Final = {
    "serves as before": COLORS[4],
    "nobody is served": COLORS[5],
    "experts move": COLORS[1],
}
"""What the deployment does meanwhile, and its color."""

_LANE: Final = 34


def ways_chart(rows: Sequence[dict[str, Any]]) -> Any:  # noqa: ANN401 - an Altair chart
    """Stages of each way as bars, colored by whether somebody is served.

    Args:
        rows: with ``way``, ``stage``, ``serving`` (a key of :data:`SERVING`), ``from`` and ``to``, s.
    """
    import altair as alt

    ways = [*dict.fromkeys(row["way"] for row in rows)]
    kinds = [kind for kind in SERVING if any(row["serving"] == kind for row in rows)]
    bars = alt.Chart(values(rows), height=alt.Step(_LANE)).mark_bar(stroke="white", strokeWidth=1, height=20)
    chart = bars.encode(
        x=alt.X("from:Q", title="time since the call, s"),
        x2="to:Q",
        y=alt.Y("way:N", title=None, sort=ways, axis=alt.Axis(labelLimit=260, grid=False)),
        color=alt.Color(
            "serving:N",
            title=None,
            sort=kinds,
            scale=alt.Scale(domain=kinds, range=[SERVING[kind] for kind in kinds]),
            legend=alt.Legend(orient="bottom", direction="vertical", symbolStrokeWidth=0),
        ),
        tooltip=[
            "way:N",
            "stage:N",
            "serving:N",
            alt.Tooltip("from:Q", format=",.3g"),
            alt.Tooltip("to:Q", format=",.3g"),
        ],
    )
    return styled(chart)
