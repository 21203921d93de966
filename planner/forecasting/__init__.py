"""Demand over the next minutes to days, with quantiles and how well each method did on the past."""

from __future__ import annotations

from planner.forecasting.backtesting import backtest
from planner.forecasting.choosing import best_forecast
from planner.forecasting.methods import METHODS, Drift, LastValue, Method, SeasonalNaive
from planner.forecasting.outlook import Choice, History, Outlook, chosen, looked_again, outlook
from planner.forecasting.reading import read_series
from planner.forecasting.series import Series, series_of

__all__ = [
    "METHODS",
    "Choice",
    "Drift",
    "History",
    "LastValue",
    "Method",
    "Outlook",
    "SeasonalNaive",
    "Series",
    "backtest",
    "best_forecast",
    "chosen",
    "looked_again",
    "outlook",
    "read_series",
    "series_of",
]
