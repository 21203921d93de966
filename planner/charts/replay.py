"""Replays over time: a panel per figure, a color per policy, promises as bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.charts.style import COLORS, styled, values, wheel
from planner.charts.timeline import time_unit

__all__ = ["failure_chart", "kv_chart", "replica_chart", "traffic_chart", "ttft_chart"]

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Time: its unit, and where it ends in that."""

    unit: str
    last: float


_WIDE: Final = 640
_HIGH: Final = 180
_IN_A_ROW: Final = 3
_NARROW: Final = 105
_INK: Final = "#767676"
_KEPT: Final = "#009E73"


def _time(rows: Rows, within: Rows | None = None) -> tuple[list[dict[str, Any]], _Axis]:
    """Rows with ``time`` in the unit in which so long a run is read, and that axis.

    Args:
        rows: that are drawn.
        within: rows of all charts that are read together; None: these.
    """
    last_s = max((row["time_s"] for row in within or rows), default=0.0)
    unit, seconds = time_unit(last_s)
    return [{**row, "time": row["time_s"] / seconds} for row in rows], _Axis(unit, last_s / seconds)


def _policies(rows: Rows) -> list[str]:
    return [name for name in dict.fromkeys(row["policy"] for row in rows) if name]


def _color(policies: Sequence[str]) -> Any:  # noqa: ANN401 - an Altair channel
    import altair as alt

    return alt.Color(
        "policy:N",
        title=None,
        sort=list(policies),
        scale=alt.Scale(domain=list(policies), range=wheel(len(policies))),
        legend=alt.Legend(orient="top"),
    )


def _x(axis: _Axis) -> Any:  # noqa: ANN401 - an Altair channel
    import altair as alt

    scale = alt.Scale(domain=[0, axis.last or 1], nice=False)
    return alt.X("time:Q", title=f"time, {axis.unit}", scale=scale)


def _variant_color(rows: Rows) -> Any:  # noqa: ANN401 - an Altair channel
    """A color for each variant; names above the chart, in columns that fit a narrow screen too."""
    import altair as alt

    variants = [*dict.fromkeys(row["variant"] for row in rows)]
    many = len(variants) > _IN_A_ROW
    return alt.Color(
        "variant:N",
        title=None,
        scale=alt.Scale(domain=variants, range=wheel(len(variants))),
        legend=alt.Legend(orient="top", columns=2 if many else 0, labelLimit=_NARROW if many else 260),
    )


def _up_to(figure: str, rows: Rows) -> Any:  # noqa: ANN401 - an Altair scale
    """From 0 to the most that is stacked at one time under one policy."""
    import altair as alt

    sums: dict[tuple[str, float], float] = {}
    for row in rows:
        key = row["policy"], row["time_s"]
        sums[key] = sums.get(key, 0.0) + (row[figure] or 0.0)
    return alt.Scale(domain=[0, max(sums.values(), default=0.0) or 1.0])


def traffic_chart(rows: Rows) -> Any:  # noqa: ANN401 - an Altair chart
    """What arrives as an area, and what each policy has done within every promise as lines.

    Args:
        rows: ``time_s``, ``rps``, ``what`` (``arrive`` or ``done in time``) and ``policy``.
    """
    import altair as alt

    told, axis = _time(rows)
    arriving = [row for row in told if row["what"] == "arrive"]
    serving = [row for row in told if row["what"] != "arrive"]
    y = alt.Y("rps:Q", title="req/s")
    area = (
        alt.Chart(values(arriving))
        .mark_area(color=_INK, opacity=0.25, interpolate="step")
        .encode(x=_x(axis), y=y)
    )
    lines = (
        alt.Chart(values(serving))
        .mark_line(strokeWidth=1.5, interpolate="step")
        .encode(x=_x(axis), y=y, color=_color(_policies(rows)))
    )
    return styled(alt.layer(area, lines).properties(width=_WIDE, height=_HIGH))


def replica_chart(rows: Rows, *, within: Rows | None = None) -> Any:  # noqa: ANN401 - an Altair chart
    """Replicas of each variant: a panel per policy, variants stacked.

    Args:
        rows: ``time_s``, ``replicas``, ``variant`` and ``policy``.
        within: rows of all charts that are read together, whose axes and colors this one has; None: these.
    """
    import altair as alt

    told, axis = _time(rows, within)
    area = (
        alt.Chart(values(told))
        .mark_area(interpolate="step")
        .encode(
            x=_x(axis),
            y=alt.Y("replicas:Q", title="replicas", stack="zero", scale=_up_to("replicas", within or rows)),
            color=_variant_color(within or rows),
            tooltip=[
                "variant:N",
                alt.Tooltip("time:Q", format=",.3g"),
                alt.Tooltip("replicas:Q", format=",.3g"),
            ],
        )
    )
    return styled(_panels(area, _policies(rows)))


def kv_chart(rows: Rows, *, saturated: float | None = None, within: Rows | None = None) -> Any:  # noqa: ANN401 - an Altair chart
    """KV usage of each variant: a panel per policy; a line where replicas are saturated.

    Args:
        rows: ``time_s``, ``kv_usage``, ``variant`` and ``policy``.
        saturated: usage at which a replica is saturated; None: no line.
        within: rows of all charts that are read together; None: these.
    """
    import altair as alt

    told, axis = _time([row for row in rows if row["kv_usage"] is not None], within)
    base = alt.Chart(values([{**row, "saturated": saturated} for row in told]))
    lines = base.mark_line(strokeWidth=1.2).encode(
        x=_x(axis),
        y=alt.Y("kv_usage:Q", title="KV cache", axis=alt.Axis(format="%"), scale=alt.Scale(domain=[0, 1])),
        color=_variant_color(within or rows),
    )
    rule = base.mark_rule(color=_INK, strokeDash=[4, 3]).encode(
        y=alt.Y("mean(saturated):Q", title="KV cache")
    )
    layers = [lines] if saturated is None else [lines, rule]
    return styled(_panels(alt.layer(*layers), _policies(rows)))


def ttft_chart(rows: Rows, *, targets_s: Sequence[float] = (), within: Rows | None = None) -> Any:  # noqa: ANN401 - an Altair chart
    """Times to the first token, a panel per policy: from p50 to p99 a band, p95 a line; what is promised a green band.

    Args:
        rows: ``time_s``, ``ttft_s``, ``percentile`` (p50, p95, p99) and ``policy``; None where nobody arrived.
        targets_s: promises of the services; the band reaches to the smallest.
        within: rows of all charts that are read together; None: these.
    """
    import altair as alt

    known = [row["ttft_s"] for row in within or rows if row["ttft_s"] is not None]
    wide: dict[tuple[str, float], dict[str, Any]] = {}
    for row in rows:
        if row["ttft_s"] is not None:
            key = row["policy"], row["time_s"]
            made = wide.setdefault(key, {"policy": row["policy"], "time_s": row["time_s"]})
            made[row["percentile"]] = row["ttft_s"]
    target = min(targets_s, default=None)
    low = min(known, default=0.01) / 2
    floor = low if target is None else min(low, target / 2)
    told, time = _time([{**row, "target": target, "floor": floor} for row in wide.values()], within)
    most = max([*known, target or 0.0], default=1.0)
    base = alt.Chart(values(told))
    axis = alt.Axis(tickCount=5, format="~g")
    y = alt.Y("p50:Q", title="TTFT, s", scale=alt.Scale(type="log", domain=[floor, most * 1.1]), axis=axis)
    band = base.mark_area(color=COLORS[0], opacity=0.3).encode(x=_x(time), y=y, y2="p99:Q")
    line = base.mark_line(color=COLORS[0], strokeWidth=1.5).encode(x=_x(time), y=alt.Y("p95:Q"))
    layers = [band, line]
    if target is not None:
        kept = base.mark_area(color=_KEPT, opacity=0.15).encode(x=_x(time), y=alt.Y("floor:Q"), y2="target:Q")
        layers.insert(0, kept)
    return styled(_panels(alt.layer(*layers), _policies(rows)))


def failure_chart(rows: Rows, policies: Sequence[str], *, within: Rows | None = None) -> Any:  # noqa: ANN401 - an Altair chart
    """Requests that failed, a panel per policy, causes stacked.

    Args:
        rows: ``time_s``, ``rps``, ``cause`` and ``policy``.
        policies: all of them: one without failures has an empty panel.
        within: rows of all charts that are read together; None: these.
    """
    import altair as alt

    told, axis = _time(rows, within)
    spared = set(policies) - {row["policy"] for row in rows}
    told += [{"policy": name, "cause": "none", "rps": 0.0, "time": 0.0} for name in sorted(spared)]
    causes = [*dict.fromkeys(row["cause"] for row in within or rows)]
    area = (
        alt.Chart(values(told))
        .mark_area(interpolate="step")
        .encode(
            x=_x(axis),
            y=alt.Y("rps:Q", title="failed, req/s", stack="zero", scale=_up_to("rps", within or rows)),
            color=alt.Color(
                "cause:N",
                title=None,
                scale=alt.Scale(domain=causes, range=wheel(len(causes), first=5)),
                legend=alt.Legend(orient="top"),
            ),
        )
    )
    return styled(_panels(area, policies))


def _panels(chart: Any, policies: Sequence[str]) -> Any:  # noqa: ANN401 - Altair charts
    """The chart once per policy, one below the other; of one policy the chart itself, which can be stretched."""
    import altair as alt

    chart = chart.properties(width=_WIDE, height=_HIGH * 0.6)
    if len(policies) == 1:
        return chart.properties(title=alt.TitleParams(policies[0], anchor="start", fontWeight="normal"))
    return chart.facet(
        row=alt.Row(
            "policy:N", title=None, sort=list(policies), header=alt.Header(labelAngle=0, labelAlign="left")
        )
    )
