"""One look for all charts: colors that color-blind people can tell apart, and readable on light and dark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import altair as alt

__all__ = ["COLORS", "styled"]

COLORS: Final = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#999999",
    "#F0E442",
)
"""The palette of Okabe and Ito (2008), darkest first, yellow last: it is faint on white."""


def styled(chart: alt.Chart | alt.LayerChart | alt.ConcatChart | Any) -> Any:  # noqa: ANN401 - any kind of chart
    """The chart with the house's palette, a transparent ground and no frame."""
    return (
        chart.configure(background="transparent")
        .configure_range(category=list(COLORS))
        .configure_view(strokeWidth=0)
        .configure_axis(grid=True, gridOpacity=0.3, titleFontWeight="normal", labelLimit=220)
        .configure_legend(titleFontWeight="normal", labelLimit=260)
    )
