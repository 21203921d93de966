"""Summaries of aiperf (``profile_export_aiperf.json`` and ``.csv``, as its documentation describes them): one point.

Every metric carries its unit. The CSV has a block of distributions, a block of single values, and perhaps a
block of telemetry; it does not say how requests were sent.
"""

from __future__ import annotations

import csv
import io
import re
from typing import Any, Final

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint, LoadReport
from planner.importers.reports.document import Report, ReportText, refuse, spread

__all__ = ["is_aiperf", "is_aiperf_csv", "read_aiperf", "read_aiperf_csv"]

FORMAT: Final = "aiperf"
_MARKS: Final = frozenset({"request_latency", "request_throughput"})
_TO_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_METRIC: Final = re.compile(r"^(?P<name>[^(]+?)\s*(?:\((?P<unit>[^)]*)\))?$")


def is_aiperf(data: Any) -> bool:  # noqa: ANN401 - what a foreign file holds
    """Whether a document is a JSON summary."""
    return isinstance(data, dict) and all(
        isinstance(data.get(mark), dict) and "unit" in data[mark] for mark in _MARKS
    )


def is_aiperf_csv(text: str) -> bool:
    """Whether a text is a CSV summary."""
    return text.lstrip("\ufeff").startswith("Metric,avg,") and "Request Latency" in text


def read_aiperf(text: ReportText) -> LoadReport:
    """The point of a JSON summary.

    Raises:
        CatalogError: no request succeeded, a unit is unknown, or figures are missing.
    """
    report = Report(text.file, text.data)
    return report.report([_point(report)])


def read_aiperf_csv(text: ReportText) -> LoadReport:
    """The point of a CSV summary.

    Raises:
        CatalogError: as :func:`read_aiperf`.
    """
    report = Report(text.file, _from_csv(text.text))
    return report.report([_point(report)])


def _point(report: Report) -> LoadPoint | None:
    answered = report.number("request_count.avg")
    failed = report.number("error_request_count.avg") or 0
    failed = failed or sum(each.number("count") or 0 for each in report.children("error_summary"))
    if not answered:
        found = f"no request that succeeded, {failed:g} failed"
        raise refuse(report.file, "request_count", found, "a run whose requests succeed")
    latencies = {
        "ttft": _latency(report, "time_to_first_token"),
        "itl": _latency(report, "inter_token_latency"),
        "e2e": _latency(report, "request_latency"),
    }
    rate = report.number("input_config.loadgen.request_rate")
    limit = report.number("input_config.loadgen.concurrency")
    return report.point(
        **latencies,
        arrivals=Arrivals.OPEN if rate is not None else Arrivals.CLOSED,
        concurrency=report.number("effective_concurrency.avg") or (limit if rate is None else None),
        offered_rps=rate,
        achieved_rps=report.needed("request_throughput.avg"),
        input_tokens=_length(report, "input_sequence_length", "total_isl", answered),
        output_tokens=_length(report, "output_sequence_length", "total_osl", answered),
        requests=int(answered),
        errors=int(failed),
        duration_s=report.number("benchmark_duration.avg"),
        origin=LoadOrigin(
            format=FORMAT,
            file=report.file,
            tool_version=report.text("aiperf_version", "schema_version"),
            llm=report.text("input_config.endpoint.model_names.0"),
        ),
    )


def _length(report: Report, mean: str, total: str, answered: float) -> float:
    stated = report.number(f"{mean}.avg")
    if stated is not None:
        return stated
    tokens = report.number(f"{total}.avg")
    return report.needed(f"{mean}.avg", f"{total}.avg") if tokens is None else tokens / answered


def _latency(report: Report, name: str) -> LatencySpread | None:
    found = report.child(name)
    if found is None:
        return None
    unit = found.text("unit") or ""
    if unit not in _TO_SECONDS:
        found.complain("unit", repr(unit), ", ".join(_TO_SECONDS))
        return None
    return spread(found, scale=_TO_SECONDS[unit], mean=("avg",))


def _from_csv(text: str) -> dict[str, dict[str, Any]]:
    """The same mapping as the JSON summary has, from the two blocks of figures."""
    metrics: dict[str, dict[str, Any]] = {}
    header: list[str] = []
    for row in csv.reader(io.StringIO(text.lstrip("\ufeff"))):
        if row and row[0] in {"Metric", "Endpoint"}:
            header = row
        elif row and header[:1] == ["Metric"] and (match := _METRIC.match(row[0].strip())):
            names = ["avg" if name == "Value" else name for name in header[1:]]
            figures = {
                name: number
                for name, cell in zip(names, row[1:], strict=False)
                if (number := _number(cell)) is not None
            }
            key = match["name"].lower().replace(" ", "_")
            metrics[key] = {"unit": match["unit"] or "", **figures}
    return metrics


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace(",", ""))
    except ValueError:
        return None
