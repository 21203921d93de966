"""Rates between measured rows: inside the hull of lengths and loads, never outside.

For every engine, version, source and statistic on its own, the asked shape lies in the smallest rectangle of
measured shapes (input x output length) around it, or on one of them. At each load that all its corners were
measured around, logarithms of latencies and rates are weighed bilinearly in the logarithms of the lengths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.performance import MeasuredPoint, Origin, Rating, RatingQuestion
from models.variant import Role
from planner.performance.given import kv_capacity
from planner.performance.ladder import Ladder, unsaturated
from planner.performance.residence import residence_s, resident_tokens

__all__ = ["Between", "between", "comparable", "rate_between"]

Floats = NDArray[np.float64]
_Corner = tuple[float, Ladder]

_STEPS: Final = 256


@dataclass(frozen=True, slots=True)
class Between:
    """What the asked shape shows at every load inside the hull, one value per load.

    Attributes:
        corners: measured shapes around the asked one, with their weights.
        concurrency: requests in flight, rising.
        ttft_s: time to first token.
        itl_s: inter-token latency.
        rps: rate of one replica.
    """

    corners: tuple[_Corner, ...]
    concurrency: Floats
    ttft_s: Floats
    itl_s: Floats
    rps: Floats

    def distance(self, input_tokens: int, output_tokens: int, concurrency: float) -> float:
        """Largest |ln(asked / measured)| over lengths and load to the nearest row of the corners."""
        return min(
            max(
                abs(math.log(input_tokens / row.input_tokens)),
                abs(math.log(output_tokens / row.output_tokens)),
                abs(math.log(concurrency / row.concurrency)),
            )
            for _, ladder in self.corners
            for row in ladder.rows
        )


def between(rows: Iterable[MeasuredPoint], *, input_tokens: int, output_tokens: int) -> Between | None:
    """The asked shape between rows of one setup, source and statistic; None: it lies outside their hull."""
    shapes: dict[tuple[int, int], list[MeasuredPoint]] = {}
    for row in rows:
        shapes.setdefault((row.input_tokens, row.output_tokens), []).append(row)
    corners = _corners(
        {shape: Ladder(unsaturated(those)) for shape, those in shapes.items()}, input_tokens, output_tokens
    )
    if corners is None:
        return None
    fewest, most = max(ladder.fewest for _, ladder in corners), min(ladder.most for _, ladder in corners)
    if fewest > most:
        return None
    measured = [load for _, ladder in corners for load in ladder.concurrencies if fewest <= load <= most]
    loads = (
        np.union1d(np.geomspace(fewest, most, _STEPS), measured)
        if most > fewest
        else np.array([float(fewest)])
    )
    logs = np.log(loads)
    ttft, itl, rps = np.exp(sum(weight * ladder.at(logs) for weight, ladder in corners))
    return Between(corners, loads, ttft, itl, rps)


def comparable(rows: Iterable[MeasuredPoint]) -> Iterator[list[MeasuredPoint]]:
    """Rows of one engine, version, source, statistic and precision of the cache together."""

    def key(row: MeasuredPoint) -> tuple[str, str, str, str, str]:
        return row.engine, row.engine_version or "", row.source, str(row.at), row.kv_precision.value

    for _, group in groupby(sorted(rows, key=key), key=key):
        yield list(group)


def rate_between(rows: Iterable[MeasuredPoint], question: RatingQuestion) -> Rating | None:
    """The highest rate between rows that fit the question's setup; None: outside the hull, or no load keeps the promises.

    Args:
        rows: of the asked LLM, accelerator, precision, parallelism, role and engine, with statistics that
            answer the asked promises.
        question: what is asked.
    """
    ratings = [rating for group in comparable(rows) for rating in _rating(group, question)]
    return max(ratings, key=lambda rating: rating.rated_rps, default=None)


def _rating(rows: list[MeasuredPoint], question: RatingQuestion) -> Iterator[Rating]:
    role = question.variant.role
    found = between(rows, input_tokens=question.input_tokens, output_tokens=question.output_tokens)
    if found is None:
        return
    keeping = np.flatnonzero(_keeps(found, question))
    if not keeping.size:
        return
    kv_tokens, resident, thresholds = kv_capacity(question), resident_tokens(question), question.thresholds
    inside = (
        math.inf if kv_tokens is None else (thresholds.tau_kv - thresholds.gamma_kv) * kv_tokens / resident
    )
    if inside < 1:
        return
    last = int(keeping[-1])
    rated_at, rated = _best(found, last, inside)
    _, surge = _best(found, last, math.inf if kv_tokens is None else thresholds.tau_kv * kv_tokens / resident)
    stay = residence_s(
        role,
        ttft_s=float(found.ttft_s[rated_at]),
        itl_s=float(found.itl_s[rated_at]),
        output_tokens=question.output_tokens,
    )
    load = min(float(found.concurrency[rated_at]), inside)
    yield Rating(
        rated_rps=rated,
        surge_rps=max(rated, surge),
        ttft_s=float(found.ttft_s[rated_at]),
        itl_s=float(found.itl_s[rated_at]),
        kv_capacity_tokens=kv_tokens,
        kv_tokens_per_rps=stay * resident,
        origin=Origin.MEASURED,
        source=_source(found, rows[0], load)
        + ("" if kv_tokens is not None else "; KV capacity unknown, no KV limit"),
        distance=found.distance(question.input_tokens, question.output_tokens, load),
    )


def _keeps(found: Between, question: RatingQuestion) -> NDArray[np.bool_]:
    """Whether each load keeps every promise that depends on its role, and every smaller load does."""
    slo, role = question.slo, question.variant.role
    # Rounding in exp(log(x)) must not break a promise that a row just keeps.
    slack = 1.0 + 1e-9
    keeps = np.ones(found.concurrency.shape, dtype=np.bool_)
    if slo.ttft_s is not None and role is not Role.DECODE:
        keeps &= found.ttft_s <= slo.ttft_s * slack
    if slo.itl_s is not None and role is not Role.PREFILL:
        keeps &= found.itl_s <= slo.itl_s * slack
    if slo.e2e_s is not None:
        keeps &= found.ttft_s + (question.output_tokens - 1) * found.itl_s <= slo.e2e_s * slack
    return np.logical_and.accumulate(keeps)


def _best(found: Between, last: int, inside: float) -> tuple[int, float]:
    """Index of the load and rate: the best up to ``last`` with no more than ``inside`` requests in flight.

    Below the lowest load the rate falls at most in proportion: with fewer in flight none gets slower.
    """
    rates = found.rps[: last + 1] * np.minimum(1.0, inside / found.concurrency[: last + 1])
    best = int(np.argmax(rates))
    return best, float(rates[best])


def _source(found: Between, row: MeasuredPoint, load: float) -> str:
    engine = " ".join(part for part in (row.engine, row.engine_version) if part)
    shapes = [f"{ladder.rows[0].input_tokens}x{ladder.rows[0].output_tokens}" for _, ladder in found.corners]
    where = shapes[0] if len(shapes) == 1 else f"between {', '.join(shapes)}"
    return f"{row.source}: {engine}, {where}, {load:.3g} in flight"


def _corners(
    ladders: dict[tuple[int, int], Ladder], input_tokens: int, output_tokens: int
) -> tuple[_Corner, ...] | None:
    """The smallest rectangle of measured shapes around the asked one, with bilinear weights; None: there is none."""
    inputs, outputs = sorted({shape[0] for shape in ladders}), sorted({shape[1] for shape in ladders})
    best: tuple[float, tuple[_Corner, ...]] | None = None
    for (x0, x1), (y0, y1) in product(_brackets(inputs, input_tokens), _brackets(outputs, output_tokens)):
        corners = dict.fromkeys(product((x0, x1), (y0, y1)))
        if not all(corner in ladders for corner in corners):
            continue
        size = math.log(x1 / x0) + math.log(y1 / y0)
        if best is None or size < best[0]:
            weights = {
                (x, y): _weight(x, x0, x1, input_tokens) * _weight(y, y0, y1, output_tokens)
                for x, y in corners
            }
            best = size, tuple((weight, ladders[corner]) for corner, weight in weights.items())
    return None if best is None else best[1]


def _brackets(values: list[int], asked: int) -> Iterator[tuple[int, int]]:
    """Pairs of measured lengths around the asked one; the length itself where it was measured."""
    if asked in values:
        yield asked, asked
    yield from product(
        [value for value in values if value < asked], [value for value in values if value > asked]
    )


def _weight(value: int, low: int, high: int, asked: int) -> float:
    if low == high:
        return 1.0
    share = math.log(asked / low) / math.log(high / low)
    return share if value == high else 1.0 - share
