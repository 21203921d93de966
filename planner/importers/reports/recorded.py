"""Requests of a vLLM run that were recorded one by one (a JSON line each) -> load points.

A line holds ``input_toks``, ``output_toks``, ``queued_ts``, ``scheduled_ts``, ``first_token_ts`` and ``last_token_ts``
in s. Load changes while such a run goes on, so requests are put together by the load that they met: the mean number
of requests in the batch while they were there. A time series beside it (``t``, ``running``, ``waiting``,
``kv_cache_pct``) adds KV usage where the engine recorded it.
"""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from models.load import Arrivals, LatencySpread, LoadOrigin, LoadPoint, LoadReport
from planner.importers.reports.document import ReportText, refuse

__all__ = ["is_recorded", "is_time_series", "read_recorded"]

FORMAT: Final = "vllm-requests"
_KEYS: Final = ("input_toks", "output_toks", "queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
_PER_GROUP: Final = 25
_GROUPS: Final = 8
_PERCENTILES: Final = (50, 75, 90, 95, 99)
_PERCENT: Final = 100.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Run:
    """Columns of a run, each of shape (requests,), in tokens and s; ``met`` is the mean batch that each met."""

    inputs: Floats
    outputs: Floats
    queued: Floats
    scheduled: Floats
    first: Floats
    last: Floats

    @property
    def met(self) -> Floats:
        """Mean number of requests between scheduling and last token while each of them was, itself included."""
        overlap = np.minimum(self.last[:, None], self.last) - np.maximum(
            self.scheduled[:, None], self.scheduled
        )
        return np.asarray(np.maximum(overlap, 0).sum(axis=1) / (self.last - self.scheduled))


def is_recorded(text: str) -> bool:
    """Whether a text is a line of JSON per request."""
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    return first.startswith("{") and all(f'"{key}"' in first for key in _KEYS)


def is_time_series(text: str) -> bool:
    """Whether a text is the time series of such a run."""
    header = text.lstrip("\ufeff").split("\n", 1)[0].strip().split(",")
    return {"t", "running", "waiting"} <= set(header)


def read_recorded(text: ReportText) -> LoadReport:
    """Points of a run; ``NAME_timeseries.csv`` and ``NAME_meta.json`` beside ``NAME_requests.jsonl`` add what they say.

    Raises:
        CatalogError: a line is no request, or there are too few for one point.
    """
    run, cut = _run(text)
    count = len(run.inputs)
    if count < _PER_GROUP:
        raise refuse(text.file, "", f"{count} requests", f"at least {_PER_GROUP}")
    met = run.met
    groups = np.array_split(np.argsort(met, kind="stable"), min(_GROUPS, count // _PER_GROUP))
    origin = _origin(text)
    usage = _usage(text)
    points = tuple(
        _point(
            run, group, float(met[group].mean()), origin.but(place=f"batch of {met[group].mean():.0f}"), usage
        )
        for group in groups
    )
    notes = (f"{text.file}: {cut} requests without a first and a last token",) if cut else ()
    gaps = np.diff(np.sort(run.queued))
    cv = float(gaps.std() / gaps.mean()) if gaps.mean() > 0 else None
    return LoadReport(points=points, arrival_cv=cv, notes=notes)


def _run(text: ReportText) -> tuple[_Run, int]:
    rows: list[list[float]] = []
    cut = 0
    for number, line in enumerate(text.text.lstrip("\ufeff").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            row = [float(record[key]) for key in _KEYS if record[key] is not None]
        except (ValueError, KeyError, TypeError) as cause:
            raise refuse(
                text.file, f"line {number}", "no request", f"a mapping with {', '.join(_KEYS)}"
            ) from cause
        whole = (
            len(row) == len(_KEYS)
            and row[3] < row[5]
            and row[2] <= row[3] <= row[4]
            and row[0] > 0
            and row[1] > 1
        )
        if whole:
            rows.append(row)
        else:
            cut += 1
    return _Run(*np.array(rows, dtype=float).reshape(-1, len(_KEYS)).T), cut


def _point(
    run: _Run, group: NDArray[np.intp], met: float, origin: LoadOrigin, usage: tuple[Floats, Floats] | None
) -> LoadPoint:
    first, last, queued = run.first[group], run.last[group], run.queued[group]
    waited = run.scheduled[group] - queued
    stay = last - queued
    # Little's law, with the batch that these requests met: the rate that such a batch answers.
    rate = met / float((last - run.scheduled[group]).mean())
    return LoadPoint(
        arrivals=Arrivals.OPEN,
        concurrency=rate * float(stay.mean()),
        # Others that a request meets, on average: what a mean over time is for requests that come at random.
        running=met - 1 if met > 1 else None,
        waiting=rate * float(waited.mean()),
        kv_usage=_usage_during(usage, run, group),
        achieved_rps=rate,
        input_tokens=float(run.inputs[group].mean()),
        output_tokens=float(run.outputs[group].mean()),
        ttft=_spread(first - queued),
        itl=_spread((last - first) / (run.outputs[group] - 1)),
        e2e=_spread(stay),
        requests=len(group),
        duration_s=float(last.max() - queued.min()),
        origin=origin,
    )


def _spread(seconds: Floats) -> LatencySpread:
    at = np.percentile(seconds, _PERCENTILES)
    stated = {f"p{name}_s": float(value) for name, value in zip(_PERCENTILES, at, strict=True)}
    return LatencySpread(mean_s=float(seconds.mean()), **stated)


def _beside(text: ReportText, ending: str) -> Path:
    return text.path.with_name(text.path.name.replace("_requests.jsonl", "") + ending)


def _origin(text: ReportText) -> LoadOrigin:
    try:
        meta: Any = json.loads(_beside(text, "_meta.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        meta = {}
    meta = meta if isinstance(meta, dict) else {}
    version, llm = meta.get("vllm_version"), meta.get("model")
    return LoadOrigin(
        format=FORMAT,
        file=text.file,
        llm=llm if isinstance(llm, str) else None,
        engine="vllm",
        engine_version=version if isinstance(version, str) else None,
        replicas=1,
    )


def _usage(text: ReportText) -> tuple[Floats, Floats] | None:
    """Times since the start of the run, s, and KV usage there; None: not recorded, or never above 0."""
    try:
        series = _beside(text, "_timeseries.csv").read_text(encoding="utf-8-sig")
        rows = [
            (float(row["t"]), float(row["kv_cache_pct"]) / _PERCENT)
            for row in csv.DictReader(io.StringIO(series))
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if not rows or max(usage for _, usage in rows) <= 0:
        return None
    times, usage = np.array(rows).T
    return times, np.clip(usage, 0.0, 1.0)


def _usage_during(
    usage: tuple[Floats, Floats] | None, run: _Run, group: Sequence[int] | NDArray[np.intp]
) -> float | None:
    if usage is None:
        return None
    times, shares = usage
    start = float(run.queued.min())
    middle = (run.scheduled[group] + run.last[group]) / 2 - start
    return statistics.fmean(np.interp(middle, times, shares).tolist())
