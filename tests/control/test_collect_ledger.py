"""Pages over time become maxima, means and rates."""

from __future__ import annotations

import math

import pytest

from planner.control.collectors.ledger import Ledger
from planner.control.collectors.names import How, Measure, Way

PEAK = Measure("peak", How.PEAK, 60.0, (Way(("g",)),))
NOW = Measure("now", How.NOW, 0.0, (Way(("g",)),))
RATE = Measure("rate", How.RATE, 60.0, (Way(("c",)),))
MEAN = Measure("mean", How.MEAN, 300.0, (Way(("sum", "count")),))
GROWN = Measure("grown", How.GROWTH, 300.0, (Way(("c",)),))


def told(*pages: tuple[float, dict[str, float]], **more: float) -> dict[str, float]:
    ledger = Ledger((PEAK, NOW, RATE, MEAN, GROWN))
    for at_s, values in pages:
        ledger.add("x", at_s, values, started_s=more.get("started_s"))
    return ledger.measured("x")


def test_a_peak_is_that_of_the_last_minute() -> None:
    pages = [(at_s, {"g": value}) for at_s, value in ((0, 9.0), (30, 5.0), (60, 1.0), (80, 2.0))]
    assert told(*pages) == {"peak": 5.0, "now": 2.0}


def test_a_rate_is_over_the_last_minute_and_the_reading_before_it() -> None:
    assert told((0, {"c": 0.0}), (50, {"c": 100.0}), (100, {"c": 400.0}))["rate"] == pytest.approx(4.0)


@pytest.mark.parametrize("after", [0.0, 30.0])
def test_a_counter_that_fell_began_again_at_zero(after: float) -> None:
    assert told((0, {"c": 1000.0}), (10, {"c": 1100.0}), (20, {"c": after}))["rate"] == pytest.approx(
        (100.0 + after) / 20.0
    )


def test_one_page_tells_no_rate_and_no_mean() -> None:
    said = told((0, {"c": 5.0, "sum": 2.0, "count": 1.0}))
    assert math.isnan(said["rate"])
    assert math.isnan(said["mean"])


def test_a_mean_over_nothing_is_there_and_says_nothing() -> None:
    assert math.isnan(told((0, {"sum": 2.0, "count": 1.0}), (9, {"sum": 2.0, "count": 1.0}))["mean"])


def test_a_series_that_is_not_there_is_absent() -> None:
    assert told((0, {"other": 1.0})) == {}


def test_pages_far_apart_tell_no_rate_of_now() -> None:
    assert math.isnan(told((0, {"c": 0.0}), (1000, {"c": 100.0}))["rate"])


@pytest.mark.parametrize(
    ("pages", "grown"),
    [
        ([(0, 100.0), (300, 130.0)], 30.0),
        ([(0, 100.0), (10, 130.0)], 30.0),
        ([(0, 100.0), (10, 100.0)], None),
        ([(0, 100.0), (150, 100.0), (300, 100.0)], 0.0),
    ],
    ids=["whole", "part", "nothing-in-a-part", "nothing-in-all"],
)
def test_no_growth_is_known_only_of_the_whole_period(
    pages: list[tuple[float, float]], grown: float | None
) -> None:
    assert told(*((at_s, {"c": value}) for at_s, value in pages)).get("grown") == grown


def test_a_young_process_counted_everything_since_its_start() -> None:
    assert told((100, {"c": 7.0}), (110, {"c": 9.0}), started_s=50.0)["grown"] == 9.0


def test_peaks_are_those_of_the_process_that_runs_now() -> None:
    ledger = Ledger((PEAK, RATE))
    for at_s, started_s, values in (
        (0.0, -100.0, {"g": 9.0, "c": 50.0}),
        (10.0, -100.0, {"g": 9.0, "c": 60.0}),
        (20.0, 15.0, {"g": 1.0, "c": 5.0}),
    ):
        ledger.add("x", at_s, values, started_s=started_s)
    assert ledger.measured("x") == {"peak": 1.0, "rate": pytest.approx(15.0 / 20.0)}


def test_a_counter_that_was_not_on_the_page_before_began_at_zero() -> None:
    ledger = Ledger((RATE, NOW))
    ledger.add("x", 0.0, {"g": 1.0})
    ledger.add("x", 10.0, {"g": 2.0, "c": 40.0})
    assert ledger.measured("x") == {"rate": pytest.approx(4.0), "now": 2.0}
    ledger.add("new", 20.0, {"c": 5.0}, before_s=10.0)
    assert ledger.measured("new")["rate"] == pytest.approx(0.5)


def test_a_page_that_is_read_again_and_a_clock_that_is_set_back_change_nothing() -> None:
    ledger = Ledger((RATE,))
    for at_s, value in ((0.0, 0.0), (10.0, 10.0), (10.0, 99.0), (5.0, 99.0)):
        ledger.add("x", at_s, {"c": value})
    assert ledger.measured("x")["rate"] == pytest.approx(1.0)


def test_what_is_remembered_is_bounded() -> None:
    ledger = Ledger((PEAK, GROWN))
    for second in range(5000):
        ledger.add("x", float(second), {"g": 1.0, "c": float(second)})
    history = ledger._histories["x"]
    assert len(history.fine) + len(history.old) < 120
    assert ledger.measured("x")["grown"] == pytest.approx(300.0, abs=20.0)
