"""Integers for solvers, made once: capacity is floored, demand is ceiled, money is in micro-dollars.

Rates and prices are decimals as people and tables write them (0.7 req/s, 2.5 $/h). Where the
figures of one row have a small common denominator the integers are exact, so that three replicas of
0.7 cover 2.1. Where they have not, what we have is floored and what we owe is ceiled on a grid of
1e-8 of what is owed: integer-feasible implies really feasible.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, lcm
from typing import Final, TypeVar

__all__ = ["GRID", "MICRO", "Number", "ceil_units", "cover", "exact", "limit", "micro"]

GRID: Final = 10_000
"""Steps of a share: 1/10,000 of a service's demand."""

MICRO: Final = 1e-6
"""Dollars (or watts) of one integer unit of money (or power)."""

_LARGEST_EXACT: Final = 10**7
_RESOLUTION: Final = 10**8

Number = float | Fraction
"""A decimal as people write it, or what exact arithmetic made of such decimals."""

K = TypeVar("K")
Q = TypeVar("Q")


def exact(value: Number) -> Fraction:
    """The decimal that people read: 0.1 is one tenth, not the nearest binary fraction."""
    return value if isinstance(value, Fraction) else Fraction(repr(value))


def micro(value: Number) -> int:
    """A price or a draw in millionths, rounded to the nearest."""
    return round(exact(value) * 1_000_000)


def ceil_units(value: Number, unit: Number) -> int:
    """How many units cover a value."""
    return ceil(exact(value) / exact(unit))


def cover(have: Mapping[K, Number], owes: Mapping[Q, Number]) -> tuple[dict[K, int], dict[Q, int]]:
    """Integers for ``sum(have * n) >= sum(owes * share)`` with shares in 0..1: floored left, ceiled right.

    A single ``have`` above all that is owed counts as all that is owed: one replica that covers
    everything is enough, and smaller coefficients bound better.

    Args:
        have: what one unit of each column contributes, any unit, >= 0.
        owes: what a whole share of each owes, same unit, >= 0 and not all 0.
    """
    owed = {key: exact(value) for key, value in owes.items()}
    most = sum(owed.values(), Fraction(0))
    had = {key: min(exact(value), most) for key, value in have.items()}
    scale = _common_scale([*had.values(), *owed.values()])
    if scale is None:
        scale = Fraction(_RESOLUTION) / most
    right = {key: ceil(value * scale) for key, value in owed.items()}
    whole = sum(right.values())  # by rounding it may be more than what is owed in sum
    left = {key: whole if value == most else floor(value * scale) for key, value in had.items()}
    return left, right


def limit(use: Mapping[K, Number], available: Number) -> tuple[dict[K, int], int]:
    """Integers for ``sum(use * n) <= available``: ceiled on the left, floored on the right.

    Args:
        use: what one unit of each column takes, any unit; may be negative.
        available: the right side, same unit; may be negative (then nothing fits).
    """
    fractions = {key: exact(value) for key, value in use.items()}
    right = exact(available)
    scale = _common_scale([*fractions.values(), right])
    if scale is None:
        largest = max([abs(right), *(abs(value) for value in fractions.values())])
        scale = Fraction(_RESOLUTION) / largest
    return {key: ceil(value * scale) for key, value in fractions.items()}, floor(right * scale)


def _common_scale(values: list[Fraction]) -> Fraction | None:
    """The factor that makes all values small integers at once; None where there is none."""
    largest = max(abs(value) for value in values)
    denominator = 1
    for value in values:
        denominator = lcm(denominator, value.denominator)
        if largest * denominator > _LARGEST_EXACT:
            return None
    return Fraction(denominator)
