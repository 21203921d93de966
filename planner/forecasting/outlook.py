"""How much more is to come than is there now, for a loop that must act before it comes.

Kept for each service: means over steps, as many as a few seasons have. What the past does not bear out is not acted on.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.forecast import Forecast
from planner.errors import ConfigurationError
from planner.forecasting.choosing import best_forecast
from planner.forecasting.methods import METHODS, tried
from planner.forecasting.series import Series

__all__ = ["Choice", "History", "Outlook", "chosen", "looked_again", "outlook"]

Floats = NDArray[np.float64]
_NO_HISTORY: Final = "there is no history yet"
_ERRORS: Final = 200
_LAST_BITS: Final = 1e-9

_WORST_MASE: Final = 1.5
"""A method whose errors are so much larger than those of looking a season back says nothing."""
_LEAST_COVERAGE: Final = 0.5


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a loop may plan on.

    Attributes:
        rate: the largest of the forecast's quantile until the lead time is over; never below what is observed.
        observed: what is there now.
        method: who forecast; empty: nobody, what is observed counts.
        why_not: why nothing but what is observed counts; empty: the forecast does.
    """

    rate: float
    observed: float
    method: str = ""
    why_not: str = ""

    @property
    def growth(self) -> float:
        """How many times what is observed; 1 where nothing is observed."""
        return self.rate / self.observed if self.observed > 0 else 1.0


@dataclass(slots=True)
class _Row:
    """Means of one service: of whole steps from ``first`` on, and of the one that runs."""

    first: int
    place: int
    total: float
    count: int
    means: array[float] = field(default_factory=lambda: array("d"))

    def note(self, place: int, rate: float, steps: int) -> None:
        """Take a rate in; one of an earlier step comes too late, unless the clock was set back."""
        if place == self.place:
            self.total, self.count = self.total + rate, self.count + 1
        if self.first <= place <= self.place:
            return
        gap = place - self.place - 1
        if gap >= steps or place < self.first:
            self.first, self.means = place, array("d")
        else:
            self.means.append(self.total / self.count)
            self.means.extend([math.nan] * gap)
        self.place, self.total, self.count = place, rate, 1
        # Cut now and then alone: each cut moves what stays.
        if len(self.means) > steps + steps // 4:
            self.first += len(self.means) - steps
            self.means = self.means[-steps:]

    def until(self, end: int, steps: int) -> tuple[int, Floats]:
        """The first step and the means of whole steps before ``end``, as many as are kept; what is not known is NaN."""
        if end <= self.first:
            return end, np.empty(0)
        oldest = max(self.first, end - steps)
        values = np.full(end - oldest, np.nan)
        # A copy: whoever looks at the array itself would keep it from growing.
        kept = self.means[oldest - self.first : end - self.first]
        values[: len(kept)] = kept
        if oldest <= self.place < end:
            values[self.place - oldest] = self.total / self.count
        return oldest, values


@dataclass(slots=True)
class History:
    """Rates of services over steps, bounded.

    Attributes:
        step_s: length of a step, s.
        steps: that are kept of each service.
        most: services that are kept; those that were not heard of for longest are forgotten.
    """

    step_s: float = 60.0
    steps: int = 4 * 24 * 60
    most: int = 10_000
    _rows: dict[str, _Row] = field(default_factory=dict)

    def note(self, rates: Mapping[str, float | None], now_s: float) -> None:
        """Take in what is observed; what is not known, or is no rate, leaves a gap."""
        place = int(now_s // self.step_s)
        for key, rate in rates.items():
            if rate is None or not 0 <= rate < math.inf:
                continue
            row = self._rows.pop(key, None)
            if row is None:
                row = _Row(place, place, rate, 1)
            else:
                row.note(place, rate, self.steps)
            self._rows[key] = row
        while len(self._rows) > self.most:
            del self._rows[next(iter(self._rows))]

    def series(self, key: str, now_s: float) -> Series | None:
        """Whole steps until now; None: nothing is known."""
        row = self._rows.get(key)
        if row is None:
            return None
        first, values = row.until(int(now_s // self.step_s), self.steps)
        known = np.flatnonzero(np.isfinite(values))
        if not known.size:
            return None
        return Series((first + int(known[0])) * self.step_s, self.step_s, values[known[0] :])


@dataclass(frozen=True, slots=True)
class Choice:
    """Which method did best on the past of a series.

    Attributes:
        method: its name; empty: none could be tried.
        why_not: why it is not to be believed; empty: it is.
    """

    method: str = ""
    why_not: str = ""


def chosen(series: Series | None, *, lead_s: float, season_s: float, quantile: float) -> Choice:
    """Try every method on the past, which takes a hundred times as long as :func:`looked_again` with the best one.

    Args:
        series: of the past; None: there is none.
        lead_s: until what is ordered now is there, s.
        season_s: length of a season, s.
        quantile: of the forecast.
    """
    if series is None:
        return Choice(why_not=_NO_HISTORY)
    try:
        made = best_forecast(
            series,
            horizon=_steps(lead_s, series),
            season=_steps(season_s, series),
            levels=_levels(quantile),
        )
    except ConfigurationError as error:
        return Choice(why_not=str(error))
    return Choice(made.method, _distrust(made))


def looked_again(
    choice: Choice,
    series: Series | None,
    *,
    observed: float,
    lead_s: float,
    season_s: float,
    quantile: float,
) -> Outlook:
    """The rate to plan for now, by the method that was chosen before.

    Args:
        choice: of :func:`chosen`, not long ago.
        series: of the past; None: there is none.
        observed: now.
        lead_s: until what is ordered now is there, s.
        season_s: length of a season, s.
        quantile: of the forecast.
    """
    if series is None or choice.why_not:
        return Outlook(observed, observed, why_not=choice.why_not or _NO_HISTORY)
    method = METHODS(_steps(season_s, series)).get(choice.method)
    if method is None:
        return Outlook(observed, observed, why_not=f"there is no method {choice.method!r}")
    horizon, levels = _steps(lead_s, series), _levels(quantile)
    # Errors of older moments make no quantiles; the last moments of a horizon have none yet.
    made = tried(method, series, horizon, origins=_ERRORS + horizon).quantiles(len(series.values), levels)
    if made is None:
        return Outlook(
            observed, observed, why_not=f"{choice.method} needs a part of the history that is missing"
        )
    return Outlook(max(observed, *map(float, made[levels.index(_level(quantile))])), observed, choice.method)


def _steps(length_s: float, series: Series) -> int:
    return max(1, math.ceil(length_s / series.step_s - _LAST_BITS))


def _level(quantile: float) -> float:
    return min(max(quantile, 0.05), 0.99)


def _levels(quantile: float) -> tuple[float, ...]:
    return tuple(sorted({0.05, 0.5, _level(quantile), 0.95}))


def outlook(
    series: Series | None, *, observed: float, lead_s: float, season_s: float, quantile: float
) -> Outlook:
    """The rate to plan for now.

    Args:
        series: of the past; None: there is none.
        observed: now.
        lead_s: until what is ordered now is there, s.
        season_s: length of a season, s.
        quantile: of the forecast.
    """
    if series is None:
        return Outlook(observed, observed, why_not=_NO_HISTORY)
    horizon = max(1, math.ceil(lead_s / series.step_s))
    try:
        made = best_forecast(
            series,
            horizon=horizon,
            season=max(1, round(season_s / series.step_s)),
            levels=tuple(sorted({0.05, 0.5, min(max(quantile, 0.05), 0.99), 0.95})),
        )
    except ConfigurationError as error:
        return Outlook(observed, observed, why_not=str(error))
    distrust = _distrust(made)
    if distrust:
        return Outlook(observed, observed, why_not=distrust)
    return Outlook(max(observed, *made.at(quantile)), observed, method=made.method)


def _distrust(made: Forecast) -> str:
    """Why a forecast is not to be acted on; empty: it is."""
    told = made.backtest
    if told is None:
        return "the history is too short to try a forecast on it"
    if told.mase is not None and told.mase > _WORST_MASE:
        return f"the back-test is bad: {made.method} is off {told.mase:.2f} times as much as looking a season back"
    if told.coverage is not None and told.coverage < _LEAST_COVERAGE:
        return f"the back-test is bad: {told.coverage:.0%} of what came lay where {made.method} expected it"
    return ""
