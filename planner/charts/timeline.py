"""A plan over time: a lane per candidate, or per pool where there are too many, and accelerators in use below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from planner.charts.style import COLORS, styled, values

__all__ = ["KINDS", "held_chart", "time_unit", "timeline_chart"]

KINDS: Final = {
    "add nodes": COLORS[0],
    "resize": COLORS[8],
    "cancel": COLORS[3],
    "await": COLORS[4],
    "start": COLORS[2],
    "drain": COLORS[1],
    "remove": COLORS[5],
    "remove nodes": COLORS[7],
}
"""What a step does, and its color."""

_INK: Final = "#767676"
_LANE: Final = 24
_MINUTES_FROM_S: Final = 600.0
_HOURS_FROM_S: Final = 6 * 3600.0
_MOST_RULES: Final = 60
_EMPTY, _FULL = "#DCE9F5", "#0B4F8A"
_DARK_FROM: Final = 0.5
_TEXT_FROM: Final = 0.08
"""Share of the width that a text needs."""


def time_unit(duration_s: float) -> tuple[str, float]:
    """The unit in which so long a time is read, and its seconds."""
    if duration_s < _MINUTES_FROM_S:
        return "s", 1.0
    return ("min", 60.0) if duration_s < _HOURS_FROM_S else ("h", 3600.0)


def timeline_chart(rows: Sequence[dict[str, Any]], *, waves: Sequence[float], unit: str) -> Any:  # noqa: ANN401 - an Altair chart
    """Bars for what takes time, diamonds for what does not, and a line where each wave begins.

    Args:
        rows: with ``lane``, ``kind`` (a key of :data:`KINDS`), ``from``, ``to``, ``count``, ``gpus`` and ``wave``.
        waves: when each wave begins, in the unit.
        unit: of all times.
    """
    import altair as alt

    lanes = [*dict.fromkeys(row["lane"] for row in rows)]
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    color = alt.Color(
        "kind:N",
        title=None,
        sort=kinds,
        scale=alt.Scale(domain=kinds, range=[KINDS[kind] for kind in kinds]),
        legend=alt.Legend(orient="bottom", symbolStrokeWidth=0),
    )
    lane = alt.Y("lane:N", title=None, sort=lanes, axis=alt.Axis(labelLimit=300, grid=False))
    x = alt.X("from:Q", title=f"time since the beginning, {unit}", scale=alt.Scale(zero=True))
    told = ["lane:N", "kind:N", "count:Q", alt.Tooltip("gpus:Q", title="GPUs"), "wave:Q"]
    told += [alt.Tooltip("from:Q", format=",.3g"), alt.Tooltip("to:Q", format=",.3g")]

    def of(*, lasting: bool) -> alt.Chart:
        return alt.Chart(values([row for row in rows if (row["to"] > row["from"]) is lasting]))

    bars = of(lasting=True).mark_bar(stroke="white", strokeWidth=0.5, cornerRadius=2, height=16)
    lasting = bars.encode(x=x, x2="to:Q", y=lane, color=color, tooltip=told)
    at_once = (
        of(lasting=False)
        .mark_point(shape="diamond", filled=True, size=110, opacity=1)
        .encode(x=x, y=lane, color=color, tooltip=told)
    )
    begins = alt.Chart(values([{"from": each} for each in waves[:_MOST_RULES]]))
    rules = begins.mark_rule(color=_INK, strokeWidth=0.7, opacity=0.6).encode(x=x)
    high = _LANE * max(2, len(lanes)) + 90
    return styled(alt.layer(rules, lasting, at_once).properties(height=high))


def held_chart(rows: Sequence[dict[str, Any]], *, unit: str) -> Any:  # noqa: ANN401 - an Altair chart
    """A lane per pool, the darker the fuller, with the accelerators that are held and that there are.

    Args:
        rows: with ``pool``, ``from``, ``to``, ``held``, ``there`` (None: as many as are wanted) and ``share``, which is 1
            where a pool is full.
        unit: of the time.
    """
    import altair as alt

    first, last = min(row["from"] for row in rows), max(row["to"] for row in rows)
    told = [
        {
            **row,
            "middle": (row["from"] + row["to"]) / 2,
            "text": str(row["held"]) if row["there"] is None else f"{row['held']} of {row['there']}",
            "has room": (row["to"] - row["from"]) >= _TEXT_FROM * (last - first),
        }
        for row in rows
    ]
    base = alt.Chart(values(told), height=alt.Step(_LANE)).encode(
        y=alt.Y("pool:N", title=None, axis=alt.Axis(labelLimit=300, grid=False))
    )
    x = alt.X(
        "from:Q", title=f"time since the beginning, {unit}", scale=alt.Scale(domain=[first, last], nice=False)
    )
    boxes = base.mark_rect(stroke="white", strokeWidth=0.5).encode(
        x=x,
        x2="to:Q",
        color=alt.Color(
            "share:Q",
            scale=alt.Scale(domain=[0, 1], range=[_EMPTY, _FULL], clamp=True),
            legend=None,
        ),
        tooltip=[
            "pool:N",
            alt.Tooltip("text:N", title="GPUs held"),
            alt.Tooltip("from:Q", format=",.3g"),
            alt.Tooltip("to:Q", format=",.3g"),
        ],
    )
    texts = [
        base.transform_filter(
            (alt.datum["has room"])
            & (alt.datum.share > _DARK_FROM if dark else alt.datum.share <= _DARK_FROM)
        )
        .mark_text(fontSize=11, color="#FFFFFF" if dark else "#000000")
        .encode(x="middle:Q", text="text:N")
        for dark in (True, False)
    ]
    return styled(alt.layer(boxes, *texts))
