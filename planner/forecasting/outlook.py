"""How much more is to come than is there now, for a loop that must act before it comes.

Kept for each service: means over steps, as many as a few seasons have. What the past does not bear out is not acted on.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from models.forecast import Forecast
from planner.errors import ConfigurationError
from planner.forecasting.choosing import best_forecast
from planner.forecasting.series import Series

__all__ = ["History", "Outlook", "outlook"]

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
    _rows: dict[str, deque[tuple[int, float, int]]] = field(default_factory=dict)

    def note(self, rates: Mapping[str, float | None], now_s: float) -> None:
        """Take in what is observed; what is not known, or is no rate, leaves a gap."""
        place = int(now_s // self.step_s)
        for key, rate in rates.items():
            if rate is None or not math.isfinite(rate) or rate < 0:
                continue
            row = self._rows.pop(key, None) or deque(maxlen=self.steps + 1)
            if row and row[-1][0] == place:
                at, total, count = row[-1]
                row[-1] = (at, total + rate, count + 1)
            elif not row or row[-1][0] < place:
                row.append((place, rate, 1))
            self._rows[key] = row
        while len(self._rows) > self.most:
            del self._rows[next(iter(self._rows))]

    def series(self, key: str, now_s: float) -> Series | None:
        """Whole steps until now; None: nothing is known."""
        row = self._rows.get(key)
        if not row:
            return None
        end = int(now_s // self.step_s)
        whole = [each for each in row if each[0] < end and each[0] >= end - self.steps]
        if not whole:
            return None
        first = whole[0][0]
        values = np.full(end - first, np.nan)
        for at, total, count in whole:
            values[at - first] = total / count
        return Series(first * self.step_s, self.step_s, values)


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
        return Outlook(observed, observed, why_not="there is no history yet")
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
