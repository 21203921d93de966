"""Forecasters without dependencies: what was a season ago, what was last, and where it is going.

Each gives quantiles from its own errors on the past, horizon by horizon, so that a wide past gives a wide future.

Source: Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 3rd edition, 5.2 (naive and seasonal naive),
8.2 (damped trend).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from planner.forecasting.series import Series

__all__ = ["METHODS", "Drift", "LastValue", "Method", "SeasonalNaive", "Tried", "tried"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_ORIGINS: Final = 200
"""Past moments whose errors make the quantiles."""
_LEAST: Final = 8
_FOR_A_LINE: Final = 2
_TINY: Final = 1e-12


class Method(Protocol):
    """Says the next steps of a series, from many of its moments at once."""

    @property
    def name(self) -> str:
        """Of the method."""

    @property
    def needs(self) -> int:
        """Steps of a past at least."""

    def centers(self, values: Floats, origins: Places, horizon: int) -> Floats:
        """(origins, horizon) what is expected, each time from the values before the origin alone; NaN: cannot be said."""


@dataclass(frozen=True, slots=True)
class SeasonalNaive:
    """What was at the same time of the last season of which something is known.

    Attributes:
        season: steps of a season, e.g. a day or a week.
        most: seasons that are looked back where there are gaps.
    """

    season: int
    most: int = 4

    @property
    def name(self) -> str:
        """See :class:`Method`."""
        return "seasonal-naive"

    @property
    def needs(self) -> int:
        """See :class:`Method`."""
        return self.season + 1

    def centers(self, values: Floats, origins: Places, horizon: int) -> Floats:
        """See :class:`Method`."""
        ahead = np.arange(horizon)
        # A horizon of more than a season leads back to seasons that are known.
        back = (ahead // self.season + 1) * self.season
        found = np.full((len(origins), horizon), np.nan)
        for more in range(self.most):
            places = origins[:, None] + ahead - back - more * self.season
            open_ = (places >= 0) & ~np.isfinite(found)
            found[open_] = values[places[open_]]
        return found


@dataclass(frozen=True, slots=True)
class LastValue:
    """The mean of what was last, for ever.

    Attributes:
        window: steps that are last.
    """

    window: int = 3

    @property
    def name(self) -> str:
        """See :class:`Method`."""
        return "last-value"

    @property
    def needs(self) -> int:
        """See :class:`Method`."""
        return 1

    def centers(self, values: Floats, origins: Places, horizon: int) -> Floats:
        """See :class:`Method`."""
        recent = _windows(values, origins, self.window)
        known = np.isfinite(recent)
        count = known.sum(axis=1)
        mean = np.full(len(origins), np.nan)
        np.divide(np.where(known, recent, 0.0).sum(axis=1), count, out=mean, where=count > 0)
        return np.repeat(mean[:, None], horizon, axis=1)


@dataclass(frozen=True, slots=True)
class Drift:
    """Where the last steps are going, damped: a straight line over the window whose slope fades.

    Attributes:
        window: steps that the slope is taken from.
        damping: of the slope, for each step.
    """

    window: int = 6
    damping: float = 0.9

    @property
    def name(self) -> str:
        """See :class:`Method`."""
        return "drift"

    @property
    def needs(self) -> int:
        """See :class:`Method`."""
        return self.window

    def centers(self, values: Floats, origins: Places, horizon: int) -> Floats:
        """See :class:`Method`."""
        recent = _windows(values, origins, self.window)
        known = np.isfinite(recent)
        count = known.sum(axis=1)
        at = np.where(known, np.arange(self.window, dtype=np.float64), 0.0)
        there = np.where(known, recent, 0.0)
        few = count < _FOR_A_LINE
        count = np.where(few, 1, count)
        middle, mean = at.sum(axis=1) / count, there.sum(axis=1) / count
        away = np.where(known, at - middle[:, None], 0.0)
        slope = (away * there).sum(axis=1) / np.maximum((away**2).sum(axis=1), _TINY)
        reached = mean + slope * (self.window - 1 - middle)
        growth = np.cumsum(self.damping ** np.arange(1, horizon + 1))
        found = np.maximum(0.0, reached[:, None] + slope[:, None] * growth)
        found[few] = np.nan
        return np.asarray(found, dtype=np.float64)


def METHODS(season: int) -> Mapping[str, Method]:  # noqa: N802 - reads as the table that it is
    """Every method without dependencies, by name, for seasons of so many steps."""
    methods: tuple[Method, ...] = (SeasonalNaive(season), LastValue(), Drift())
    return {method.name: method for method in methods}


@dataclass(frozen=True, slots=True)
class Tried:
    """A method with what it would have said at past moments.

    Attributes:
        method: who.
        oldest: first of the moments; they are all from there to the end of the series.
        centers: (moments, horizon) what it expected; the last one is of the future.
        errors: (moments, horizon) what came less that; NaN where one of both is not known.
    """

    method: Method
    oldest: int
    centers: Floats
    errors: Floats

    def quantiles(self, origin: int, levels: Sequence[float]) -> Floats | None:
        """(levels, horizon) of what was expected at a moment, spread by errors that were known then; None: nothing was."""
        center = self.centers[origin - self.oldest]
        if not np.isfinite(center).any():
            return None
        horizon = center.size
        first = max(self.oldest, origin - _ORIGINS)
        errors = self.errors[first - self.oldest : origin - self.oldest]
        known = np.arange(first, origin)[:, None] + np.arange(horizon) < origin
        errors = np.where(known, errors, np.nan)
        counts = np.isfinite(errors).sum(axis=0)
        spread = np.zeros((len(levels), horizon))
        pooled = errors[np.isfinite(errors)]
        if pooled.size:
            spread[:] = np.quantile(pooled, levels)[:, None]
        enough = counts >= _LEAST
        if enough.any():
            spread[:, enough] = _quantiles(errors[:, enough], counts[enough], levels)
        filled = np.where(np.isfinite(center), center, np.nanmean(center))
        return np.asarray(np.maximum(0.0, np.sort(filled[None, :] + spread, axis=0)), dtype=np.float64)


def _quantiles(errors: Floats, counts: Places, levels: Sequence[float]) -> Floats:
    """(levels, horizon) of the known errors of each column, linear between two, as ``numpy.quantile`` has them."""
    known_first = np.sort(errors, axis=0)
    place = np.asarray(levels)[:, None] * (counts - 1)[None, :]
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, counts - 1)
    below = np.take_along_axis(known_first, low, axis=0)
    above = np.take_along_axis(known_first, high, axis=0)
    return np.asarray(below + (above - below) * (place - low), dtype=np.float64)


def tried(method: Method, series: Series, horizon: int, *, origins: int = 10**9) -> Tried:
    """A method at the last so many moments of a series, each knowing only what came before."""
    size = len(series.values)
    oldest = max(0, min(method.needs, size), size - origins)
    moments = np.arange(oldest, size + 1)
    centers = method.centers(series.values, moments, horizon)
    came = np.full((len(moments), horizon), np.nan)
    places = moments[:, None] + np.arange(horizon)
    there = places < size
    came[there] = series.values[places[there]]
    return Tried(method, oldest, centers, came - centers)


def _windows(values: Floats, origins: Places, window: int) -> Floats:
    """(origins, window) the values before each origin; NaN before the first."""
    places = origins[:, None] + np.arange(-window, 0)
    found = np.full(places.shape, np.nan)
    there = places >= 0
    found[there] = values[places[there]]
    return found
