"""The fake clock keeps time as a real one does, without waiting."""

from __future__ import annotations

import math

import pytest

from planner.clock import Clock, FakeClock, SolvingClock, SystemClock


@pytest.mark.parametrize(
    "clock",
    [FakeClock(unix_s=1_700_000_000.0), SystemClock(), SolvingClock()],
    ids=["fake", "system", "solving"],
)
def test_time_never_goes_back(clock: Clock) -> None:
    before = clock.monotonic_s()
    clock.sleep(-1.0)
    clock.sleep(0.0)
    assert clock.monotonic_s() >= before
    assert clock.unix_s() > 1_600_000_000


def test_sleeping_moves_both_times() -> None:
    clock = FakeClock(unix_s=100.0)
    clock.sleep(2.5)
    clock.advance(1.0)
    assert (clock.monotonic_s(), clock.unix_s()) == (3.5, 103.5)


@pytest.mark.parametrize("duration_s", [-0.1, math.nan, math.inf])
def test_a_fake_clock_refuses_impossible_durations(duration_s: float) -> None:
    with pytest.raises(ValueError, match="finite seconds"):
        FakeClock().advance(duration_s)


def test_all_solving_clocks_stand_still_while_something_is_compiled_and_go_on_from_there() -> None:
    watching, other = SolvingClock(), SolvingClock()
    before = watching.monotonic_s()
    with SolvingClock.standing_still():
        still = other.monotonic_s()
        with SolvingClock.standing_still():
            SystemClock().sleep(0.05)
        assert watching.monotonic_s() == other.monotonic_s() == still
    after = watching.monotonic_s()
    assert before <= still <= after
    assert SystemClock().monotonic_s() - after >= 0.05
    SystemClock().sleep(0.01)
    assert watching.monotonic_s() >= after + 0.01
