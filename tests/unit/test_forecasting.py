"""Forecasts: gaps are no zeros, the method that did best is chosen, and what the past does not bear out is not acted on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.forecast import Forecast, Quantile
from planner.errors import ConfigurationError
from planner.forecasting import (
    Drift,
    History,
    LastValue,
    Method,
    SeasonalNaive,
    Series,
    backtest,
    best_forecast,
    outlook,
    read_series,
    series_of,
)

DAY = 48
LEVELS = (0.05, 0.5, 0.95)


def daily(days: int = 10, noise: float = 0.0, seed: int = 0) -> Series:
    """Half-hours of a wave over the day."""
    draw = np.random.default_rng(seed)
    at = np.arange(days * DAY)
    wave = 10 + 5 * np.sin(2 * np.pi * at / DAY)
    return Series(0.0, 1800.0, np.maximum(0, wave + noise * draw.standard_normal(at.size)))


def expected(method: Method, series: Series, horizon: int) -> list[float]:
    origins = np.array([len(series.values)])
    return [float(each) for each in method.centers(series.values, origins, horizon)[0]]


def test_samples_become_means_over_steps_and_gaps_stay_gaps() -> None:
    made = series_of([(0, 2), (30, 4), (130, 6), (float("nan"), 1)], step_s=60)
    assert made.values[0] == 3
    assert np.isnan(made.values[1])
    assert (made.values[2], made.known, made.end_s) == (6, 2, 180)


def test_the_last_step_is_whole_where_an_end_is_given() -> None:
    assert len(series_of([(0, 1), (60, 2), (125, 3)], step_s=60, end_s=130).values) == 2


def test_no_sample_has_no_future() -> None:
    with pytest.raises(ConfigurationError, match="no future"):
        series_of([], step_s=60)
    with pytest.raises(ConfigurationError, match="steps"):
        series_of([(0, 1), (1e15, 1)], step_s=1)


def test_seasonal_naive_looks_a_season_back_and_over_gaps() -> None:
    series = Series(0, 1, np.array([1.0, 2, 3, 4, np.nan, 6]))
    assert expected(SeasonalNaive(3), series, 4) == [4.0, 2.0, 6.0, 4.0]


def test_drift_goes_on_and_fades_and_never_below_zero() -> None:
    up = expected(Drift(window=4, damping=0.5), Series(0, 1, np.array([1.0, 2, 3, 4])), 3)
    assert up == pytest.approx([4.5, 4.75, 4.875])
    assert expected(Drift(window=3), Series(0, 1, np.array([2.0, 1, 0])), 5) == [0.0] * 5


def test_no_moment_knows_what_came_after_it() -> None:
    values = daily(4, noise=1.0).values
    for method in (SeasonalNaive(DAY), LastValue(), Drift()):
        all_at_once = method.centers(values, np.arange(DAY + 1, len(values)), 5)
        for place, origin in enumerate(range(DAY + 1, len(values))):
            alone = method.centers(values[:origin], np.array([origin]), 5)[0]
            assert np.array_equal(all_at_once[place], alone, equal_nan=True)


def test_a_wave_is_known_exactly_by_its_season() -> None:
    told = backtest(SeasonalNaive(DAY), daily(), horizon=6, levels=LEVELS, season=DAY)
    assert told.pinball == pytest.approx(0, abs=1e-9)
    assert told.origins > 10


def test_the_best_method_on_the_past_is_chosen() -> None:
    assert best_forecast(daily(noise=0.5), horizon=6, season=DAY).method == "seasonal-naive"
    level = Series(0, 60, np.full(200, 7.0) + np.random.default_rng(1).standard_normal(200))
    assert best_forecast(level, horizon=3, season=DAY).method == "last-value"
    slopes = np.repeat(np.random.default_rng(2).choice([-3.0, -1.0, 1.0, 3.0], 30), 20)
    walk = Series(0, 60, 500 + np.cumsum(slopes))
    assert best_forecast(walk, horizon=3, season=DAY).method == "drift"


def test_ninety_percent_of_a_noisy_wave_lie_inside() -> None:
    coverage = [
        backtest(
            SeasonalNaive(DAY), daily(14, noise=1.0, seed=seed), horizon=4, levels=LEVELS, season=DAY
        ).coverage
        for seed in range(6)
    ]
    assert 0.85 <= np.mean([each for each in coverage if each is not None]) <= 0.95


def test_a_short_past_is_a_guess_and_says_so() -> None:
    made = best_forecast(Series(0, 60, np.array([3.0, 4.0])), horizon=2, season=DAY)
    assert made.backtest is None
    assert "a guess" in made.notes[0]


def test_levels_between_are_read_in_proportion() -> None:
    made = Forecast(
        method="m", made_at_s=0, step_s=1, quantiles=(Quantile(level=0.5, values=(2.0,)), Quantile(level=0.9, values=(4.0,)))
    )  # fmt: skip
    assert [made.at(level)[0] for level in (0.1, 0.5, 0.7, 0.9, 0.99)] == pytest.approx([2, 2, 3, 4, 4])


def test_what_comes_with_the_day_is_planned_for_before_it_comes() -> None:
    morning = daily(10).until(9 * DAY + 4)
    now = float(morning.values[-1])
    seen = outlook(morning, observed=now, lead_s=2 * 3600, season_s=86_400, quantile=0.9)
    assert seen.method == "seasonal-naive"
    assert seen.rate == pytest.approx(max(daily(10).values[9 * DAY + 4 : 9 * DAY + 8]), rel=1e-6)
    assert seen.growth > 1.1


def test_never_below_what_is_observed() -> None:
    evening = daily(10).until(9 * DAY + 16)
    now = float(evening.values[-1])
    assert outlook(evening, observed=now, lead_s=3600, season_s=86_400, quantile=0.5).rate == now


@pytest.mark.parametrize(
    ("series", "why"),
    [
        (None, "no history"),
        (Series(0, 60, np.array([1.0])), "too short"),
        (Series(0, 60, np.array([np.nan, np.nan])), "nothing is known"),
    ],
)
def test_without_a_past_what_is_observed_counts(series: Series | None, why: str) -> None:
    seen = outlook(series, observed=5.0, lead_s=120, season_s=3600, quantile=0.9)
    assert (seen.rate, seen.method) == (5.0, "")
    assert why in seen.why_not


def test_a_method_that_was_wrong_in_the_past_is_not_believed() -> None:
    """A long calm, then jumps that nothing foretells."""
    draw = np.random.default_rng(3)
    wild = np.concatenate([np.full(400, 1.0) + 0.01 * draw.standard_normal(400), draw.uniform(0, 100, 40)])
    seen = outlook(Series(0, 60, wild), observed=1.0, lead_s=300, season_s=3600, quantile=0.95)
    assert seen.rate == 1.0
    assert "bad" in seen.why_not


def test_history_keeps_means_over_steps_and_forgets_what_is_long_gone() -> None:
    history = History(step_s=60, steps=3, most=2)
    for at in range(0, 301, 15):
        history.note({"a": float(at // 60), "b": None, "c": float("nan")}, at)
    made = history.series("a", 300)
    assert made is not None
    assert made.values.tolist() == [2.0, 3.0, 4.0]
    assert history.series("b", 300) is None
    history.note({"x": 1.0, "y": 1.0}, 400)
    assert history.series("a", 400) is None


def test_a_loop_that_was_away_leaves_a_gap() -> None:
    history = History(step_s=60, steps=10)
    history.note({"a": 1.0}, 0)
    history.note({"a": 5.0}, 180)
    made = history.series("a", 240)
    assert made is not None
    assert made.values[[0, 3]].tolist() == [1.0, 5.0]
    assert np.isnan(made.values[1:3]).all()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.one_of(st.floats(0, 1e6), st.just(float("nan"))), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(1, 20),
)
def test_quantiles_are_in_order_finite_and_not_negative(
    values: list[float], horizon: int, season: int
) -> None:
    series = Series(0, 60, np.array(values))
    if not np.isfinite(values).any():
        return
    try:
        made = best_forecast(
            series, horizon=horizon, season=season, methods=[LastValue(), SeasonalNaive(season), Drift()]
        )
    except ConfigurationError:
        return
    table = np.array([each.values for each in made.quantiles])
    assert np.isfinite(table).all()
    assert (table >= 0).all()
    assert (np.diff(table, axis=0) >= -1e-9).all()
    assert made.horizon == horizon


def test_a_file_is_read_with_epochs_and_dates_and_gaps(tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text(
        "rate,Time\n2,1970-01-01T00:00:00Z\n4,30\n,60\n6,1970-01-01 00:02:10\n\n", encoding="utf-8"
    )
    made = read_series(path, step_s=60)
    assert made.values[[0, 2]].tolist() == [3.0, 6.0]
    assert np.isnan(made.values[1])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time,rate\nx,1\n5,-3\n8\n", [":2", "'x'", ":3", "'-3'", ":4", "1 columns"]),
        ("a,b\n1,2\n", ["a header with time and a value"]),
        ("", ["no header"]),
        ("time,rate\n", ["no future"]),
        ("time,rate\n1,nan\n", ["'nan'"]),
    ],
)
def test_every_line_that_cannot_be_read_is_named(tmp_path: Path, text: str, says: list[str]) -> None:
    path = tmp_path / "load.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as error:
        read_series(path, step_s=60)
    for word in says:
        assert word in str(error.value)


def test_no_file_and_no_text_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_series(tmp_path / "none.csv", step_s=60)
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="no CSV file"):
        read_series(tmp_path / "raw", step_s=60)
