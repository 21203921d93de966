"""The collector rests while large programs are made, and is as it was afterwards."""

from __future__ import annotations

import gc
from threading import Event, Thread

import pytest

from planner.collecting import collection_paused


def test_it_rests_inside_and_works_again_outside() -> None:
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled(), "an inner pause must not end the outer one"
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_an_error_ends_the_pause() -> None:
    with pytest.raises(ValueError, match="wrong"), collection_paused():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_overlapping_pauses_end_with_the_last() -> None:
    inside, leave = Event(), Event()

    def pause() -> None:
        with collection_paused():
            inside.set()
            leave.wait(10)

    other = Thread(target=pause)
    with collection_paused():
        other.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    other.join()
    assert gc.isenabled()
