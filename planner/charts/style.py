"""One look for all charts: colors that color-blind people can tell apart, and readable on light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

__all__ = ["COLORS", "ink_on", "styled", "values", "wheel"]

COLORS: Final = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#882255",
    "#44AA99",
    "#999933",
    "#AA4499",
    "#332288",
)
"""The palette of Okabe and Ito (2008) without black, then hues of Tol's muted scheme; gray is for what is not ours."""


def wheel(size: int, *, first: int = 0) -> list[str]:
    """So many colors from a place of the palette on; beyond its end it comes again, and something else tells things apart."""
    return [COLORS[(first + place) % len(COLORS)] for place in range(size)]


def ink_on(color: str) -> str:
    """Black or white, whichever is read better on a color (relative luminance, WCAG 2.2)."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part**2.2 for part in parts)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return "#000000" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "#FFFFFF"


def values(rows: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401 - Altair's data
    """Rows as the data of a chart, held in the chart itself."""
    import altair as alt

    return alt.InlineData(values=list(rows))


def styled(chart: Any) -> Any:  # noqa: ANN401 - any kind of chart
    """The chart with the house's palette, a transparent ground and no frame."""
    return (
        chart.configure(background="transparent")
        .configure_range(category=list(COLORS))
        .configure_view(strokeWidth=0)
        .configure_axis(grid=True, gridOpacity=0.3, titleFontWeight="normal", labelLimit=220)
        .configure_legend(titleFontWeight="normal", labelLimit=260)
    )
