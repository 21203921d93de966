"""Latency over load as each source tells it: measured rows as points, models as curves with a band.

What is known of the promised statistic is shown at that statistic; a measured row has the one that it was measured at,
which its curve names. Loads are rates of one replica, so that closed loops and queues share an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.performance import MeasuredPoint, Origin, RatingQuestion, Rows
from models.picture import LoadCurve, LoadPoint
from models.queueing import FitQuality, QueueingParameters
from models.variant import Role
from planner.performance.given import kv_capacity
from planner.performance.interpolated import between, comparable
from planner.performance.picture import measured_rows, nearest_rows
from planner.performance.protocol import Knowledge, PerformanceSource
from planner.performance.queueing import QueueingSource, case_of, columns_of
from planner.performance.queueing.sizing import latencies_at
from planner.performance.queueing.times import rate_range
from planner.performance.residence import e2e_s, resident_tokens
from planner.performance.roofline.source import Roofline, latencies
from planner.performance.roofline.work import lacking, setup_of

__all__ = ["load_curves"]

Floats = NDArray[np.float64]

_POINTS: Final = 40
_HIGHEST: Final = 0.99
"""Share of what a full batch carries up to which queues are drawn: above it they are as long as is allowed."""

_LEVELS: Final = (0.1, 0.9)
"""Quantiles of the roofline's residuals between which its band lies: those of its interval."""

_MOST_FRONTS: Final = 3
"""Engines, versions and sources whose interpolation is drawn."""


def load_curves(
    question: RatingQuestion, knowledge: Knowledge, sources: Sequence[PerformanceSource]
) -> tuple[LoadCurve, ...]:
    """Every curve that is known.

    Args:
        question: variant, shape, promises and thresholds.
        knowledge: tables and parameters that sources are made from.
        sources: of these only what the scenario asks for is drawn.

    Returns:
        Measured rows of the nearest shape, what lies between rows, the queueing model, the roofline.
    """
    names = {source.name for source in sources}
    curves: list[LoadCurve] = []
    if "measured" in names:
        curves += _rows(question, knowledge)
        if knowledge.choice.rows is Rows.INTERPOLATED:
            curves += _between(question, knowledge)
    if "queueing" in names or question.variant.queueing is not None:
        curves += _queueing(question, knowledge)
    if "roofline" in names:
        curves += _roofline(question, knowledge)
    return tuple(curves)


def _rows(question: RatingQuestion, knowledge: Knowledge) -> Iterator[LoadCurve]:
    for rows in comparable(nearest_rows(question, knowledge)):
        first = rows[0]
        points = [
            _point(question, _Seen(row.rps, row.concurrency, row.ttft_s, row.itl_s))
            for row in sorted(rows, key=lambda each: (each.rps, each.concurrency))
        ]
        yield LoadCurve(
            origin=Origin.MEASURED,
            source=f"{_named(first)} at {first.input_tokens} × {first.output_tokens} tokens",
            at=first.at,
            joined=False,
            points=tuple(points),
        )


def _between(question: RatingQuestion, knowledge: Knowledge) -> Iterator[LoadCurve]:
    """Between measured rows, where the asked shape lies inside their hull."""
    drawn = 0
    for rows in comparable(measured_rows(question, knowledge)):
        found = between(rows, input_tokens=question.input_tokens, output_tokens=question.output_tokens)
        if found is None or len(found.concurrency) == 1 or drawn == _MOST_FRONTS:
            continue
        drawn += 1
        every = max(1, len(found.concurrency) // _POINTS)
        places = sorted({*range(0, len(found.concurrency), every), len(found.concurrency) - 1})
        columns = (found.rps, found.concurrency, found.ttft_s, found.itl_s)
        points = [_point(question, _Seen(*(float(each[place]) for each in columns))) for place in places]
        yield LoadCurve(
            origin=Origin.MEASURED,
            source=f"{_named(rows[0])}, between rows",
            at=rows[0].at,
            points=_rising(points),
        )


def _named(row: MeasuredPoint) -> str:
    return " ".join(part for part in (f"{row.source}:", row.engine, row.engine_version or "") if part)


def _queueing(question: RatingQuestion, knowledge: Knowledge) -> Iterator[LoadCurve]:
    found = QueueingSource(knowledge.queueing).known(question)
    if found is None:
        return
    parameters, source = found
    fit = next((row.fit for row in knowledge.queueing if row.parameters == parameters), None)
    edges = None if fit is None or question.variant.queueing is not None else _ends(parameters, fit)
    low, high = ((), ()) if edges is None else (_queue(question, each) for each in edges)
    points = _queue(question, parameters)
    if points:
        yield LoadCurve(
            origin=Origin.MODELED,
            source=f"queueing model, {source}",
            at=question.slo.at,
            points=points,
            low=low,
            high=high,
            band="parameters at the ends of their intervals" if low else "",
        )


def _ends(
    parameters: QueueingParameters, fit: FitQuality
) -> tuple[QueueingParameters, QueueingParameters] | None:
    """All parameters at their lower, and all at their upper ends; None: the fit tells no interval."""
    known = {
        name: interval
        for name in ("alpha_ms", "beta_ms_per_token", "gamma_ms_per_token")
        if (interval := getattr(fit, name)) is not None
    }
    if not known or not any(each.low for each in known.values()):
        return None
    low = parameters.but(**{name: each.low for name, each in known.items()})
    return low, parameters.but(**{name: each.high for name, each in known.items()})


def _queue(
    question: RatingQuestion, parameters: QueueingParameters, *, base_s: float = 0.0
) -> tuple[LoadPoint, ...]:
    """The queueing model at rates up to what a full batch carries; ``base_s`` is added to the first token, s."""
    case = case_of(question, parameters)
    most = rate_range(case)[1]
    rates: Floats = np.linspace(most / _POINTS, most * _HIGHEST, _POINTS)
    found = latencies_at(columns_of([case] * len(rates)), rates)
    points = [
        _Seen(
            rps=float(found.rate_rps[place]),
            in_flight=float(found.in_service[place] + found.waiting[place]),
            ttft_s=float(found.ttft_s[place]) + base_s,
            itl_s=float(found.itl_s[place]),
            e2e_s=float(found.e2e_s[place]) + base_s,
            waiting=float(found.waiting[place]),
        )
        for place in range(len(rates))
    ]
    return _rising(_point(question, each) for each in points)


def _roofline(question: RatingQuestion, knowledge: Knowledge) -> Iterator[LoadCurve]:
    variant = question.variant
    if question.llm.opaque or variant.pods_per_replica > 1 or lacking(setup_of(question)):
        return
    source, level = Roofline(knowledge), knowledge.choice.pessimism
    if source.most_in_flight(question) < 1:
        return
    points, low, high = (_roof(question, source, each) for each in (level, *_LEVELS))
    yield LoadCurve(
        origin=Origin.MODELED,
        source=f"roofline, {level:.0%} of measured runs did no worse",
        at=question.slo.at,
        points=points,
        low=low,
        high=high,
        band=f"{_LEVELS[1] - _LEVELS[0]:.0%} of measured runs",
    )


def _roof(question: RatingQuestion, source: Roofline, level: float) -> tuple[LoadPoint, ...]:
    """The roofline at a quantile of its residuals; a percentile is answered by the queue that stands for it."""
    if question.slo.at != "mean":
        parameters, base_s = source.queued(question, level)
        return _queue(question, parameters, base_s=0.0 if question.variant.role is Role.DECODE else base_s)
    setting = source.setting(question, level)
    loads = np.geomspace(1.0, max(2.0, source.most_in_flight(question)), _POINTS)
    points = []
    for load in loads.tolist():
        at = latencies(setting, load)
        points.append(_point(question, _Seen(at.rps, load, at.ttft_s, at.itl_s)))
    return _rising(points)


def _rising(points: Iterable[LoadPoint]) -> tuple[LoadPoint, ...]:
    """Points up to where more load carries no more."""
    kept: list[LoadPoint] = []
    for point in points:
        if kept and point.rps <= kept[-1].rps:
            break
        kept.append(point)
    return tuple(kept)


class _Seen(NamedTuple):
    """What a source shows at one load; ``waiting`` is part of ``in_flight``."""

    rps: float
    in_flight: float
    ttft_s: float
    itl_s: float
    e2e_s: float | None = None
    waiting: float | None = None


def _point(question: RatingQuestion, seen: _Seen) -> LoadPoint:
    """A point with what the role has, and the share of the KV cache that requests in service hold."""
    role, kv_tokens = question.variant.role, kv_capacity(question)
    whole = seen.e2e_s
    if whole is None:
        whole = e2e_s(ttft_s=seen.ttft_s, itl_s=seen.itl_s, output_tokens=question.output_tokens)
    served = seen.in_flight - (seen.waiting or 0.0)
    return LoadPoint(
        rps=seen.rps,
        in_flight=seen.in_flight,
        waiting=seen.waiting,
        ttft_s=None if role is Role.DECODE else seen.ttft_s,
        itl_s=None if role is Role.PREFILL else seen.itl_s,
        e2e_s=whole if role is Role.BOTH else None,
        kv_share=None if not kv_tokens else served * resident_tokens(question) / kv_tokens,
    )
