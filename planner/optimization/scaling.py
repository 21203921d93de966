"""Integers for solvers, made once: capacity is floored, demand is ceiled, money is in micro-dollars.

Rates and prices are decimals as people and tables write them (0.7 req/s, 2.5 $/h). Where the
figures of one row have a small common denominator the integers are exact, so that three replicas of
0.7 cover 2.1. Where they have not, what we have is floored and what we owe is ceiled on a grid of
1e-8 of what is owed: integer-feasible implies really feasible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import ceil, gcd, lcm
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GRID",
    "MICRO",
    "Number",
    "ceil_units",
    "cover",
    "cover_each",
    "exact",
    "limit",
    "micro",
    "occupy_each",
]

GRID: Final = 10_000
"""Steps of a share: 1/10,000 of a service's demand."""

MICRO: Final = 1e-6
"""Dollars (or watts) of one integer unit of money (or power)."""

_LARGEST_EXACT: Final = 10**7
_RESOLUTION: Final = 10**8

_DIGITS: Final = tuple(10**digits for digits in range(13))
_SURE: Final = 2**53
"""Integers up to here are floats."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Rational = tuple[int, int]
"""Numerator and positive denominator."""

Number = float | Fraction
"""A decimal as people write it, or what exact arithmetic made of such decimals."""

K = TypeVar("K")
Q = TypeVar("Q")


@lru_cache(maxsize=1 << 16)
def _decimal(value: float) -> Rational:
    """Numerator and denominator of the shortest decimal that reads as ``value``."""
    for digits in _DIGITS:
        scaled = value * digits
        if abs(scaled) > _SURE:
            break
        numerator = round(scaled)
        if numerator / digits == value:
            common = gcd(numerator, digits)
            return numerator // common, digits // common
    return Fraction(repr(value)).as_integer_ratio()


def _rational(value: Number) -> Rational:
    return value.as_integer_ratio() if type(value) is Fraction else _decimal(value)


def exact(value: Number) -> Fraction:
    """The decimal that people read: 0.1 is one tenth, not the nearest binary fraction."""
    return value if type(value) is Fraction else _fraction(value)


@lru_cache(maxsize=1 << 16)
def _fraction(value: float) -> Fraction:
    return Fraction(*_decimal(value))


@lru_cache(maxsize=1 << 16)
def micro(value: Number) -> int:
    """A price or a draw in millionths, rounded to the nearest, halves up."""
    numerator, denominator = _rational(value)
    return (2_000_000 * numerator + denominator) // (2 * denominator)


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
    owed = {key: _rational(value) for key, value in owes.items()}
    had = {key: _rational(value) for key, value in have.items()}
    whole = sum((Fraction(*amount) for amount in owed.values()), Fraction(0))
    most = whole.as_integer_ratio()
    scale = _common_scale([*(_smaller(one, most) for one in had.values()), *owed.values()])
    if scale is None:
        scale = (_RESOLUTION * most[1], most[0])
    right = {key: _ceil(amount, scale) for key, amount in owed.items()}
    full = sum(right.values())  # by rounding it may be more than what is owed in sum
    left = {key: full if _smaller(one, most) is most else _floor(one, scale) for key, one in had.items()}
    return left, right


_NEAR: Final = 1e-6
"""Closer than this to a whole number, a float of at most 1e8 does not tell what its floor is."""


def cover_each(have: Floats, starts: Ints, owes: Sequence[Number]) -> tuple[Ints, Ints]:
    """The integers of :func:`cover` for many rows of one share at once.

    Args:
        have: what one unit of each column contributes, row after row, >= 0.
        starts: figures of row i are ``have[starts[i]:starts[i + 1]]``.
        owes: what a whole share of each row owes, > 0.

    Returns:
        What each column contributes, and what each row owes.
    """
    numerators, denominators = _decimals(have)
    owed = [_rational(value) for value in owes]
    row = np.repeat(np.arange(len(owed)), np.diff(starts))
    whole = np.array([numerator / denominator for numerator, denominator in owed])[row]
    smaller = have < whole
    for i in np.flatnonzero(np.abs(have - whole) <= _NEAR * whole).tolist():
        smaller[i] = _smaller(_rational(float(have[i])), owed[row[i]]) is not owed[row[i]]
    known = np.ones(len(owed), dtype=bool)
    known[row[smaller & (denominators == 0)]] = False
    common = np.ones(len(owed), dtype=np.int64)
    np.lcm.at(common, row[smaller & (denominators > 0)], denominators[smaller & (denominators > 0)])
    scales = [
        lcm(shared, one[1]) if sure and one[0] * lcm(shared, one[1]) <= _LARGEST_EXACT * one[1] else 0
        for shared, sure, one in zip(common.tolist(), known.tolist(), owed, strict=True)
    ]
    right = np.array(
        [
            numerator * scale // denominator if scale else _RESOLUTION
            for scale, (numerator, denominator) in zip(scales, owed, strict=True)
        ],
        dtype=np.int64,
    )
    left = right[row]
    scale = np.array(scales, dtype=np.int64)[row]
    finely = smaller & (scale > 0)
    left[finely] = numerators[finely] * (scale[finely] // denominators[finely])
    coarsely = smaller & (scale == 0)
    left[coarsely] = _floors(have[coarsely], [owed[i] for i in row[coarsely].tolist()])
    return left, right


_UNSURE: Final = 1e-7
"""Closer than this, for each term of the sum behind it, to a whole number a float of at most 1e8 may be on either side."""

_LONGEST: Final = 1e15
"""Common denominators beyond this are none."""


def occupy_each(loads: Floats, rates: Floats, starts: Ints, factors: Sequence[Number]) -> tuple[Ints, Ints]:
    """The integers of :func:`cover` for many rows  n ≥ Σ_b factor·load[b]/rate[b]·share[b]  at once.

    Args:
        loads: figures of all rows, row after row, > 0.
        rates: of one replica, > 0, same unit.
        starts: figures of row i are ``loads[starts[i]:starts[i + 1]]``; no row is empty.
        factors: by row, > 0.

    Returns:
        What one replica contributes, by row, and what each share owes.
    """
    if len(starts) <= 1:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    counts, first = np.diff(starts), starts[:-1]
    row = np.repeat(np.arange(len(counts)), counts)
    parts = loads / rates * np.array([float(factor) for factor in factors])[row]
    finely, common, owed = _in_common_units(loads, rates, _whole_rationals(factors)[row], starts)
    whole = np.add.reduceat(parts, first)
    room = np.minimum(_RESOLUTION / whole, _SURE)
    shares = np.where(counts[row] > 1, parts * (_RESOLUTION / whole)[row], float(_RESOLUTION))
    owed = np.where(finely[row], owed, np.ceil(shares).astype(np.int64))
    sums = np.add.reduceat(owed, first)
    enough = np.where(finely, sums <= common, whole <= 1.0)
    left = np.where(enough, sums, np.where(finely, common, np.floor(room).astype(np.int64)))
    near = _UNSURE * (counts + 4)
    unsure = (np.abs(whole - 1.0) <= near) | (~enough & (np.abs(room - np.round(room)) <= near))
    doubtful = (counts[row] > 1) & (np.abs(shares - np.round(shares)) <= near[row])
    unsure |= np.logical_or.reduceat(doubtful, first)
    for i in np.flatnonzero(unsure & ~finely).tolist():
        span = slice(int(starts[i]), int(starts[i + 1]))
        pairs = zip(loads[span].tolist(), rates[span].tolist(), strict=True)
        owes = {at: exact(factors[i]) * exact(load) / exact(rate) for at, (load, rate) in enumerate(pairs)}
        have, due = cover({0: 1.0}, owes)
        left[i], owed[span] = have[0], list(due.values())
    return left, owed


def _in_common_units(
    loads: Floats, rates: Floats, factors: Ints, starts: Ints
) -> tuple[NDArray[np.bool_], Ints, Ints]:
    """Rows whose figures are small integers in a common unit, one replica in that unit, and what each share owes."""
    counts, first = np.diff(starts), starts[:-1]
    row = np.repeat(np.arange(len(counts)), counts)
    numerators, denominators = _quotients(loads, rates, factors)
    common = _common_denominators(denominators, starts)
    amounts = numerators / np.maximum(denominators, 1) * common[row]
    finely = (common > 0) & (np.maximum.reduceat(amounts, first) <= _LARGEST_EXACT + 0.5)
    known = finely[row]
    owed = np.zeros(len(loads), dtype=np.int64)
    owed[known] = numerators[known] * (common[row[known]] // denominators[known])
    finely &= np.minimum(common, np.add.reduceat(owed, first)) <= _LARGEST_EXACT
    return finely, common, owed


def _whole_rationals(values: Sequence[Number]) -> Ints:
    """Numerators and denominators, values x 2; 0 / 0 where they are too large to reckon with."""
    found = [_rational(value) for value in values]
    fitting = [one if max(one) <= _SURE else (0, 0) for one in found]
    return np.array(fitting, dtype=np.int64).reshape(-1, 2)


def _quotients(loads: Floats, rates: Floats, factors: Ints) -> tuple[Ints, Ints]:
    """Each factor·load/rate in lowest terms; denominator 0 where 64 bits do not tell."""
    (above, below), (beneath, over) = _decimals(loads), _decimals(rates)
    tops, bottoms = [above, over, factors[:, 0]], [below, beneath, factors[:, 1]]
    known = (below > 0) & (over > 0) & (factors[:, 1] > 0)
    for i in range(3):
        for j in range(3):
            shared = np.maximum(np.gcd(tops[i], bottoms[j]), 1)
            tops[i], bottoms[j] = tops[i] // shared, bottoms[j] // shared
    for parts in (tops, bottoms):
        known &= np.prod([part.astype(np.float64) for part in parts], axis=0) <= _LONGEST
    return tuple(np.where(known, a * b * c, 0) for a, b, c in (tops, bottoms))  # type: ignore[return-value]


def _common_denominators(denominators: Ints, starts: Ints) -> Ints:
    """The least common denominator of each row; 0 where there is none of use."""
    counts, first = np.diff(starts), starts[:-1]
    common = np.ones(len(counts), dtype=np.int64)
    for k in range(int(counts.max(initial=0))):
        open_ = np.flatnonzero((counts > k) & (common > 0))
        if not len(open_):
            break
        own = denominators[first[open_] + k]
        times = own // np.maximum(np.gcd(common[open_], own), 1)
        fits = (own > 0) & (common[open_].astype(np.float64) * times <= _LONGEST)
        common[open_] = np.where(fits, common[open_] * np.where(fits, times, 0), 0)
    return common


def _floors(have: Floats, owed: Sequence[Rational]) -> Ints:
    """Each figure in units of 1e-8 of what is owed, floored."""
    shares = have * (_RESOLUTION / np.array([numerator / denominator for numerator, denominator in owed]))
    found = np.floor(shares).astype(np.int64)
    for i in np.flatnonzero(np.abs(shares - np.round(shares)) <= _NEAR).tolist():
        numerator, denominator = owed[i]
        found[i] = _floor(_rational(float(have[i])), (_RESOLUTION * denominator, numerator))
    return found


def _decimals(values: Floats) -> tuple[Ints, Ints]:
    """Numerator and denominator of many shortest decimals; denominator 0 where 64 bits do not tell."""
    numerators, denominators = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
    left = np.arange(len(values))
    for digits in _DIGITS:
        if not len(left):
            break
        scaled = values[left] * digits
        near = np.where(np.abs(scaled) <= _SURE, np.rint(scaled), 0.0)
        found = (near / digits == values[left]) & (np.abs(scaled) <= _SURE)
        numerator = near[found].astype(np.int64)
        common = np.gcd(numerator, digits)
        numerators[left[found]], denominators[left[found]] = numerator // common, digits // common
        left = left[~found]
    return numerators, denominators


def limit(use: Mapping[K, Number], available: Number) -> tuple[dict[K, int], int]:
    """Integers for ``sum(use * n) <= available``: ceiled on the left, floored on the right.

    Args:
        use: what one unit of each column takes, any unit; may be negative.
        available: the right side, same unit; may be negative (then nothing fits).
    """
    taken = {key: _rational(value) for key, value in use.items()}
    right = _rational(available)
    scale = _common_scale([*taken.values(), right])
    if scale is None:
        largest = max(abs(Fraction(*one)) for one in (right, *taken.values()))
        scale = (_RESOLUTION * largest.denominator, largest.numerator)
    return {key: _ceil(one, scale) for key, one in taken.items()}, _floor(right, scale)


def _floor(value: Rational, scale: Rational) -> int:
    return value[0] * scale[0] // (value[1] * scale[1])


def _ceil(value: Rational, scale: Rational) -> int:
    return -(-value[0] * scale[0] // (value[1] * scale[1]))


def _smaller(one: Rational, most: Rational) -> Rational:
    """The smaller of two; ``most`` itself where they are equal."""
    return most if one[0] * most[1] >= most[0] * one[1] else one


def _common_scale(values: Sequence[Rational]) -> Rational | None:
    """The factor that makes all values small integers at once; None where there is none."""
    denominator = lcm(*{value[1] for value in values})
    if all(abs(numerator) * denominator <= _LARGEST_EXACT * own for numerator, own in values):
        return denominator, 1
    return None
