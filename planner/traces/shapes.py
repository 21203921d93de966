"""How a rate of arrivals runs over time, as the number of requests expected up to a time, and back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Constant", "Diurnal", "Ramp", "Shape", "Steps"]

_GRID: Final = 4096
_NEWTON: Final = 3


class Shape(Protocol):
    """A rate over ``duration_s``."""

    @property
    def duration_s(self) -> float:
        """How long it runs, s."""

    @property
    def expected(self) -> float:
        """Requests expected in all of it."""

    def time_of(self, count: NDArray[np.float64]) -> NDArray[np.float64]:
        """When so many requests are expected to have come, s; ``count`` from 0 to ``expected``."""


@dataclass(frozen=True, slots=True)
class Constant:
    """``rate_rps`` all the time."""

    rate_rps: float
    duration_s: float

    @property
    def expected(self) -> float:
        """Rate times duration."""
        return self.rate_rps * self.duration_s

    def time_of(self, count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Straight."""
        return count / self.rate_rps


@dataclass(frozen=True, slots=True)
class Steps:
    """A staircase: each rate for so long; rates may be 0.

    Attributes:
        rates_rps: one after another.
        lengths_s: of each.
    """

    rates_rps: tuple[float, ...]
    lengths_s: tuple[float, ...]

    @property
    def duration_s(self) -> float:
        """Of all steps."""
        return math.fsum(self.lengths_s)

    @property
    def expected(self) -> float:
        """Over all steps."""
        return math.fsum(rate * length for rate, length in zip(self.rates_rps, self.lengths_s, strict=True))

    def time_of(self, count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Straight within a step; a pause has no requests, so none falls into it."""
        times = np.concatenate([[0.0], np.cumsum(self.lengths_s)])
        counts = np.concatenate([[0.0], np.cumsum(np.multiply(self.rates_rps, self.lengths_s))])
        step = np.clip(np.searchsorted(counts, count, side="right") - 1, 0, len(self.rates_rps) - 1)
        rates = np.array(self.rates_rps)[step]
        # The very end of a staircase that ends in a pause.
        safe = np.where(rates > 0, rates, 1.0)
        return times[step] + np.where(rates > 0, (count - counts[step]) / safe, 0.0)


@dataclass(frozen=True, slots=True)
class Ramp:
    """From one rate to another in a straight line."""

    from_rps: float
    to_rps: float
    duration_s: float

    @property
    def expected(self) -> float:
        """Mean of both ends times duration."""
        return (self.from_rps + self.to_rps) / 2 * self.duration_s

    def time_of(self, count: NDArray[np.float64]) -> NDArray[np.float64]:
        """The root of from·t + (to - from)/(2·duration)·t² = count, in the form that loses no digits."""
        slope = (self.to_rps - self.from_rps) / self.duration_s
        root = np.sqrt(np.maximum(0.0, self.from_rps**2 + 2 * slope * count))
        bottom = self.from_rps + root
        return np.divide(2 * count, bottom, out=np.zeros_like(count), where=bottom > 0)


@dataclass(frozen=True, slots=True)
class Diurnal:
    """A cosine between ``low_rps`` and ``high_rps``, highest at ``peak_s`` and every period after and before it."""

    low_rps: float
    high_rps: float
    period_s: float
    peak_s: float
    duration_s: float

    @property
    def expected(self) -> float:
        """The integral over the duration."""
        return float(self._count(np.array([self.duration_s]))[0])

    def _count(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        middle, swing = (self.low_rps + self.high_rps) / 2, (self.high_rps - self.low_rps) / 2
        turn = 2 * np.pi / self.period_s
        wave = np.sin(turn * (time_s - self.peak_s)) - math.sin(-turn * self.peak_s)
        count: NDArray[np.float64] = middle * time_s + swing / turn * wave
        return count

    def _rate(self, time_s: NDArray[np.float64]) -> NDArray[np.float64]:
        middle, swing = (self.low_rps + self.high_rps) / 2, (self.high_rps - self.low_rps) / 2
        rate: NDArray[np.float64] = middle + swing * np.cos(
            2 * np.pi / self.period_s * (time_s - self.peak_s)
        )
        return rate

    def time_of(self, count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Between points of a grid, made better by steps of Newton that stay within their cell."""
        points = max(2, round(_GRID * max(1.0, self.duration_s / self.period_s)))
        grid = np.linspace(0.0, self.duration_s, points)
        counts = self._count(grid)
        cell = np.clip(np.searchsorted(counts, count, side="right") - 1, 0, points - 2)
        low, high = grid[cell], grid[cell + 1]
        width = np.maximum(counts[cell + 1] - counts[cell], 1e-300)
        time = low + (high - low) * np.clip((count - counts[cell]) / width, 0.0, 1.0)
        for _ in range(_NEWTON):
            rate = np.maximum(self._rate(time), 1e-12)
            time = np.clip(time - (self._count(time) - count) / rate, low, high)
        # Where the rate is nearly 0 rounding may turn two arrivals around.
        return np.maximum.accumulate(time)
