"""Rows of one setup and one request shape, by requests in flight: where they saturate, and what lies between them.

Latencies and rate grow with the load, so each is first made to grow (a row that is faster than one with fewer
requests in flight is noise and taken to be as slow) and then interpolated by monotone cubics in logarithms
(PCHIP, Fritsch and Butland 1984). Nothing is said outside the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.performance import MeasuredPoint

__all__ = ["Ladder", "unsaturated"]

Floats = NDArray[np.float64]

_LEAST_GAIN: Final = 0.1
"""Rate gained per request in flight gained, both as logarithms, below which a replica is saturated."""
_EXPLOSION: Final = 2.0
"""Growth of the first token's time, per request in flight gained, that only a queue explains."""
_MOSTLY_WAITING: Final = 0.5


def unsaturated(rows: Iterable[MeasuredPoint]) -> tuple[MeasuredPoint, ...]:
    """Rows up to the first one that is saturated, by requests in flight; of equal loads the fastest rate first.

    A row is saturated when it has more in flight than the row before and carries hardly more, or when its
    first token takes explosively longer and most of the request: what it adds is a queue and no capacity.
    The rows are of one setup, statistic and shape.
    """
    kept: list[MeasuredPoint] = []
    for row in sorted(rows, key=lambda row: (row.concurrency, -row.rps, row.row or "")):
        if kept and row.concurrency > kept[-1].concurrency and _saturates(kept, row):
            break
        kept.append(row)
    return tuple(kept)


def _saturates(before: Sequence[MeasuredPoint], row: MeasuredPoint) -> bool:
    best = max(before, key=lambda other: other.rps)
    last = before[-1]
    gain = (
        math.log(row.rps / best.rps) / math.log(row.concurrency / best.concurrency)
        if row.concurrency > best.concurrency
        else 0.0
    )
    explosion = math.log(row.ttft_s / last.ttft_s) / math.log(row.concurrency / last.concurrency)
    waits = row.ttft_s > _MOSTLY_WAITING * (row.ttft_s + (row.output_tokens - 1) * row.itl_s)
    return gain < _LEAST_GAIN or (explosion > _EXPLOSION and waits)


@dataclass(frozen=True)
class Ladder:
    """Unsaturated rows of one shape, at least one, by rising concurrency.

    Attributes:
        rows: as :func:`unsaturated` returns them.
    """

    rows: tuple[MeasuredPoint, ...]

    @cached_property
    def _rungs(self) -> tuple[MeasuredPoint, ...]:
        """One row per concurrency: the one with the highest rate."""
        rungs: dict[int, MeasuredPoint] = {}
        for row in self.rows:
            rungs.setdefault(row.concurrency, row)
        return tuple(rungs.values())

    @property
    def fewest(self) -> int:
        """Requests in flight of the lowest row."""
        return self._rungs[0].concurrency

    @property
    def most(self) -> int:
        """Requests in flight of the highest row."""
        return self._rungs[-1].concurrency

    @property
    def concurrencies(self) -> tuple[int, ...]:
        """Requests in flight of every row."""
        return tuple(row.concurrency for row in self._rungs)

    @cached_property
    def _logs(self) -> Floats:
        """Per row: ln concurrency, ln TTFT, ln ITL, ln rate."""
        values: Floats = np.array(
            [[row.concurrency, row.ttft_s, row.itl_s, row.rps] for row in self._rungs], dtype=np.float64
        )
        return np.log(np.maximum.accumulate(values)).T

    def at(self, log_concurrency: Floats) -> Floats:
        """Logarithms of TTFT, ITL and rate at these loads, one row each; loads are inside the ladder."""
        logs = self._logs
        if logs.shape[1] == 1:
            return np.repeat(logs[1:], len(log_concurrency), axis=1)
        from scipy.interpolate import PchipInterpolator

        smooth = PchipInterpolator(logs[0], logs[1:], axis=1)
        found: Floats = smooth(np.clip(log_concurrency, logs[0, 0], logs[0, -1]))
        return found
