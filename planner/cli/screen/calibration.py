"""Screens of ``calibrate``: parameters with their intervals, each point beside the fit, and proposed thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console

from models.calibration import Calibration, FittedPoint, ThresholdProposal
from planner.cli.screen.layout import Column, bullets, section, table
from planner.wording import number, percent

__all__ = ["show_calibration", "show_proposals"]

_PARAMETERS: Final = (
    ("alpha_ms", "alpha: an empty iteration", "ms", 1.0),
    ("beta_ms_per_token", "beta: a computed token", "us", 1e3),
    ("gamma_ms_per_token", "gamma: a token read from the KV cache", "ns", 1e6),
)
_ERRORS: Final = (("ITL", "itl_error"), ("TTFT", "ttft_error"), ("req/s", "rps_error"))


def show_calibration(console: Console, found: Calibration) -> None:
    """One fit."""
    known, fit = found.profile, found.profile.fit
    section(console, f"{known.llm} on {known.accelerator} {known.parallelism.label} {known.precision}")
    made = table(
        [
            Column("parameter", right=False),
            Column("value"),
            Column("95 % interval"),
            Column("unit", right=False),
        ]
    )
    for name, words, unit, scale in _PARAMETERS:
        interval = getattr(fit, name) if fit is not None else None
        span = (
            "" if interval is None else f"{number(interval.low * scale)} to {number(interval.high * scale)}"
        )
        made.add_row(words, number(getattr(known.parameters, name) * scale), span, unit)
    console.print(made)
    if fit is not None:
        stated = [
            f"{name} {percent(getattr(fit, key))}" for name, key in _ERRORS if getattr(fit, key) is not None
        ]
        console.print(
            f"Mean error over {fit.points} load levels: {', '.join(stated)}; condition {number(found.condition, 3)}."
        )
    console.print()
    _show_points(console, found.points)
    if found.notes:
        section(console, "Notes")
        bullets(console, found.notes)


def _show_points(console: Console, points: Sequence[FittedPoint]) -> None:
    headers = ("batch", "ITL ms", "fitted", "TTFT ms", "fitted", "req/s", "fitted")
    made = table([Column("tokens in/out", right=False), *map(Column, headers), Column("", right=False)])
    for point in points:
        mark = "outlier" if point.outlier else str(point.left_out or "").replace("_", " ")
        made.add_row(
            f"{point.input_tokens:.0f}/{point.output_tokens:.0f}",
            _figure(point.in_service),
            *(
                _figure(value, 1000)
                for value in (point.itl_s, point.itl_fitted_s, point.ttft_s, point.ttft_fitted_s)
            ),
            _figure(point.rps),
            _figure(point.rps_fitted),
            mark,
        )
    console.print(made)


def _figure(value: float | None, scale: float = 1.0) -> str:
    return "" if value is None else number(value * scale, 3)


def show_proposals(console: Console, found: Sequence[ThresholdProposal]) -> None:
    """Proposed thresholds, a line per sweep."""
    section(console, "Thresholds")
    headers = ("tau_kv", "gamma_kv", "tau_queue", "gamma_queue", "headroom", "req/s")
    made = table([Column("variant", right=False), *map(Column, headers), Column("limited by", right=False)])
    for each in found:
        values = each.thresholds
        figures = (values.tau_kv, values.gamma_kv, values.tau_queue, values.gamma_queue)
        made.add_row(
            f"{each.variant} {each.input_tokens:.0f}/{each.output_tokens:.0f}",
            *(number(value, 3) for value in figures),
            percent(each.headroom.relative),
            number(each.knee_rps, 3),
            str(each.limited_by).replace("_", " "),
        )
    console.print(made)
    for each in found:
        said = f"{each.variant}: a start of {number(each.startup_s)} s and arrivals of CV {number(each.arrival_cv, 3)} were reckoned with"
        bullets(console, [said, *(f"{each.variant}: {note}" for note in each.notes)])
