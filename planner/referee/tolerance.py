"""Exact numbers and the one tolerance of the referee."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Final

__all__ = ["RELATIVE_TOLERANCE", "exact", "exceeds", "falls_short"]

RELATIVE_TOLERANCE: Final = Fraction(1, 10**9)
"""What a row may be broken by, relative to its limit: always in the plan's favor."""


@lru_cache(maxsize=1 << 17)
def exact(number: float) -> Fraction:
    """The decimal number that a person would write for this float: ``exact(0.7)`` is 7/10.

    Sums and products of these are free of binary rounding, so that 3 replicas of 0.7 req/s carry 2.1 req/s.
    """
    return Fraction(repr(float(number)))


def exceeds(used: Fraction, limit: Fraction) -> bool:
    """Whether ``used`` is above the limit by more than the tolerance; above a limit of 0 by anything at all."""
    return used > limit + abs(limit) * RELATIVE_TOLERANCE


def falls_short(found: Fraction, floor: Fraction) -> bool:
    """Whether ``found`` is below the floor by more than the tolerance."""
    return found < floor - abs(floor) * RELATIVE_TOLERANCE
