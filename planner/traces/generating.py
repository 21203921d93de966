"""Synthetic traffic: a rate over time, how arrivals scatter about it, and lengths.

Arrivals are a renewal process in the time in which one request per unit is expected, bent to the rate: gaps are
exponential (Poisson) for a coefficient of variation of 1, Gamma with that coefficient else, all alike for 0. So bursts
are as bursty at every rate, and the rate is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.traces.chunks import CHUNK, rechunked
from planner.traces.lengths import Lengths
from planner.traces.requests import RequestChunk
from planner.traces.shapes import Shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Generator", "gaps"]


def gaps(rng: np.random.Generator, cv: float, n: int) -> NDArray[np.float64]:
    """``n`` gaps of mean 1 and this coefficient of variation."""
    if cv == 0:
        return np.ones(n)
    if cv == 1:
        return rng.standard_exponential(n)
    shape = 1.0 / cv**2
    return rng.standard_gamma(shape, n) / shape


def first_gap(rng: np.random.Generator, cv: float) -> float:
    """From the start to the first arrival of a process that has long been running: no burst begins at the start."""
    if cv == 0:
        return float(rng.random())
    shape = 1.0 / cv**2
    return float(rng.random() * rng.standard_gamma(shape + 1.0) / shape)


@dataclass(frozen=True, slots=True)
class Generator:
    """Traffic that can be generated again and again, each time the same.

    Attributes:
        shape: rate over time.
        lengths: of requests.
        cv: coefficient of variation of the gaps between arrivals.
        most: requests at most; None: as many as come.
        seed: of all chance.
    """

    shape: Shape
    lengths: Lengths
    cv: float = 1.0
    most: int | None = None
    seed: int = 0

    def __iter__(self) -> Iterator[RequestChunk]:
        """Chunks in order of arrival."""
        return rechunked(self._pieces())

    def _pieces(self) -> Iterator[RequestChunk]:
        coming, measuring = (np.random.default_rng(s) for s in np.random.SeedSequence(self.seed).spawn(2))
        reached, left = first_gap(coming, self.cv), self.most
        while reached < self.shape.expected and left != 0:
            steps = np.concatenate([[0.0], np.cumsum(gaps(coming, self.cv, CHUNK))])
            counts = reached + steps[:-1]
            reached += float(steps[-1])
            counts = counts[counts < self.shape.expected]
            counts = counts if left is None else counts[:left]
            left = left if left is None else left - len(counts)
            inputs, outputs = self.lengths.draw(measuring, len(counts))
            yield RequestChunk(self.shape.time_of(counts), inputs, outputs)
