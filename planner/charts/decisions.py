"""What a controller decided over time: a step line per variant, and a dot where it changed its mind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner.charts.style import styled, values, wheel

__all__ = ["decisions_chart"]

_HIGH: Final = 260


def decisions_chart(rows: Sequence[dict[str, Any]]) -> Any:  # noqa: ANN401 - an Altair chart
    """Replicas that each variant was to have.

    Args:
        rows: with ``variant``, ``at`` (text that is a time, UTC), ``desired``, ``reason`` and ``changes``.
    """
    import altair as alt

    names = [*dict.fromkeys(row["variant"] for row in rows)]
    color = alt.Color(
        "variant:N",
        title=None,
        sort=names,
        scale=alt.Scale(domain=names, range=wheel(len(names))),
        legend=alt.Legend(orient="bottom", columns=2),
    )
    # Within a day the hour is enough; times are texts that sort as they follow one another.
    format = "%H:%M" if len({row["at"][:10] for row in rows}) <= 1 else "%m-%d %H:%M"
    axis = alt.Axis(format=format, labelOverlap=True)
    x = alt.X("at:T", title="time, UTC", scale=alt.Scale(type="utc"), axis=axis)
    y = alt.Y("desired:Q", title="replicas", axis=alt.Axis(tickMinStep=1), scale=alt.Scale(domainMin=0))
    told = [
        "variant:N",
        alt.Tooltip("at:T", format="%Y-%m-%d %H:%M:%S", formatType="time"),
        "desired:Q",
        "reason:N",
    ]
    lines = alt.Chart(values(rows)).mark_line(interpolate="step-after", strokeWidth=2)
    dots = alt.Chart(values([row for row in rows if row["changes"]])).mark_point(
        filled=True, size=60, opacity=1
    )
    return styled(
        alt.layer(
            lines.encode(x=x, y=y, color=color), dots.encode(x=x, y=y, color=color, tooltip=told)
        ).properties(height=_HIGH)
    )
