"""The integer program: columns, rows and goals in plain integers, known to no solver.

A key is a tuple of names, never a position: ``("n", "chat/va-a100@a100")``. The first name of a
row's key is its family. All coefficients are integers made by ``scaling``, so that every backend
answers exactly the same program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from operator import mul
from typing import Final

__all__ = ["Column", "Goal", "IntegerProgram", "Key", "Row", "assemble", "fold"]

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """An integer column: ``lower <= value <= upper``."""

    key: Key
    lower: int
    upper: int


@dataclass(frozen=True, slots=True)
class Row:
    """``lower <= sum(terms) <= upper``; ``None`` leaves a side open."""

    key: Key
    terms: Mapping[Key, int]
    lower: int | None = None
    upper: int | None = None

    @property
    def family(self) -> str:
        """The family of the design's table that this row belongs to."""
        return self.key[0]

    def activity(self, values: Mapping[Key, int]) -> int:
        """The sum of the terms at these values."""
        total = 0  # a loop and not sum(): most of a fleet's rows have two terms
        for key, coefficient in self.terms.items():
            total += coefficient * values[key]
        return total

    def holds(self, values: Mapping[Key, int]) -> bool:
        """Whether the row holds, in exact integers."""
        activity = self.activity(values)
        return (self.lower is None or activity >= self.lower) and (
            self.upper is None or activity <= self.upper
        )


@dataclass(frozen=True, slots=True)
class Goal:
    """What is made small: ``(sum(terms) + constant) * unit``, in the unit that people read."""

    name: str
    terms: Mapping[Key, int]
    constant: int = 0
    unit: float = 1.0
    unit_name: str = ""

    def activity(self, values: Mapping[Key, int]) -> int:
        """The integer value of the goal."""
        total: int = sum(map(mul, self.terms.values(), map(values.__getitem__, self.terms)))
        return self.constant + total

    def in_units(self, activity: float) -> float:
        """An integer value, or a bound on it, as people read it."""
        return float(f"{activity * self.unit:.12g}")


@dataclass(frozen=True)
class IntegerProgram:
    """Columns and rows; what is made small is said when it is solved."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @cached_property
    def column(self) -> dict[Key, Column]:
        """Columns by key."""
        return {column.key: column for column in self.columns}

    @cached_property
    def position(self) -> dict[Key, int]:
        """Number of each column, by key, in their order."""
        return {column.key: number for number, column in enumerate(self.columns)}

    def plus(self, columns: Iterable[Column] = (), rows: Iterable[Row] = ()) -> IntegerProgram:
        """The program with more columns and rows, the rows reduced as in :func:`assemble`."""
        more = tuple(columns)
        grown = IntegerProgram((*self.columns, *more), (*self.rows, *(fold(row, {}) for row in rows)))
        if not more:
            known = vars(self)
            vars(grown).update({name: known[name] for name in ("column", "position") if name in known})
        return grown

    def without(self, families: Iterable[str]) -> IntegerProgram:
        """The program without the rows of some families."""
        dropped = frozenset(families)
        return replace(self, rows=tuple(row for row in self.rows if row.family not in dropped))

    @property
    def families(self) -> tuple[str, ...]:
        """Families that have a row, in order of their first row."""
        return tuple(dict.fromkeys(row.family for row in self.rows))

    @property
    def impossible(self) -> tuple[Row, ...]:
        """Rows without a term that do not hold: no values can help."""
        return tuple(row for row in self.rows if not row.terms and not row.holds({}))

    @property
    def is_hopeless(self) -> bool:
        """Whether one look tells that there is no plan: a row that no values can help, or a column without a value."""
        return bool(self.impossible) or any(column.lower > column.upper for column in self.columns)

    def broken(self, values: Mapping[Key, int]) -> tuple[Row, ...]:
        """Rows that these values break, in exact integers."""
        return tuple(row for row in self.rows if not row.holds(values))


def assemble(columns: Iterable[Column], rows: Iterable[Row]) -> IntegerProgram:
    """Put a program together: fold fixed columns into the sides, divide by common divisors, drop what always holds.

    Dividing by the greatest common divisor rounds the sides inwards, which no integer point can tell.
    """
    kept = tuple(columns)
    fixed = {column.key: column.lower for column in kept if column.lower == column.upper}
    folded = (fold(row, fixed) for row in rows)
    return IntegerProgram(kept, tuple(row for row in folded if row.terms or not row.holds({})))


_OPEN: Final = None


def fold(row: Row, fixed: Mapping[Key, int]) -> Row:
    """The row with fixed columns moved into its sides, divided by the common divisor of what is left."""
    coefficients = row.terms.values()
    if fixed.keys().isdisjoint(row.terms) and 0 not in coefficients and gcd(*coefficients) == 1:
        return row  # most rows are as they should be, and a fleet has many
    shift = sum(coefficient * fixed[key] for key, coefficient in row.terms.items() if key in fixed)
    terms = {key: value for key, value in row.terms.items() if value and key not in fixed}
    lower = _OPEN if row.lower is None else row.lower - shift
    upper = _OPEN if row.upper is None else row.upper - shift
    divisor = gcd(*terms.values()) if terms else 1
    if divisor > 1:
        terms = {key: value // divisor for key, value in terms.items()}
        lower = _OPEN if lower is None else -(-lower // divisor)
        upper = _OPEN if upper is None else upper // divisor
    return Row(row.key, terms, lower, upper)
