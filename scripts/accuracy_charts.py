"""Charts of the accuracy report: measured against predicted, one point per row that the fit had not seen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from planner.charts import save_chart, styled
from planner.charts.style import values

__all__ = ["draw"]

_UNITS = {"ITL": "ms", "TTFT": "s", "req/s": "req/s", "power": "W per GPU"}
_FACTORS = {"ITL": 1e3}
_SIDE = 260


def draw(name: str, points: Sequence[tuple[str, str, float, float]], path: Path) -> None:
    """One panel per figure, logarithmic, with the line on which every prediction would be right.

    Args:
        name: of the section, for the title.
        points: group, figure, measured, predicted.
        path: of the picture.
    """
    figures = list(dict.fromkeys(figure for _, figure, _, _ in points))
    panels = [_panel(figure, [point for point in points if point[1] == figure]) for figure in figures]
    title = f"{name.capitalize()}: predicted unseen against measured"
    chart = styled(alt.hconcat(*panels).properties(title=title))
    # Descriptions of single points for screen readers make the picture ten times as long; the tables say more.
    chart.config.aria = False
    save_chart(chart, path)


def _panel(figure: str, points: Sequence[tuple[str, str, float, float]]) -> Any:  # noqa: ANN401 - any kind of chart
    factor, unit = _FACTORS.get(figure, 1.0), _UNITS[figure]
    rows = [
        {
            "of": group.partition(" on ")[0],
            "measured": float(f"{measured * factor:.4g}"),
            "predicted": float(f"{predicted * factor:.4g}"),
        }
        for group, _, measured, predicted in points
    ]
    ends = [
        min(min(r["measured"], r["predicted"]) for r in rows),
        max(max(r["measured"], r["predicted"]) for r in rows),
    ]
    scale = alt.Scale(type="log", domain=ends, nice=False)
    dots = (
        alt.Chart(values(rows))
        .mark_circle(size=22, opacity=0.6)
        .encode(
            x=alt.X("measured:Q", scale=scale, title=f"measured {figure}, {unit}"),
            y=alt.Y("predicted:Q", scale=scale, title=f"predicted, {unit}"),
            color=alt.Color("of:N", title=None),
        )
    )
    line = alt.Chart(values([{"at": end} for end in ends])).mark_line(color="#888888", strokeDash=[4, 3])
    return (line.encode(x=alt.X("at:Q", scale=scale), y=alt.Y("at:Q", scale=scale)) + dots).properties(
        width=_SIDE, height=_SIDE
    )
