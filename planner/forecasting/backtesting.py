"""How well a method did: from many past moments, each time knowing only what came before.

Source: Hyndman and Koehler (2006) for MASE; Koenker and Bassett (1978) for the pinball loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.forecast import Backtest
from planner.forecasting.methods import Method, Tried, tried
from planner.forecasting.series import Series

__all__ = ["backtest", "judged"]

Floats = NDArray[np.float64]
_TINY: Final = 1e-12


def backtest(
    method: Method,
    series: Series,
    *,
    horizon: int,
    levels: Sequence[float],
    origins: int = 24,
    season: int = 1,
) -> Backtest:
    """Forecast the past.

    Args:
        method: who forecasts.
        series: the past.
        horizon: steps ahead.
        levels: of the quantiles, the lowest first.
        origins: moments, evenly over the last half of what is known.
        season: of the scale of MASE: the mean absolute seasonal difference before each origin.
    """
    return judged(tried(method, series, horizon), series, levels=levels, origins=origins, season=season)


def judged(
    past: Tried, series: Series, *, levels: Sequence[float], origins: int = 24, season: int = 1
) -> Backtest:
    """As :func:`backtest`, of a method that was tried already."""
    size, horizon, name = len(series.values), past.centers.shape[1], past.method.name
    first, last = max(past.method.needs + 1, past.oldest + 1, size // 2), size - horizon
    if last < first:
        return Backtest(method=name, origins=0)
    scaled, losses, inside = [], [], []
    for origin in np.unique(np.linspace(first, last, min(origins, last - first + 1)).astype(int)):
        quantiles = past.quantiles(int(origin), levels)
        came = series.values[origin : origin + horizon]
        seen = np.isfinite(came)
        if quantiles is None or not seen.any():
            continue
        losses.append(_pinball(quantiles[:, seen], came[seen], np.asarray(levels)))
        inside.append(np.mean((came[seen] >= quantiles[0, seen]) & (came[seen] <= quantiles[-1, seen])))
        scale = _scale(series.values[:origin], season)
        if scale > _TINY:
            middle = _middle(quantiles, levels)
            scaled.append(float(np.mean(np.abs(came[seen] - middle[seen]))) / scale)
    return Backtest(
        method=name,
        origins=len(losses),
        mase=float(np.mean(scaled)) if scaled else None,
        pinball=float(np.mean(losses)) if losses else None,
        coverage=float(np.mean(inside)) if inside else None,
    )


def _pinball(quantiles: Floats, came: Floats, levels: Floats) -> float:
    error = came[None, :] - quantiles
    return float(np.mean(np.maximum(levels[:, None] * error, (levels[:, None] - 1) * error)))


def _middle(quantiles: Floats, levels: Sequence[float]) -> Floats:
    nearest = int(np.argmin(np.abs(np.asarray(levels) - 0.5)))
    return np.asarray(quantiles[nearest], dtype=np.float64)


def _scale(values: Floats, season: int) -> float:
    """Mean absolute difference to the same time of the season before, or to the step before where that is too long ago."""
    back = season if len(values) > season else 1
    difference = np.abs(values[back:] - values[:-back])
    known = difference[np.isfinite(difference)]
    return float(known.mean()) if known.size else 0.0
