"""The method that did best on the past of this very series; seasonal naive where nothing did better."""

from __future__ import annotations

from collections.abc import Sequence

from models.forecast import Backtest, Forecast, Quantile
from planner.errors import ConfigurationError
from planner.forecasting.backtesting import judged
from planner.forecasting.methods import METHODS, Method, tried
from planner.forecasting.series import Series

__all__ = ["DEFAULT_LEVELS", "best_forecast"]

DEFAULT_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95)


def best_forecast(
    series: Series,
    *,
    horizon: int,
    season: int,
    levels: Sequence[float] = DEFAULT_LEVELS,
    methods: Sequence[Method] | None = None,
) -> Forecast:
    """Forecast by the method with the least pinball loss in a rolling back-test.

    Args:
        series: the past.
        horizon: steps ahead.
        season: steps of a season.
        levels: of the quantiles, the lowest first.
        methods: to choose from; None: all without dependencies.

    Raises:
        ConfigurationError: nothing can be said: there is no past.
    """
    candidates = list(methods) if methods is not None else list(METHODS(season).values())
    asked = []
    for place, method in enumerate(candidates):
        past = tried(method, series, horizon)
        told = judged(past, series, levels=levels, season=season)
        asked.append((float("inf") if told.pinball is None else told.pinball, place, past, told))
    for _, _, past, told in sorted(asked, key=lambda each: each[:2]):
        quantiles = past.quantiles(len(series.values), levels)
        if quantiles is not None:
            return Forecast(
                method=past.method.name,
                made_at_s=series.end_s,
                step_s=series.step_s,
                quantiles=tuple(
                    Quantile(level=level, values=tuple(map(float, row)))
                    for level, row in zip(levels, quantiles, strict=True)
                ),
                backtest=told if told.origins else None,
                notes=tuple(_notes(told, [each[3] for each in asked])),
            )
    raise ConfigurationError("nothing is known of the past, so nothing can be said of the future")


def _notes(told: Backtest, all_told: Sequence[Backtest]) -> list[str]:
    if not told.origins:
        return ["The past is too short to try any method on it: this is a guess."]
    others = [each for each in all_told if each is not told and each.origins]
    if told.method == "seasonal-naive" and others:
        return ["No method did better than what was a season ago."]
    return []
