"""Drafts side by side: a row of bars for each figure, a bar for each draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planner.charts.style import COLORS, styled, values

__all__ = ["comparison_chart"]

_BAR: Final = 26
_WIDTH: Final = 230
_IN_A_ROW: Final = 3


def comparison_chart(rows: Sequence[Mapping[str, Any]], measures: Sequence[str], *, name: str) -> Any:  # noqa: ANN401 - charts of Altair
    """Bars for each figure on a scale of its own, drafts in the order given; those without a figure have no bar.

    Args:
        rows: a mapping for each draft.
        measures: keys of figures, with their units.
        name: key of what a row is called.
    """
    import altair as alt

    order = [row[name] for row in rows]

    def bars(measure: str, *, labeled: bool) -> Any:  # noqa: ANN401 - a chart of Altair
        known = [{name: row[name], "value": row[measure]} for row in rows if row.get(measure) is not None]
        axis = alt.Axis(labelLimit=200) if labeled else None
        return (
            alt.Chart(values(known))
            .mark_bar(height=_BAR * 0.6, color=COLORS[0])
            .encode(
                x=alt.X("value:Q", title=measure, axis=alt.Axis(tickCount=4, format=",.6~g")),
                y=alt.Y(f"{name}:N", sort=order, scale=alt.Scale(domain=order), title=None, axis=axis),
                tooltip=[alt.Tooltip(f"{name}:N"), alt.Tooltip("value:Q", title=measure, format=",.4~g")],
            )
            .properties(width=_WIDTH, height=_BAR * len(order))
        )

    if len(measures) == 1:
        return styled(bars(measures[0], labeled=True))
    lines = [
        alt.hconcat(
            *(
                bars(measure, labeled=place == 0)
                for place, measure in enumerate(measures[start : start + _IN_A_ROW])
            )
        )
        for start in range(0, len(measures), _IN_A_ROW)
    ]
    return styled(alt.vconcat(*lines))
