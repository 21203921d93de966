"""Calibration drawn: latencies seen and fitted over the batch, and what the fit leaves."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import altair as alt

from models.calibration import Calibration, FittedPoint
from planner.charts.style import styled

__all__ = ["calibration_chart"]

_SIZE: Final = {"width": 380, "height": 220}
_LATENCIES: Final = (("ITL", "itl_s", "itl_fitted_s"), ("TTFT", "ttft_s", "ttft_fitted_s"))


def calibration_chart(found: Calibration) -> Any:  # noqa: ANN401 - a concatenation of Altair charts
    """ITL and TTFT over the batch (dots: seen; lines: fitted), and below them residuals in percent.

    Triangles are points that were not fitted, because the replica was saturated there; crosses are outliers.
    """
    known = found.profile
    title = f"{known.llm} on {known.accelerator} {known.parallelism.label}"
    rows = list(_rows(found.points))
    upper = [_latency(rows, name) for name, _, _ in _LATENCIES]
    lower = [_residuals(rows, name) for name, _, _ in _LATENCIES]
    return styled(alt.vconcat(alt.hconcat(*upper), alt.hconcat(*lower)).properties(title=title))


def _rows(points: Iterable[FittedPoint]) -> Iterable[dict[str, Any]]:
    for point in points:
        shape = f"{point.input_tokens:.0f} in, {point.output_tokens:.0f} out"
        state = "saturated" if point.left_out is not None else "outlier" if point.outlier else "fitted"
        for name, seen, fitted in _LATENCIES:
            value, model = getattr(point, seen), getattr(point, fitted)
            if not value or point.in_service is None:
                continue
            yield {
                "latency": name,
                "batch": point.in_service,
                "shape": shape,
                "state": state,
                "ms": value * 1000,
                "fitted": None if model is None else model * 1000,
                "residual": None if not model or not value else 100 * math.expm1(math.log(model / value)),
            }


def _of(rows: list[dict[str, Any]], name: str) -> alt.Chart:
    mine = [row for row in rows if row["latency"] == name]
    return alt.Chart(_data(mine)).encode(
        x=alt.X("batch:Q", title="requests in the batch"), color=alt.Color("shape:N", title="tokens")
    )


def _latency(rows: list[dict[str, Any]], name: str) -> Any:  # noqa: ANN401 - a layered chart
    base = _of(rows, name)
    shapes = alt.Shape(
        "state:N",
        scale=alt.Scale(domain=["fitted", "outlier", "saturated"], range=["circle", "cross", "triangle-up"]),
        title="point",
    )
    seen = base.mark_point(size=55).encode(
        y=alt.Y("ms:Q", title=f"{name}, ms", scale=alt.Scale(type="log")), shape=shapes
    )
    fitted = base.transform_filter("datum.fitted != null").mark_line(opacity=0.7).encode(y="fitted:Q")
    return (fitted + seen).properties(**_SIZE)


def _residuals(rows: list[dict[str, Any]], name: str) -> Any:  # noqa: ANN401 - a layered chart
    base = _of(rows, name).transform_filter("datum.residual != null")
    dots = base.mark_point(filled=True, size=45).encode(
        y=alt.Y("residual:Q", title=f"{name}: fitted against seen, %")
    )
    zero = alt.Chart(_data([{"at": 0}])).mark_rule(opacity=0.5).encode(y="at:Q")
    return (zero + dots).properties(width=_SIZE["width"], height=130)


def _data(rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - Altair's data has no usable type
    return alt.Data(values=rows)  # type: ignore[no-untyped-call]
