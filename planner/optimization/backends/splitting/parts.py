"""A program in two parts: columns that are chosen, and shares that follow from them.

    choose x:  goal(x) small, rows of x alone;      follow with a:  low <= D·x + E·a <= high,  0 <= a <= 1

A share of 1 is the whole grid. Each following row is divided by its largest coefficient of a chosen column, so that
in a row of occupancy 1 is one replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row
from planner.optimization.scaling import GRID

__all__ = ["Entries", "Following", "Parts", "following_of", "parts_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FOLLOW: Final = frozenset({"a", "y", "z", "w"})
"""First names of the keys of shares."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Columns and rows of a program by the part that they belong to.

    Attributes:
        chosen: columns that are no shares.
        shares: columns that follow, fixed ones among them.
        own: rows of chosen columns alone.
        tied: rows with a share.
    """

    chosen: tuple[Column, ...]
    shares: tuple[Column, ...]
    own: tuple[Row, ...]
    tied: tuple[Row, ...]


def parts_of(program: IntegerProgram, goal: Goal) -> Parts | None:
    """The two parts; None where the goal weighs shares, or nothing is routed by length."""
    if any(key[0] in _FOLLOW for key in goal.terms) or not any(c.key[0] == "a" for c in program.columns):
        return None
    shares = tuple(c for c in program.columns if c.key[0] in _FOLLOW)
    names = {column.key for column in shares}
    own, tied = list[Row](), list[Row]()
    for row in program.rows:
        (own if names.isdisjoint(row.terms) else tied).append(row)
    chosen = tuple(c for c in program.columns if c.key[0] not in _FOLLOW)
    return Parts(chosen, shares, tuple(own), tuple(tied))


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse matrix by its entries."""

    row: Ints
    column: Ints
    value: Floats

    def times(self, x: Floats, rows: int) -> Floats:
        """Matrix times column vector."""
        return np.bincount(self.row, self.value * x[self.column], minlength=rows).astype(np.float64)

    def across(self, u: Floats, columns: int) -> Floats:
        """Row vector times matrix."""
        return np.bincount(self.column, self.value * u[self.row], minlength=columns).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Following:
    """The rows with shares, in floats.

    Attributes:
        d: coefficients of chosen columns (rows x chosen).
        e: coefficients of shares that are free (rows x free).
        low: lower sides, -inf where open; fixed shares are taken in.
        high: upper sides.
        least: lower ends of the free shares, whole grid = 1.
        most: upper ends.
        free: position of each free share among the shares.
        home: an equality row of each free share in which it counts up; -1: none.
        step: what one grid step of a share moves a row at most.
    """

    d: Entries
    e: Entries
    low: Floats
    high: Floats
    least: Floats
    most: Floats
    free: Ints
    home: Ints
    step: Floats


def following_of(parts: Parts) -> Following:
    """The rows with shares as arrays."""
    fixed = {c.key: c.lower for c in parts.shares if c.lower == c.upper}
    free = [number for number, c in enumerate(parts.shares) if c.key not in fixed]
    d, ours = _entries(parts.tied, [c.key for c in parts.chosen])
    e, theirs = _entries(parts.tied, [parts.shares[number].key for number in free])
    theirs = theirs * GRID
    scale = np.where(ours > 0, ours, np.where(theirs > 0, theirs, 1.0))
    shift = np.array([_fixed_part(row, fixed) for row in parts.tied])
    low = np.array([-np.inf if row.lower is None else float(row.lower) for row in parts.tied])
    high = np.array([np.inf if row.upper is None else float(row.upper) for row in parts.tied])
    low, high = (low - shift) / scale, (high - shift) / scale
    scaled = Entries(e.row, e.column, e.value * GRID / scale[e.row])
    return Following(
        d=Entries(d.row, d.column, d.value / scale[d.row]),
        e=scaled,
        low=low,
        high=high,
        least=np.array([parts.shares[number].lower for number in free]) / GRID,
        most=np.array([parts.shares[number].upper for number in free]) / GRID,
        free=np.array(free, dtype=np.int64),
        home=_homes(scaled, low == high, len(free)),
        step=theirs / scale / GRID,
    )


def _fixed_part(row: Row, fixed: Mapping[Key, int]) -> float:
    return (
        float(sum(value * fixed[key] for key, value in row.terms.items() if key in fixed)) if fixed else 0.0
    )


def _entries(rows: Iterable[Row], keys: list[Key]) -> tuple[Entries, Floats]:
    """The coefficients of some columns, and the largest of each row."""
    place = {key: number for number, key in enumerate(keys)}
    row, column, value = list[int](), list[int](), list[int]()
    count = 0
    for number, one in enumerate(rows):
        count += 1
        for key, coefficient in one.terms.items():
            position = place.get(key)
            if position is not None:
                row.append(number)
                column.append(position)
                value.append(coefficient)
    found = Entries(
        np.array(row, dtype=np.int64), np.array(column, dtype=np.int64), np.array(value, dtype=float)
    )
    largest = np.zeros(count)
    np.maximum.at(largest, found.row, np.abs(found.value))
    return found, largest


def _homes(e: Entries, equal: NDArray[np.bool_], columns: int) -> Ints:
    home = np.full(columns, -1, dtype=np.int64)
    counts = equal[e.row] & (e.value > 0)
    home[e.column[counts]] = e.row[counts]
    return home
