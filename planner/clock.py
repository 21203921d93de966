"""Time as an argument: the only module that asks the machine what time it is."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Protocol

__all__ = ["Clock", "FakeClock", "SolvingClock", "SystemClock"]


class Clock(Protocol):
    """What may be asked of time."""

    def monotonic_s(self) -> float:
        """Seconds since some fixed moment; never goes back. For durations and deadlines."""
        ...

    def unix_s(self) -> float:
        """Seconds since 1970-01-01T00:00Z. For time stamps that others read."""
        ...

    def sleep(self, duration_s: float) -> None:
        """Return when ``duration_s`` seconds have passed; at once if that is not positive."""
        ...


class SystemClock:
    """The machine's clock."""

    def monotonic_s(self) -> float:
        """See :class:`Clock`."""
        return time.monotonic()

    def unix_s(self) -> float:
        """See :class:`Clock`."""
        return time.time()

    def sleep(self, duration_s: float) -> None:
        """See :class:`Clock`."""
        if duration_s > 0:
            time.sleep(duration_s)


class SolvingClock(SystemClock):
    """The machine's clock for limits on solving: it stands still while something is compiled once for all.

    All of them stand still together, since a limit may be watched by one and the compiling be met by another.
    """

    _lock: ClassVar = threading.Lock()
    _still_s: ClassVar[float] = 0.0
    _since_s: ClassVar[float] = 0.0
    _depth: ClassVar[int] = 0

    def monotonic_s(self) -> float:
        """See :class:`Clock`."""
        with self._lock:
            return (self._since_s if self._depth else super().monotonic_s()) - self._still_s

    @classmethod
    @contextmanager
    def standing_still(cls) -> Iterator[None]:
        """Inside, no solving clock moves on; from any thread, and one inside the other."""
        with cls._lock:
            if not cls._depth:
                cls._since_s = time.monotonic()
            cls._depth += 1
        try:
            yield
        finally:
            with cls._lock:
                cls._depth -= 1
                if not cls._depth:
                    cls._still_s += time.monotonic() - cls._since_s


class FakeClock:
    """A clock that moves only when told to; sleeping moves it.

    Args:
        unix_s: what :meth:`unix_s` says at the start, seconds since 1970.
    """

    def __init__(self, unix_s: float = 0.0) -> None:
        self._start_unix_s = unix_s
        self._elapsed_s = 0.0

    def monotonic_s(self) -> float:
        """Seconds that this clock was moved by so far."""
        return self._elapsed_s

    def unix_s(self) -> float:
        """See :class:`Clock`."""
        return self._start_unix_s + self._elapsed_s

    def sleep(self, duration_s: float) -> None:
        """Move on by ``duration_s`` seconds without waiting; not at all if that is not positive."""
        self.advance(max(0.0, duration_s))

    def advance(self, duration_s: float) -> None:
        """Move on by ``duration_s`` seconds.

        Raises:
            ValueError: the duration is negative or not finite.
        """
        if not math.isfinite(duration_s) or duration_s < 0:
            raise ValueError(f"a clock moves on by finite seconds >= 0, not by {duration_s}")
        self._elapsed_s += duration_s
