"""Loops of one autoscaler that have periods of their own, on one clock that is handed in."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["Timer", "common_period_s"]

_TICKS_PER_S: Final = 1000
_LAST_BITS: Final = 1e-9


class Timer:
    """Due at the first moment it is asked, and once per period after that."""

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self._next_s: float | None = None

    def due(self, now_s: float) -> bool:
        """Whether it is time; what was missed is not made up for."""
        if self._next_s is None:
            self._next_s = now_s
        if now_s + _LAST_BITS < self._next_s:
            return False
        missed = math.floor((now_s + _LAST_BITS - self._next_s) / self.period_s)
        self._next_s += (missed + 1) * self.period_s
        return True


def common_period_s(*periods_s: float) -> float:
    """The longest time that divides all periods, to the millisecond and at least one."""
    return math.gcd(*(max(1, round(period * _TICKS_PER_S)) for period in periods_s)) / _TICKS_PER_S
