"""Ctrl-C while a plan is made, and progress for those who watch from a file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from planner.cli.ctrl_c import ending_on_ctrl_c
from planner.cli.terminal import shown_progress
from planner.clock import FakeClock
from planner.optimization.protocol import ProgressEvent


def press(until: Callable[[], bool]) -> None:
    """Press Ctrl-C and wait until it is heard."""
    signal.raise_signal(signal.SIGINT)
    heard = threading.Event()
    for _ in range(500):
        if until():
            return
        heard.wait(0.01)
    pytest.fail("nobody heard Ctrl-C")


def test_the_first_ends_the_search_and_the_second_kills() -> None:
    said, killed = list[str](), list[bool]()
    with ending_on_ctrl_c(said.append, lambda: killed.append(True)) as cancelled:
        assert not cancelled()
        press(cancelled)
        assert killed == []
        press(lambda: bool(killed))
    assert len(said) == 1
    assert "best plan so far" in said[0]


@pytest.fixture
def usual_ctrl_c() -> Iterator[None]:
    """Ctrl-C as Python has it; whoever runs tests in the background of a shell has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_ctrl_c")
def test_outside_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with ending_on_ctrl_c(lambda _: None):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_in_another_thread_nothing_is_caught() -> None:
    answers = list[bool]()

    def plan() -> None:
        with ending_on_ctrl_c() as cancelled:
            answers.append(cancelled())

    thread = threading.Thread(target=plan)
    thread.start()
    thread.join()
    assert answers == [False]


def an_event(value: float, columns: int | None = None) -> ProgressEvent:
    return ProgressEvent("auto", "cost", 7.0, value, value * 0.9, columns)


def test_a_file_has_a_line_every_few_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    with shown_progress(clock=clock) as progress:
        progress(an_event(10.0))
        clock.advance(6.0)
        progress(an_event(20.0, columns=42))
        progress(an_event(30.0))
        clock.advance(6.0)
        progress(an_event(40.0))
    printed = capsys.readouterr()
    assert printed.out == ""
    first, second = printed.err.splitlines()
    assert "found 20" in first
    assert "42 patterns" in first
    assert "found 40" in second
    assert "patterns" not in second


def test_a_program_that_reads_the_answer_is_told_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    clock = FakeClock()
    with shown_progress(quiet=True, clock=clock) as progress:
        clock.advance(60.0)
        progress(an_event(10.0))
    assert capsys.readouterr().err == ""
