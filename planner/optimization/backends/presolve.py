"""Smaller programs of equal value, for engines that see a program whole.

Two reductions that general presolvers do not make, since both need whole numbers of replicas:

* A column of one row and of no weight that can always satisfy that row (replicas that stop and that nobody counts) takes the row along.
* A candidate c is left out where a whole number k of another one, d, can stand in for each replica: in every row and
  in the goal k of d are no worse than one of c, and d is never short (its limit follows from other rows, or so many of
  it satisfy every row that wants some).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Final

from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row, assemble

__all__ = ["Reduced", "reduced"]

_MOST: Final = 2_500
"""Columns up to which pairs are compared: beyond, no engine that sees the program whole gets far anyway."""


@dataclass(frozen=True)
class Reduced:
    """A program without what is not needed.

    Attributes:
        program: has the same columns; those left out are fixed at 0.
        settled: rows that were taken along, by the column that satisfies them.
        stands_in: (d, k) by column c that is left out.
    """

    program: IntegerProgram
    settled: Mapping[Key, Row]
    stands_in: Mapping[Key, tuple[Key, int]]

    def whole(self, values: Mapping[Key, int]) -> dict[Key, int]:
        """Values of the program as it was asked."""
        found = dict(values)
        for key, row in self.settled.items():
            found[key] = _least(self.program.column[key], row, found)
        return found

    def start(self, hint: Mapping[Key, int]) -> dict[Key, int]:
        """A plan to start from, with what stands in for what is left out."""
        found = dict(hint)
        for key in self.stands_in:
            count, stand_in, times = found.get(key, 0), key, 1
            while count and stand_in in self.stands_in:
                stand_in, more = self.stands_in[stand_in]
                times *= more
            if count:
                found[key] = 0
                most = self.program.column[stand_in].upper
                found[stand_in] = min(most, found.get(stand_in, 0) + times * count)
        return found


def reduced(program: IntegerProgram, goal: Goal) -> Reduced:
    """The reduction of a program for one goal."""
    if len(program.columns) > _MOST:
        return Reduced(program, {}, {})
    settled = dict(_settled(program, goal))
    left = {id(row) for row in settled.values()}
    rows = tuple(row for row in program.rows if id(row) not in left)
    stands_in = _Pairs(IntegerProgram(program.columns, rows), goal).stands_in()
    columns = [replace(c, upper=c.lower) if c.key in stands_in else c for c in program.columns]
    return Reduced(assemble(columns, rows), settled, stands_in)


def _settled(program: IntegerProgram, goal: Goal) -> Iterator[tuple[Key, Row]]:
    """Columns of one row and of no weight, with the row that each can always satisfy."""
    where: dict[Key, list[Row]] = defaultdict(list)
    for row in program.rows:
        for key in row.terms:
            where[key].append(row)
    taken: set[int] = set()
    for key, rows in where.items():
        (row, *more) = rows
        if more or goal.terms.get(key) or id(row) in taken or len(row.terms) == 1:
            continue
        if (row.lower is None) != (row.upper is None) and _always(program, row, key):
            taken.add(id(row))
            yield key, row


def _always(program: IntegerProgram, row: Row, key: Key) -> bool:
    """Whether the best value of a column satisfies a row whatever the other columns are."""
    sign = 1 if row.lower is not None else -1
    side = row.lower if row.lower is not None else -(row.upper or 0)
    total = 0
    for other, coefficient in row.terms.items():
        column = program.column[other]
        ends = (sign * coefficient * column.lower, sign * coefficient * column.upper)
        total += max(ends) if other == key else min(ends)
    return total >= side


def _least(column: Column, row: Row, values: Mapping[Key, int]) -> int:
    """The least value of a column with which its row holds."""
    coefficient = row.terms[column.key]
    others = sum(value * values[key] for key, value in row.terms.items() if key != column.key)
    sign, side = (1, row.lower) if row.lower is not None else (-1, -(row.upper or 0))
    missing = (side or 0) - sign * others
    step = sign * coefficient
    if step > 0:
        return max(column.lower, -(-missing // step))
    return column.lower


class _Pairs:
    """Candidates that another one of the same covering row stands in for."""

    def __init__(self, program: IntegerProgram, goal: Goal) -> None:
        self._program = program
        self._goal = goal
        self._harm: dict[Key, dict[int, int] | None] = {}
        self._wants: dict[Key, list[Row]] = defaultdict(list)
        use: dict[Key, dict[int, int]] = defaultdict(dict)
        sided: set[Key] = set()
        self._limits: dict[Key, int] = {}
        for number, row in enumerate(program.rows):
            for key, coefficient in row.terms.items():
                if row.lower is not None and row.upper is not None:
                    sided.add(key)
                use[key][number] = coefficient if row.upper is not None else -coefficient
                if row.upper is None and coefficient > 0:
                    self._wants[key].append(row)
            self._note_limits(row)
        for key, harm in use.items():
            self._harm[key] = None if key in sided else harm

    def _note_limits(self, row: Row) -> None:
        """Limits of columns that follow from a row whose columns all only add to it."""
        if row.upper is None or row.lower is not None:
            return
        if any(value < 0 or self._program.column[key].lower < 0 for key, value in row.terms.items()):
            return
        for key, value in row.terms.items():
            self._limits[key] = min(row.upper // value, self._limits.get(key, row.upper // value))

    def stands_in(self) -> dict[Key, tuple[Key, int]]:
        """What stands in for each column that is left out; never one that is left out before it."""
        found: dict[Key, tuple[Key, int]] = {}
        for column in self._program.columns:
            key = column.key
            if key[0] != "n" or column.lower != 0 or column.upper == 0 or not self._wants[key]:
                continue
            for other in min(self._wants[key], key=lambda row: len(row.terms)).terms:
                if other == key or other in found or other[0] != "n" or not self._never_short(other):
                    continue
                times = self._times(key, other)
                if times:
                    found[key] = (other, times)
                    break
        return found

    def _times(self, key: Key, other: Key) -> int:
        """The least number of the other column that is no worse than one of the column; 0: there is none."""
        harm, others = self._harm[key], self._harm[other]
        if harm is None or others is None:
            return 0
        least, most = 1, float(max(0, self._goal.terms.get(key, 0)))
        price = self._goal.terms.get(other, 0)
        most = most // price if price > 0 else inf
        for row, mine in others.items():
            yours = harm.get(row, 0)
            if mine > 0:
                most = min(most, yours // mine)
            elif yours < 0:
                least = max(least, -(yours // -mine))
            if least > most:
                return 0
        return 0 if any(yours < 0 and row not in others for row, yours in harm.items()) else least

    def _never_short(self, key: Key) -> bool:
        column = self._program.column[key]
        if column.lower != 0 or self._goal.terms.get(key, 0) < 0:
            return False
        if self._limits.get(key, inf) <= column.upper:
            return True
        return all(self._enough(key, column.upper, row) for row in self._wants[key])

    def _enough(self, key: Key, count: int, row: Row) -> bool:
        """Whether so many satisfy a row that wants some, whatever the other columns are."""
        least = row.terms[key] * count
        for other, coefficient in row.terms.items():
            if other != key:
                column = self._program.column[other]
                least += min(coefficient * column.lower, coefficient * column.upper)
        return row.lower is None or least >= row.lower
