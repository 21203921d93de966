"""Life-cycle reports of inference-perf (one stage or the summary of a run): one point per file; latencies in s."""

from __future__ import annotations

from typing import Any, Final

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadReport
from planner.importers.reports.document import Report, ReportText, per_token, refuse, spread

__all__ = ["is_inference_perf", "read_inference_perf"]

FORMAT: Final = "inference-perf"


def is_inference_perf(data: Any) -> bool:  # noqa: ANN401 - what a foreign file holds
    """Whether a document is a life-cycle report."""
    return isinstance(data, dict) and {"load_summary", "successes", "failures"} <= data.keys()


def read_inference_perf(text: ReportText) -> LoadReport:
    """The point of a report.

    Raises:
        CatalogError: no request succeeded, or figures are missing.
    """
    report = Report(text.file, text.data)
    answered = report.number("successes.count")
    failed = report.number("failures.count") or 0
    if not answered:
        found = f"no request that succeeded, {failed:g} failed"
        raise refuse(text.file, "successes.count", found, "a run whose requests succeed")
    at_once = report.number("load_summary.concurrency", "load_summary.concurrency_level")
    output = report.needed("successes.output_len.mean")
    ttft, e2e = _latency(report, "time_to_first_token"), _latency(report, "request_latency")
    steps = (_latency(report, "time_per_output_token"), _latency(report, "inter_token_latency"))
    point = report.point(
        arrivals=Arrivals.OPEN if at_once is None else Arrivals.CLOSED,
        concurrency=at_once,
        offered_rps=report.number("load_summary.requested_rate") if at_once is None else None,
        achieved_rps=_rate(report, answered),
        input_tokens=report.needed("successes.prompt_len.mean"),
        output_tokens=output,
        ttft=ttft,
        itl=per_token(*steps, ttft=ttft, e2e=e2e, output_tokens=output),
        e2e=e2e,
        requests=int(answered),
        errors=int(failed),
        duration_s=report.number("benchmark_time_seconds"),
        origin=LoadOrigin(format=FORMAT, file=text.file),
    )
    return report.report([point])


def _rate(report: Report, answered: float) -> float:
    """Requests answered per second; from count and time where the report has no throughput."""
    stated = report.number("successes.throughput.requests_per_sec")
    if stated is not None:
        return stated
    took = report.number("benchmark_time_seconds")
    return answered / took if took else report.needed("successes.throughput.requests_per_sec")


def _latency(report: Report, name: str) -> LatencySpread | None:
    return spread(report.child(f"successes.latency.{name}"), scale=1.0)
