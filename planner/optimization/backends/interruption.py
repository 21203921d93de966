"""Solvers that run in C cannot be asked to look up: a thread looks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

from planner.clock import Clock
from planner.optimization.protocol import Cancelled, never

__all__ = ["EndingClock", "stopping", "watching"]

_LOOKS_EVERY_S: Final = 0.05


class EndingClock:
    """A clock that says that all time is over once whoever asked wants an end: for loops that look at deadlines."""

    def __init__(self, clock: Clock, cancelled: Cancelled) -> None:
        self._clock = clock
        self._cancelled = cancelled

    def monotonic_s(self) -> float:
        """See :class:`~planner.clock.Clock`."""
        return inf if self._cancelled() else self._clock.monotonic_s()

    def unix_s(self) -> float:
        """See :class:`~planner.clock.Clock`."""
        return self._clock.unix_s()

    def sleep(self, duration_s: float) -> None:
        """See :class:`~planner.clock.Clock`."""
        self._clock.sleep(duration_s)


@contextmanager
def stopping(cancelled: Cancelled, stop: Callable[[], object]) -> Iterator[None]:
    """Inside, ``stop`` is called once, from another thread, soon after ``cancelled`` says so."""
    if cancelled is never:
        yield
        return

    def look() -> bool:
        if cancelled():
            stop()
            return False
        return True

    with watching(look):
        yield


@contextmanager
def watching(look: Callable[[], bool]) -> Iterator[None]:
    """Inside, ``look`` is called some twenty times a second from another thread, until it returns False."""
    done = threading.Event()

    def run() -> None:
        while not done.wait(_LOOKS_EVERY_S):
            if not look():
                return

    thread = threading.Thread(target=run, name="fleetplan-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
