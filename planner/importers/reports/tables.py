"""Load sweeps as tables: our own profiles, and the curves that llm-inferno's control loop writes."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import replace
from typing import Final

from pydantic import ValidationError

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint, LoadReport
from models.performance import MeasuredPoint
from planner.errors import CatalogError, Finding
from planner.importers.reports.document import ReportText, refused_by
from planner.performance.profile import read_profile

__all__ = ["is_curve", "is_profile", "read_curve", "read_measured"]

_CURVE: Final = ("shape", "concurrency", "achieved_rpm", "itl_ms", "ttft_ms")
_PROFILE: Final = frozenset({"llm", "accelerator", "concurrency", "ttft_s", "itl_s", "rps"})
_PERCENTILE_FIELDS: Final = {50.0: "p50_s", 75.0: "p75_s", 90.0: "p90_s", 95.0: "p95_s", 99.0: "p99_s"}


def is_curve(text: str) -> bool:
    """Whether a text is a curve: a shape such as 1024x512 and a concurrency per line."""
    return set(_CURVE) <= _header(text)


def is_profile(text: str) -> bool:
    """Whether a text is a profile table of ours."""
    return _header(text) >= _PROFILE


def _header(text: str) -> set[str]:
    return {name.strip() for name in text.lstrip("\ufeff").split("\n", 1)[0].split(",")}


def read_curve(text: ReportText) -> LoadReport:
    """Points of a curve. A latency that is no number was not seen, because no request ended.

    Raises:
        CatalogError: cells that are no numbers, or shapes that are none.
    """
    points: list[LoadPoint] = []
    findings: list[Finding] = []
    notes: list[str] = []
    for line, row in enumerate(csv.DictReader(io.StringIO(text.text.lstrip("\ufeff"))), start=2):
        try:
            point = _curve_point(text.file, line, row)
        except ValidationError as cause:
            findings += [replace(each, line=line) for each in refused_by(cause, text.file, "", "a row")]
            continue
        except (ValueError, TypeError, AttributeError) as cause:
            allowed = "shape INxOUT and numbers in every column"
            findings.append(Finding(text.file, line, "", str(cause), allowed))
            continue
        if point is None:
            notes.append(f"{text.file}:{line}: no rate or no latency")
        else:
            points.append(point)
    if findings:
        raise CatalogError.from_findings(findings)
    return LoadReport(points=tuple(points), notes=tuple(notes))


def _curve_point(file: str, line: int, row: dict[str, str]) -> LoadPoint | None:
    inputs, _, outputs = row["shape"].partition("x")
    ttft, itl, rate = (float(row[name]) for name in ("ttft_ms", "itl_ms", "achieved_rpm"))
    running, usage = (float(row.get(name) or "nan") for name in ("running", "kv_pct"))
    if rate <= 0 or math.isnan(itl):
        return None
    return LoadPoint(
        arrivals=Arrivals.CLOSED,
        concurrency=float(row["concurrency"]),
        running=None if math.isnan(running) or running <= 0 else running,
        kv_usage=None if math.isnan(usage) else usage / 100,
        achieved_rps=rate / 60,
        input_tokens=float(inputs),
        output_tokens=float(outputs),
        ttft=None if math.isnan(ttft) else LatencySpread(mean_s=ttft / 1000),
        itl=LatencySpread(mean_s=itl / 1000),
        origin=LoadOrigin(format="control-loop", file=file, place=f"line {line}", replicas=1),
    )


def read_measured(text: ReportText) -> LoadReport:
    """Points of a profile table.

    Raises:
        CatalogError: the table has problems; lists all of them.
    """
    rows = read_profile(text.path)
    return LoadReport(points=tuple(_measured(text.file, row) for row in rows if row.output_tokens > 1))


def _measured(file: str, row: MeasuredPoint) -> LoadPoint:
    field = _PERCENTILE_FIELDS.get(row.at, "mean_s") if isinstance(row.at, float) else "mean_s"
    return LoadPoint(
        arrivals=Arrivals.CLOSED,
        concurrency=row.concurrency,
        achieved_rps=row.rps,
        input_tokens=row.input_tokens,
        output_tokens=row.output_tokens,
        ttft=LatencySpread.model_validate({field: row.ttft_s}),
        itl=LatencySpread.model_validate({field: row.itl_s}),
        origin=LoadOrigin(
            format="profile",
            file=file,
            place=row.row or "",
            llm=row.llm,
            accelerator=row.accelerator,
            engine=row.engine,
            engine_version=row.engine_version,
            parallelism=row.parallelism,
            replicas=1,
        ),
    )
