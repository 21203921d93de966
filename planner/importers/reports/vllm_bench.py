"""Results of ``vllm bench serve`` (JSON, or a line per run): one point per run.

vLLM writes latencies in ms under names that end in ``_ms``. InferenceX stores the same records in s, without
that ending. A record may state medians and no means.
"""

from __future__ import annotations

import math
from typing import Any, Final

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint, LoadReport
from planner.importers.reports.document import Report, ReportText, per_token

__all__ = ["is_vllm_bench", "read_vllm_bench"]

FORMAT: Final = "vllm-bench-serve"
_MARKS: Final = frozenset({"model_id", "num_prompts", "request_throughput", "completed"})
_STATISTICS: Final = {
    "mean_s": "mean",
    "p50_s": "median",
    "p75_s": "p75",
    "p90_s": "p90",
    "p95_s": "p95",
    "p99_s": "p99",
}


def is_vllm_bench(data: Any) -> bool:  # noqa: ANN401 - what a foreign file holds
    """Whether a document is a result, or a list of results."""
    records = data if isinstance(data, list) else [data]
    return bool(records) and all(isinstance(record, dict) and record.keys() >= _MARKS for record in records)


def read_vllm_bench(text: ReportText) -> LoadReport:
    """The points of a result file.

    Raises:
        CatalogError: a run without a request that succeeded, or figures are missing.
    """
    many = isinstance(text.data, list)
    records = text.data if many else [text.data]
    whole = Report(text.file, {})
    points = [
        _point(Report(text.file, record, f"[{index}]" if many else "", whole.findings))
        for index, record in enumerate(records)
    ]
    return whole.report(points)


def _point(run: Report) -> LoadPoint | None:
    answered = run.number("completed")
    failed = run.number("failed")
    if not answered:
        run.complain("completed", "no request that succeeded", "a run whose requests succeed")
        return None
    if failed is None:
        failed = max(0.0, (run.number("num_prompts") or answered) - answered)
    limit = run.number("max_concurrency")
    offered = run.number("request_rate")
    endless = offered is None or math.isinf(offered)
    output = run.needed("total_output_tokens") / answered
    ttft, e2e = _latency(run, "ttft"), _latency(run, "e2el")
    steps = (_latency(run, "tpot"), _latency(run, "itl"))
    return run.point(
        arrivals=Arrivals.CLOSED if endless and limit is not None else Arrivals.OPEN,
        concurrency=limit if endless else None,
        offered_rps=None if endless else offered,
        achieved_rps=run.needed("request_throughput"),
        input_tokens=run.needed("total_input_tokens") / answered,
        output_tokens=output,
        ttft=ttft,
        itl=per_token(*steps, ttft=ttft, e2e=e2e, output_tokens=output),
        e2e=e2e,
        requests=int(answered),
        errors=int(failed),
        duration_s=run.number("duration"),
        origin=LoadOrigin(
            format=FORMAT, file=run.file, place=run.place, llm=run.text("model_id"), engine=_engine(run)
        ),
    )


def _engine(run: Report) -> str | None:
    """The backend where it names an engine; ``openai`` and the like name an interface."""
    backend = run.text("backend")
    return backend if backend in {"vllm", "sglang", "tgi", "trtllm"} else None


def _latency(run: Report, name: str) -> LatencySpread | None:
    found: dict[str, float] = {}
    for field, prefix in _STATISTICS.items():
        in_ms = run.number(f"{prefix}_{name}_ms")
        value = run.number(f"{prefix}_{name}") if in_ms is None else in_ms / 1000
        if value is not None and value >= 0:
            found[field] = value
    return LatencySpread(**found) if any(found.values()) else None
