"""Charts of reproduced experiments: bars beside the published ones, and runs over time."""

from __future__ import annotations

from typing import Any, Final

from models.reproduction import Picture
from planner.charts.style import styled, values, wheel

__all__ = ["picture_chart"]

_WIDTH: Final = 620
_HEIGHT: Final = 220
_LETTER: Final = 6
_PUBLISHED: Final = "#999999"
_GRAY: Final = "published"


def picture_chart(picture: Picture) -> Any:  # noqa: ANN401 - an Altair chart
    """The chart of a picture: its panels below one another, published figures in gray, intervals as whiskers."""
    import altair as alt

    panels = [*dict.fromkeys(point.panel for point in picture.points)]
    draw = _bars if picture.kind == "bars" else _lines
    charts = [draw(picture, panel) for panel in panels]
    title = alt.TitleParams(picture.title, anchor="start", fontWeight="normal")
    return styled(alt.vconcat(*charts).properties(title=title))


def _colors(picture: Picture) -> Any:  # noqa: ANN401 - an Altair scale
    import altair as alt

    series = [*dict.fromkeys(point.series for point in picture.points)]
    ours = [name for name in series if not name.startswith(_GRAY)]
    by_name = dict(zip(ours, wheel(len(ours)), strict=True))
    return alt.Scale(domain=series, range=[by_name.get(name, _PUBLISHED) for name in series])


def _rows(picture: Picture, panel: str) -> list[dict[str, Any]]:
    return [point.model_dump() for point in picture.points if point.panel == panel]


def _title(picture: Picture, panel: str) -> str:
    return ", ".join(part for part in (panel, picture.y) if part)


def _bars(picture: Picture, panel: str) -> Any:  # noqa: ANN401 - an Altair chart
    import altair as alt

    rows = _rows(picture, panel)
    order = [*dict.fromkeys(str(point.x) for point in picture.points)]
    series = [*dict.fromkeys(point.series for point in picture.points)]
    base = alt.Chart(values(rows)).encode(
        x=alt.X("x:N", title=picture.x, sort=order, axis=_axis(order)),
        xOffset=alt.XOffset("series:N", sort=series),
    )
    bars = base.mark_bar().encode(
        y=alt.Y("y:Q", title=_title(picture, panel)),
        color=alt.Color("series:N", title=None, scale=_colors(picture), legend=alt.Legend(orient="bottom")),
    )
    sure = [row for row in rows if row["low"] is not None]
    whiskers = base.mark_rule(color="#444444").encode(
        y=alt.Y("low:Q", title=_title(picture, panel)), y2="high:Q"
    )
    layers = [bars, whiskers.properties(data=values(sure))] if sure else [bars]
    return alt.layer(*layers).properties(width=_WIDTH, height=_HEIGHT)


def _axis(names: list[str]) -> Any:  # noqa: ANN401 - an Altair axis
    """Names beside one another where they fit, else slanted."""
    import altair as alt

    fit = max(map(len, names)) * _LETTER * len(names) <= _WIDTH
    if fit:
        return alt.Axis(labelAngle=0, labelLimit=160)
    return alt.Axis(labelAngle=-30, labelAlign="right", labelLimit=200)


def _lines(picture: Picture, panel: str) -> Any:  # noqa: ANN401 - an Altair chart
    import altair as alt

    return (
        alt.Chart(values(_rows(picture, panel)))
        .mark_line(strokeWidth=1.6)
        .encode(
            x=alt.X("x:Q", title=picture.x),
            y=alt.Y("y:Q", title=_title(picture, panel)),
            color=alt.Color(
                "series:N", title=None, scale=_colors(picture), legend=alt.Legend(orient="bottom")
            ),
        )
        .properties(width=_WIDTH, height=_HEIGHT)
    )
