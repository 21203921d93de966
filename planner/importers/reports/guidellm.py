"""guidellm reports, version 2: one point per benchmark.

Latencies of tokens are in ms there, those of requests in s. A benchmark in which every request failed states
zeros for everything and no error, so the counts are looked at first.
"""

from __future__ import annotations

from typing import Any, Final

from models.load import Arrivals, LoadOrigin, LoadPoint, LoadReport
from planner.importers.reports.document import Report, ReportText, refuse, spread

__all__ = ["is_guidellm", "read_guidellm"]

FORMAT: Final = "guidellm"
_VERSION: Final = 2
_MS: Final = 1e-3
_CLOSED: Final = frozenset({"concurrent", "synchronous", "throughput"})


def is_guidellm(data: Any) -> bool:  # noqa: ANN401 - what a foreign file holds
    """Whether a document is a report of guidellm, of any version."""
    if not isinstance(data, dict) or not isinstance(data.get("benchmarks"), list):
        return False
    metadata = data.get("metadata")
    return isinstance(metadata, dict) and ("guidellm_version" in metadata or "version" in metadata)


def read_guidellm(text: ReportText) -> LoadReport:
    """The points of a report.

    Raises:
        CatalogError: another version, no benchmark, every request of a benchmark failed, or figures are missing.
    """
    report = Report(text.file, text.data)
    version = report.get("metadata.version")
    if version != _VERSION:
        raise refuse(
            text.file, "metadata.version", repr(version), f"{_VERSION}, as guidellm 0.4 and later write"
        )
    benchmarks = report.children("benchmarks")
    if not benchmarks:
        raise refuse(text.file, "benchmarks", "no benchmark", "at least one")
    tool = report.text("metadata.guidellm_version")
    return report.report([_point(each, tool) for each in benchmarks])


def _point(benchmark: Report, tool: str | None) -> LoadPoint | None:
    answered = benchmark.number(
        "metrics.request_totals.successful", "scheduler_metrics.requests_made.successful"
    )
    failed = (
        benchmark.number("metrics.request_totals.errored", "scheduler_metrics.requests_made.errored") or 0
    )
    cut = benchmark.number("metrics.request_totals.incomplete") or 0
    if not answered:
        found = f"0 requests that succeeded and {failed:g} that failed, so that every figure is 0"
        benchmark.complain("metrics.request_totals", found, "a run whose requests succeed")
        return None
    kind = benchmark.text("config.strategy.type_")
    latencies = {
        "ttft": _latency(benchmark, "time_to_first_token_ms", _MS),
        "itl": _latency(benchmark, "inter_token_latency_ms", _MS),
        "e2e": _latency(benchmark, "request_latency", 1.0),
    }
    closed = kind in _CLOSED
    return benchmark.point(
        **latencies,
        arrivals=Arrivals.CLOSED if closed else Arrivals.OPEN,
        concurrency=benchmark.number("metrics.request_concurrency.successful.mean") or None,
        offered_rps=None if closed else benchmark.number("config.strategy.rate"),
        achieved_rps=benchmark.needed("metrics.requests_per_second.successful.mean"),
        input_tokens=benchmark.needed("metrics.prompt_token_count.successful.mean"),
        output_tokens=benchmark.needed("metrics.output_token_count.successful.mean"),
        requests=int(answered),
        errors=int(failed + cut),
        duration_s=benchmark.number("duration"),
        origin=LoadOrigin(
            format=FORMAT,
            file=benchmark.file,
            place=benchmark.place,
            tool_version=tool,
            llm=benchmark.text("config.backend.model"),
        ),
    )


def _latency(benchmark: Report, name: str, scale: float) -> Any:  # noqa: ANN401 - a spread, checked by the point
    found = benchmark.child(f"metrics.{name}.successful")
    if found is None:
        return None
    flat = Report(found.file, {**found.data, **(found.get("percentiles") or {})}, found.place, found.findings)
    return spread(flat, scale=scale)
