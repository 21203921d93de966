"""The tornado: how far each input moves the cost, the strongest on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.charts.style import COLORS, styled, values

__all__ = ["Bar", "tornado_chart"]

_ROW: Final = 34
_LEAST: Final = 60
"""What axis and legend take, where the chart is fitted into its height."""
_LESS: Final = "less of it"
_MORE: Final = "more of it"
_BROKEN: Final = "not all is served"


@dataclass(frozen=True, slots=True)
class Bar:
    """One side of one input.

    Attributes:
        label: of the input.
        more: whether there is more of it, or less.
        cost: of the answer.
        broken: whether it leaves demand unserved that the unmoved answer serves: its cost then says little.
        says: what happens, for the tooltip.
    """

    label: str
    more: bool
    cost: float
    broken: bool
    says: str


def tornado_chart(bars: Sequence[Bar], base: float, *, title: str) -> Any:  # noqa: ANN401 - a layered chart
    """Bars from the cost as it is to the cost with an input moved.

    Where demand stays unserved the bar is hollow and ends in a cross, since what it saves is not served.

    Args:
        bars: in the order of the inputs, the strongest first.
        base: the cost as it is.
        title: of the axis, with its unit.
    """
    import altair as alt

    order = list(dict.fromkeys(bar.label for bar in bars))
    rows = [
        {
            "input": bar.label,
            "side": _MORE if bar.more else _LESS,
            "from": base,
            "to": bar.cost,
            "kind": _BROKEN if bar.broken else "all is served",
            "says": bar.says,
        }
        for bar in bars
    ]
    y = alt.Y("input:N", sort=order, scale=alt.Scale(domain=order), title=None, axis=alt.Axis(labelLimit=280))
    color = alt.Color(
        "side:N", scale=alt.Scale(domain=[_LESS, _MORE], range=[COLORS[4], COLORS[5]]), title="with"
    )
    # Vega refuses a tooltip that is called "then", in the browser alone.
    tip = [alt.Tooltip("input:N"), alt.Tooltip("says:N", title="answer")]
    drawn = (
        alt.Chart(values(rows))
        .mark_bar(height=_ROW * 0.35, strokeWidth=1.5)
        .encode(
            y=y,
            yOffset=alt.YOffset("side:N", sort=[_LESS, _MORE]),
            x=alt.X(
                "from:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(format=",.6~g", tickCount=6)
            ),
            x2="to:Q",
            color=color,
            stroke=color,
            fillOpacity=alt.condition(f"datum.kind === '{_BROKEN}'", alt.value(0.1), alt.value(0.9)),
            tooltip=tip,
        )
    )
    crosses = (
        alt.Chart(values([row for row in rows if row["kind"] == _BROKEN]))
        .mark_point(size=90, strokeWidth=3, opacity=1, color=COLORS[3])
        .encode(
            y=y,
            yOffset=alt.YOffset("side:N", sort=[_LESS, _MORE]),
            x="to:Q",
            shape=alt.Shape("kind:N", scale=alt.Scale(domain=[_BROKEN], range=["cross"]), title="and"),
            tooltip=tip,
        )
    )
    line = alt.Chart(values([{"from": base}])).mark_rule(strokeDash=[4, 3], opacity=0.7).encode(x="from:Q")
    return styled((drawn + crosses + line).properties(height=_LEAST + _ROW * len(order)))
