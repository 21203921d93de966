"""Series that are kept in little room, and forecasts that are made again without trying every method."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.forecasting import History, Series, chosen, looked_again, outlook

HOW = {"lead_s": 300.0, "season_s": 3600.0, "quantile": 0.9}


def waves(hours: float, noise: float = 0.0) -> Series:
    """A wave an hour, by minutes."""
    at = np.arange(round(hours * 60))
    draw = np.random.default_rng(1).standard_normal(len(at))
    return Series(0.0, 60.0, np.maximum(0.0, 10 + 8 * np.sin(2 * np.pi * at / 60) + noise * draw))


@pytest.mark.parametrize("noise", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("hours", [3.0, 3.3, 3.7, 8.5])
def test_looking_again_says_what_the_whole_forecast_says(hours: float, noise: float) -> None:
    series = waves(hours, noise)
    whole = outlook(series, observed=5.0, **HOW)
    again = looked_again(chosen(series, **HOW), series, observed=5.0, **HOW)
    assert again == whole
    assert again.method


def test_it_is_never_below_what_is_observed() -> None:
    series = waves(8.0)
    assert looked_again(chosen(series, **HOW), series, observed=99.0, **HOW).rate == 99.0


def test_what_was_not_believed_is_not_looked_at() -> None:
    nothing = chosen(None, **HOW)
    assert "no history" in nothing.why_not
    assert looked_again(nothing, waves(8.0), observed=5.0, **HOW).rate == 5.0
    short = chosen(Series(0, 60, np.array([1.0])), **HOW)
    assert "too short" in short.why_not


def test_the_same_method_needs_what_it_looks_at() -> None:
    series = waves(8.0)
    choice = chosen(series, **HOW)
    series.values[-240:] = math.nan
    again = looked_again(choice, series, observed=5.0, **HOW)
    assert (again.rate, again.method) == (5.0, "")
    assert "missing" in again.why_not


def test_a_clock_that_was_set_forward_and_back_begins_anew() -> None:
    history = History(step_s=60, steps=10)
    history.note({"a": 1.0}, 600)
    history.note({"a": 2.0}, 10**9)
    assert history.series("a", 660) is None
    for at in (660, 720):
        history.note({"a": 3.0}, at)
    made = history.series("a", 780)
    assert made is not None
    assert (made.start_s, made.values.tolist()) == (660.0, [3.0, 3.0])


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.floats(0, 1e6)), max_size=60),
    st.integers(1, 12),
)
def test_it_keeps_what_a_table_would_keep(samples: list[tuple[int, float]], steps: int) -> None:
    """By hand: means by step, the last so many whole steps, gaps as gaps."""
    history = History(step_s=60, steps=steps)
    table: dict[int, list[float]] = {}
    for place, rate in sorted(samples, key=lambda each: each[0]):
        history.note({"a": rate}, place * 60.0 + 1)
        table.setdefault(place, []).append(rate)
    end = 42
    made = history.series("a", end * 60.0)
    kept = {place: np.mean(rates) for place, rates in table.items() if end - steps <= place < end}
    if not kept:
        assert made is None
        return
    assert made is not None
    first = min(kept)
    assert made.start_s == first * 60
    wanted = [kept.get(place, math.nan) for place in range(first, end)]
    assert np.allclose(made.values, wanted, equal_nan=True)
