"""The fake clock keeps time as a real one does, without waiting."""

from __future__ import annotations

import math

import pytest

from planner.clock import Clock, FakeClock, SystemClock


@pytest.mark.parametrize("clock", [FakeClock(unix_s=1_700_000_000.0), SystemClock()], ids=["fake", "system"])
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
