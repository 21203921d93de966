"""Latency and saturation of one replica over its load: points as measured, models as bands, promises as lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from models.performance import RatingQuestion
from models.picture import LoadCurve, LoadPoint
from planner.charts.style import styled, values, wheel

if TYPE_CHECKING:
    import altair as alt

__all__ = ["Panel", "load_chart", "load_rows", "panels_of"]

_INK: Final = "#767676"
_LINE: Final = "#D55E00"
_HEIGHT: Final = 300
_LEGEND_ROW: Final = 22
_ROOM: Final = 1.12
"""Room beside the largest rate, for the names of marks."""
_POINT, _CURVE, _BAND = "point", "curve", "band"


@dataclass(frozen=True, slots=True)
class Panel:
    """One figure over load.

    Attributes:
        name: of the files.
        title: of the axis, with the unit.
        figure: field of a point.
        scale: what a figure is multiplied by for the axis.
        lines: limits by what they are called, in the unit of the axis.
        logarithmic: whether orders of magnitude are of interest.
        top: largest value that is shown; None: all are.
    """

    name: str
    title: str
    figure: str
    scale: float = 1.0
    lines: Mapping[str, float] = field(default_factory=dict)
    logarithmic: bool = True
    top: float | None = None


def panels_of(question: RatingQuestion, curves: Sequence[LoadCurve]) -> list[Panel]:
    """The figures that anything is known of: latencies with their promises, then usage with its thresholds."""
    slo, limits = question.slo, question.thresholds
    promised = {
        name: {} if value is None else {"promised": value}
        for name, value in (("ttft", slo.ttft_s), ("itl", slo.itl_s), ("e2e", slo.e2e_s))
    }
    itl = {name: value * 1000 for name, value in promised["itl"].items()}
    usage = {"τ": limits.tau_kv * 100, "trigger": (limits.tau_kv - limits.gamma_kv) * 100}
    queue = {"τ": limits.tau_queue, "trigger": limits.tau_queue - limits.gamma_queue}
    panels = (
        Panel("ttft", "TTFT, s", "ttft_s", lines=promised["ttft"]),
        Panel("itl", "ITL, ms", "itl_s", scale=1000.0, lines=itl),
        Panel("e2e", "whole request, s", "e2e_s", lines=promised["e2e"]),
        Panel("kv", "KV cache in use, %", "kv_share", scale=100.0, lines=usage, logarithmic=False, top=120.0),
        Panel(
            "queue",
            "requests that wait",
            "waiting",
            lines=queue,
            logarithmic=False,
            top=max(1.0, 2 * limits.tau_queue),
        ),
    )
    return [panel for panel in panels if any(_has(curve, panel) for curve in curves)]


def _has(curve: LoadCurve, panel: Panel) -> bool:
    return any(getattr(point, panel.figure) is not None for point in curve.points)


def load_rows(curves: Sequence[LoadCurve], panel: Panel) -> list[dict[str, Any]]:
    """Figures of a panel: points and curves with ``value``, bands with ``low`` and ``high``."""
    return [row for curve in curves for row in _rows(curve, panel)]


def _rows(curve: LoadCurve, panel: Panel) -> Iterator[dict[str, Any]]:
    name = f"{curve.origin}: {curve.source}"
    for point in curve.points:
        value = getattr(point, panel.figure)
        if value is not None:
            yield {
                "curve": name,
                "kind": _CURVE if curve.joined and len(curve.points) > 1 else _POINT,
                "rps": point.rps,
                "value": value * panel.scale,
                "low": None,
                "high": None,
                "in flight": point.in_flight,
            }
    for rps, low, high in _band(curve, panel):
        yield {
            "curve": name,
            "kind": _BAND,
            "rps": rps,
            "value": None,
            "low": low * panel.scale,
            "high": high * panel.scale,
            "in flight": None,
        }


def _band(curve: LoadCurve, panel: Panel) -> Iterator[tuple[float, float, float]]:
    """Rate, lower and upper edge, at the rates that both edges reach."""
    rates = sorted({point.rps for point in (*curve.low, *curve.high)})
    for rps in rates:
        edges = [_at(points, rps, panel.figure) for points in (curve.low, curve.high)]
        known = [edge for edge in edges if edge is not None]
        if len(known) == len(edges):
            yield rps, min(known), max(known)


def _at(points: Sequence[LoadPoint], rps: float, figure: str) -> float | None:
    """A figure between points, linear; None outside of them."""
    for before, after in pairwise(points):
        first, last = getattr(before, figure), getattr(after, figure)
        if before.rps <= rps <= after.rps and first is not None and last is not None:
            share = (rps - before.rps) / (after.rps - before.rps)
            return float(first + share * (last - first))
    return None


def load_chart(rows: Sequence[dict[str, Any]], panel: Panel, *, marks: Mapping[str, float]) -> Any:  # noqa: ANN401 - an Altair chart
    """A figure over the requests that one replica answers per second.

    Args:
        rows: of :func:`load_rows`.
        panel: what they are of.
        marks: rates to mark by their names, req/s.
    """
    import altair as alt

    curves = [*dict.fromkeys(row["curve"] for row in rows)]
    color = alt.Color(
        "curve:N",
        title=None,
        scale=alt.Scale(domain=curves, range=wheel(len(curves))),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=300, symbolOpacity=1),
    )
    scale = _scale(panel)
    most = max((*(row["rps"] for row in rows), *marks.values()), default=1.0) * _ROOM
    reach = alt.Scale(domain=[0, most], nice=False)
    x = alt.X("rps:Q", title="requests per second of one replica", scale=reach)
    y = alt.Y("value:Q", title=panel.title, scale=scale)
    told = ["curve:N", alt.Tooltip("rps:Q", title="req/s", format=",.3g")]
    told += [
        alt.Tooltip("value:Q", title=panel.title, format=",.3g"),
        alt.Tooltip("in flight:Q", format=",.3g"),
    ]

    def of(wanted: str) -> alt.Chart:
        return alt.Chart(values([row for row in rows if row["kind"] == wanted]))

    band = (
        of(_BAND)
        .mark_area(opacity=0.25, clip=True)
        .encode(x=x, y=alt.Y("low:Q", title=panel.title, scale=scale), y2="high:Q", color=color)
    )
    line = of(_CURVE).mark_line(strokeWidth=2, clip=True).encode(x=x, y=y, color=color, tooltip=told)
    dots = (
        of(_POINT)
        .mark_point(filled=True, size=60, opacity=1, clip=True)
        .encode(x=x, y=y, color=color, tooltip=told)
    )
    layers = [band, line, dots, *_limits(panel, scale), *_marks(marks)]
    return styled(alt.layer(*layers).properties(height=_HEIGHT + _LEGEND_ROW * len(curves)))


def _scale(panel: Panel) -> alt.Scale:
    import altair as alt

    if panel.top is not None:
        return alt.Scale(type="linear", domain=[0, panel.top], nice=False)
    return alt.Scale(type="log" if panel.logarithmic else "linear")


def _limits(panel: Panel, scale: Any) -> list[Any]:  # noqa: ANN401 - an Altair scale and charts
    """Limits as dashed lines with their names."""
    import altair as alt

    lines = [{"limit": name, "value": value} for name, value in panel.lines.items()]
    if not lines:
        return []
    base = alt.Chart(values(lines)).encode(y=alt.Y("value:Q", title=panel.title, scale=scale))
    rule = base.mark_rule(color=_LINE, strokeDash=[6, 3], strokeWidth=1.5, clip=True).encode(
        tooltip=["limit:N", alt.Tooltip("value:Q", format=",.4g")]
    )
    text = base.mark_text(
        align="left", baseline="bottom", dx=4, dy=-2, color=_LINE, fontSize=11, clip=True
    ).encode(x=alt.value(0), text="limit:N")
    return [rule, text]


def _marks(marks: Mapping[str, float]) -> list[Any]:
    """Rates as lines from top to bottom with their names."""
    import altair as alt

    rates = [{"mark": name, "rps": value} for name, value in marks.items()]
    if not rates:
        return []
    base = alt.Chart(values(rates)).encode(x="rps:Q")
    rule = base.mark_rule(color=_INK, strokeWidth=1.5).encode(
        strokeDash=alt.StrokeDash("mark:N", sort=list(marks), legend=None),
        tooltip=["mark:N", alt.Tooltip("rps:Q", title="req/s", format=",.4g")],
    )
    # The first name stands left of its line, the others right of theirs, so that near ones do not meet.
    names = [
        alt.Chart(values([rate]))
        .mark_text(
            align="left" if place else "right", baseline="top", dx=3 if place else -3, color=_INK, fontSize=11
        )
        .encode(x="rps:Q", y=alt.value(0), text="mark:N")
        for place, rate in enumerate(rates)
    ]
    return [rule, *names]
