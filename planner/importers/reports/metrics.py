"""A history of ``/metrics`` pages of vLLM or SGLang -> a load point per replica and per time between two pages.

Counters and histograms are read as differences: requests per second, mean lengths, means and percentiles of
latencies. Gauges (running, waiting, KV usage) are means of the two ends. Where a counter falls, the server
was started anew in between, and that stretch is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint, LoadReport
from planner.errors import CatalogError, Finding
from planner.importers.reports.document import ReportText, refuse
from planner.importers.reports.exposition import Sample, samples_of, time_in_name

__all__ = ["read_metrics"]

FORMAT: Final = "metrics"
_WHOSE: Final = ("model_name", "engine", "instance", "pod", "namespace")
_RUNNING: Final = ("vllm:num_requests_running", "sglang:num_running_reqs")
_WAITING: Final = ("vllm:num_requests_waiting", "sglang:num_queue_reqs")
_KV: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_INPUT: Final = ("vllm:request_prompt_tokens", "sglang:prompt_tokens_histogram")
_OUTPUT: Final = ("vllm:request_generation_tokens", "sglang:generation_tokens_histogram")
_TTFT: Final = ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds")
_ITL: Final = (
    "vllm:inter_token_latency_seconds",
    "vllm:time_per_output_token_seconds",
    "sglang:inter_token_latency_seconds",
)
_E2E: Final = ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds")
_FAILED: Final = frozenset({"abort", "error"})
_PERCENTILES: Final = (50, 75, 90, 95, 99)
_FEWEST: Final = 5
"""Requests that must have ended between two pages: means of fewer say little."""


@dataclass(slots=True)
class _Page:
    """What one replica stated at one time; ``buckets`` by histogram and upper bound."""

    file: str
    values: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    buckets: dict[str, dict[float, float]] = field(default_factory=lambda: defaultdict(dict))
    failed: float = 0.0

    def take(self, sample: Sample) -> None:
        """Add a sample; series that differ in other labels (finished reasons, ranks) are added up."""
        bound = sample.label("le")
        if bound is not None:
            series = self.buckets[sample.name.removesuffix("_bucket")]
            series[float(bound)] = series.get(float(bound), 0.0) + sample.value
            return
        self.values[sample.name] += sample.value
        if sample.name == "vllm:request_success_total" and sample.label("finished_reason") in _FAILED:
            self.failed += sample.value

    def first(self, names: Sequence[str]) -> float | None:
        """The value of the first name that is there."""
        return next((self.values[name] for name in names if name in self.values), None)


def read_metrics(texts: Sequence[ReportText]) -> LoadReport:
    """The points of a history: pages that state times, or files whose names do.

    Raises:
        CatalogError: a page has no time, there are fewer than two, or no request ended between them.
    """
    history = _history(texts)
    notes: list[str] = []
    points = [
        point
        for whose, pages in sorted(history.items())
        for earlier, later in pairwise(sorted(pages.items()))
        if (point := _between(whose, earlier, later, notes)) is not None
    ]
    if not points:
        fewest = max((len(pages) for pages in history.values()), default=0)
        found = "; ".join(notes[:3]) or f"{fewest} page of a replica"
        allowed = f"two pages or more of one replica between which at least {_FEWEST} requests ended"
        raise refuse(texts[0].file, "", found, allowed)
    return LoadReport(points=tuple(points), notes=tuple(notes))


def _history(texts: Iterable[ReportText]) -> Mapping[tuple[str, ...], dict[float, _Page]]:
    history: dict[tuple[str, ...], dict[float, _Page]] = defaultdict(dict)
    findings: list[Finding] = []
    for text in texts:
        named = time_in_name(text.file)
        samples = list(samples_of(text.text))
        if named is None and any(sample.time_s is None for sample in samples):
            allowed = (
                "a time per line, or in the name of the file (2026-04-25T18-47-18.prom, 1777142838.prom)"
            )
            findings.append(Finding(text.file, None, "", "no time", allowed))
            continue
        _take(history, text.file, samples, named)
    if findings:
        raise CatalogError.from_findings(findings)
    return history


def _take(
    history: dict[tuple[str, ...], dict[float, _Page]], file: str, samples: list[Sample], named: float | None
) -> None:
    for sample in samples:
        labels = dict(sample.labels)
        model = labels.get("model_name")
        when = sample.time_s if sample.time_s is not None else named
        if model is None or when is None:
            continue
        whose = tuple(labels.get(name, "") for name in _WHOSE)
        history[whose].setdefault(when, _Page(file)).take(sample)


def _between(
    whose: tuple[str, ...], earlier: tuple[float, _Page], later: tuple[float, _Page], notes: list[str]
) -> LoadPoint | None:
    (start_s, before), (end_s, after) = earlier, later
    stretch = f"{before.file} to {after.file}"
    ended = _difference(before, after, _OUTPUT, "_count")
    if ended is None or ended < 0:
        notes.append(
            f"{stretch}: a counter fell or is missing, the server was started anew or states no lengths"
        )
        return None
    if ended < _FEWEST:
        notes.append(f"{stretch}: {ended:g} requests ended, fewer than {_FEWEST}")
        return None
    ttft, itl, e2e = (_spread(before, after, series) for series in (_TTFT, _ITL, _E2E))
    inputs, outputs = (_mean(before, after, series) for series in (_INPUT, _OUTPUT))
    if not inputs or not outputs or (ttft, itl, e2e) == (None, None, None):
        notes.append(f"{stretch}: no lengths or no latencies")
        return None
    running, waiting = _gauge(before, after, _RUNNING), _gauge(before, after, _WAITING)
    failed = max(0.0, after.failed - before.failed)
    return LoadPoint(
        ttft=ttft,
        itl=itl,
        e2e=e2e,
        arrivals=Arrivals.OPEN,
        concurrency=(running or 0.0) + (waiting or 0.0) or None,
        running=running or None,
        waiting=waiting,
        kv_usage=_usage(_gauge(before, after, _KV)),
        achieved_rps=ended / (end_s - start_s),
        input_tokens=inputs,
        output_tokens=outputs,
        requests=int(ended),
        errors=int(failed),
        duration_s=end_s - start_s,
        origin=LoadOrigin(
            format=FORMAT,
            file=after.file,
            place=" ".join(part for part in whose[1:] if part),
            llm=whose[0],
            engine="vllm" if "vllm:num_requests_running" in after.values else "sglang",
            replicas=1,
        ),
    )


def _usage(stated: float | None) -> float | None:
    return None if stated is None else min(1.0, max(0.0, stated))


def _gauge(before: _Page, after: _Page, names: Sequence[str]) -> float | None:
    ends = [value for value in (before.first(names), after.first(names)) if value is not None]
    return sum(ends) / len(ends) if ends else None


def _difference(before: _Page, after: _Page, names: Sequence[str], suffix: str) -> float | None:
    for name in names:
        if f"{name}{suffix}" in after.values:
            return after.values[f"{name}{suffix}"] - before.values.get(f"{name}{suffix}", 0.0)
    return None


def _mean(before: _Page, after: _Page, names: Sequence[str]) -> float | None:
    count, total = (_difference(before, after, names, suffix) for suffix in ("_count", "_sum"))
    return total / count if count is not None and total is not None and count > 0 and total >= 0 else None


def _spread(before: _Page, after: _Page, names: Sequence[str]) -> LatencySpread | None:
    mean = _mean(before, after, names)
    if mean is None:
        return None
    name = next(name for name in names if f"{name}_count" in after.values)
    bounds = sorted(after.buckets.get(name, {}))
    grown = [after.buckets[name][bound] - before.buckets.get(name, {}).get(bound, 0.0) for bound in bounds]
    stated = {f"p{at}_s": _percentile(bounds, grown, at / 100) for at in _PERCENTILES}
    return LatencySpread(
        mean_s=mean, **{field: value for field, value in stated.items() if value is not None}
    )


def _percentile(bounds: Sequence[float], grown: Sequence[float], share: float) -> float | None:
    """Linear inside the bucket; None where it lies in the last one, which has no upper end."""
    if not grown or grown[-1] <= 0:
        return None
    wanted, low, below = share * grown[-1], 0.0, 0.0
    for bound, count in zip(bounds, grown, strict=True):
        if count >= wanted:
            return (
                low + (bound - low) * (wanted - below) / (count - below)
                if bound != float("inf") and count > below
                else None
            )
        low, below = bound, count
    return None
