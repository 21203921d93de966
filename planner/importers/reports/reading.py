"""Paths -> load points: read each file once, tell its format by its content, report every problem at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from models.load import LoadReport
from planner.errors import CatalogError, Finding
from planner.importers.reports.aiperf import is_aiperf, is_aiperf_csv, read_aiperf, read_aiperf_csv
from planner.importers.reports.document import ReportText, refused_by
from planner.importers.reports.exposition import is_exposition
from planner.importers.reports.guidellm import is_guidellm, read_guidellm
from planner.importers.reports.inference_perf import is_inference_perf, read_inference_perf
from planner.importers.reports.llm_d_benchmark import is_llm_d_benchmark, read_llm_d_benchmark
from planner.importers.reports.metrics import read_metrics
from planner.importers.reports.recorded import is_recorded, is_time_series, read_recorded
from planner.importers.reports.tables import is_curve, is_profile, read_curve, read_measured
from planner.importers.reports.vllm_bench import is_vllm_bench, read_vllm_bench
from planner.performance.profile import read_text

__all__ = ["FORMATS", "read_reports"]

_LARGEST: Final = 200_000_000
"""Bytes of a file: reports with every request of a long run are some ten megabytes."""


@dataclass(frozen=True, slots=True)
class _Format:
    """How a format is told and read; ``by_text`` looks at the text before it is parsed."""

    name: str
    read: Callable[[ReportText], LoadReport]
    by_text: Callable[[str], bool] | None = None
    by_data: Callable[[Any], bool] | None = None


_KNOWN: Final = (
    _Format("recorded vLLM requests", read_recorded, by_text=is_recorded),
    _Format("aiperf CSV", read_aiperf_csv, by_text=is_aiperf_csv),
    _Format("control-loop curve", read_curve, by_text=is_curve),
    _Format("profile table", read_measured, by_text=is_profile),
    _Format("guidellm 2", read_guidellm, by_data=is_guidellm),
    _Format("inference-perf", read_inference_perf, by_data=is_inference_perf),
    _Format("vllm bench serve", read_vllm_bench, by_data=is_vllm_bench),
    _Format("aiperf JSON", read_aiperf, by_data=is_aiperf),
    _Format("llm-d-benchmark 0.1, 0.2, 0.2.1", read_llm_d_benchmark, by_data=is_llm_d_benchmark),
)
FORMATS: Final = (*(each.name for each in _KNOWN), "metrics pages (Prometheus text of vLLM or SGLang)")
"""Names of what can be read, for people."""


def read_reports(paths: Sequence[Path]) -> LoadReport:
    """Everything that files, or folders of files, hold; metrics pages of all of them are one history.

    Raises:
        CatalogError: a file cannot be read, is of no known format, or is refused; lists the problems of all files.
    """
    findings: list[Finding] = []
    reports: list[LoadReport] = []
    pages: list[ReportText] = []
    for path in _files(paths, findings):
        try:
            found = _read(path)
        except CatalogError as cause:
            findings += cause.findings
            continue
        except ValidationError as cause:
            findings += refused_by(cause, str(path), "", "a report")
            continue
        if isinstance(found, LoadReport):
            reports.append(found)
        else:
            pages.append(found)
    if pages and not findings:
        try:
            reports.append(read_metrics(pages))
        except CatalogError as cause:
            findings += cause.findings
        except ValidationError as cause:
            findings += refused_by(cause, pages[0].file, "", "a report")
    if findings:
        raise CatalogError.from_findings(findings)
    return _joined(reports)


def _files(paths: Iterable[Path], findings: list[Finding]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        inside = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        if not inside:
            findings.append(Finding(str(path), None, "", "an empty folder", "a folder with reports"))
        # What lies beside recorded requests is read with them.
        found += [each for each in inside if len(inside) == 1 or not _is_beside(each)]
    return found


def _is_beside(path: Path) -> bool:
    return path.name.endswith(("_timeseries.csv", "_meta.json"))


def _read(path: Path) -> LoadReport | ReportText:
    """What a file holds; a metrics page is given back as it is."""
    if path.exists() and path.stat().st_size > _LARGEST:
        found = f"{path.stat().st_size / 1e6:,.0f} MB"
        raise CatalogError.from_findings(
            [Finding(str(path), None, "", found, f"at most {_LARGEST / 1e6:,.0f} MB")]
        )
    text = read_text(path)
    for each in _KNOWN:
        if each.by_text is not None and each.by_text(text):
            return each.read(ReportText(str(path), text, None, path))
    if is_exposition(text):
        return ReportText(str(path), text, None, path)
    data = _parsed(text)
    for each in _KNOWN:
        if each.by_data is not None and each.by_data(data):
            return each.read(ReportText(str(path), text, data, path))
    found = "a time series without its requests" if is_time_series(text) else "no report of a known format"
    allowed = "NAME_requests.jsonl beside it" if is_time_series(text) else "; ".join(FORMATS)
    raise CatalogError.from_findings([Finding(str(path), None, "", found, allowed)])


def _parsed(text: str) -> Any:  # noqa: ANN401 - what a foreign file holds
    """JSON, a JSON value per line, or YAML; None: none of them."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    except RecursionError:
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        return (
            [json.loads(line) for line in lines]
            if lines and lines[0].startswith("{")
            else yaml.safe_load(text)
        )
    except (ValueError, RecursionError, yaml.YAMLError):
        return None


def _joined(reports: Sequence[LoadReport]) -> LoadReport:
    cvs = [report.arrival_cv for report in reports if report.arrival_cv is not None]
    return LoadReport(
        points=tuple(point for report in reports for point in report.points),
        startups_s=tuple(each for report in reports for each in report.startups_s),
        arrival_cv=max(cvs, default=None),
        notes=tuple(note for report in reports for note in report.notes),
    )
