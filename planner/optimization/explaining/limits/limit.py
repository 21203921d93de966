"""A limit that may be moved: where it stands, what moving it means, and how far it may have to go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from models.explanation import Conflict, Fact
from models.problem import Problem
from planner.optimization.formulation import Formulation
from planner.optimization.program import Goal, IntegerProgram, Key, Row

__all__ = ["Ladder", "Limit", "Side", "Use"]


class Side(StrEnum):
    """Which side of a row is set free."""

    LOWER = "lower"
    UPPER = "upper"


@dataclass(frozen=True)
class Use:
    """How far a limit must move, by one solve: its rows are set free and its use is made small.

    Attributes:
        goal: what is made small; its value, times ``sign``, is where the limit must stand.
        problem: the problem in which it is free (another one where columns are needed).
        rows: rows that are set free on ``side``.
        sign: -1 where the limit is a minimum, whose goal counts downwards.
        step: values are rounded to a multiple of this, to the side that suffices.
    """

    goal: Callable[[Formulation], Goal]
    problem: Problem
    rows: frozenset[Key] = frozenset()
    side: Side = Side.UPPER
    sign: int = 1
    step: float = 1.0

    def freed(self, program: IntegerProgram) -> IntegerProgram:
        """The program with the limit set free."""
        if not self.rows:
            return program
        rows = (_freed(row, self.side) if row.key in self.rows else row for row in program.rows)
        return IntegerProgram(
            program.columns, tuple(row for row in rows if (row.lower, row.upper) != (None, None))
        )


def _freed(row: Row, side: Side) -> Row:
    return replace(row, lower=None) if side is Side.LOWER else replace(row, upper=None)


@dataclass(frozen=True)
class Ladder:
    """How far a limit must move, by trying: values that are easier and easier to keep."""

    values: tuple[float, ...]


@dataclass(frozen=True)
class Limit:
    """One limit that may be moved.

    Attributes:
        family: what people call it: a family of rows, or ``slo``.
        key: which one.
        value: where the limit stands.
        unit: of the value.
        rows: how the keys of the rows begin that moving it makes easier to keep.
        moved: the problem with the limit at a new value; None where nobody can say.
        search: how the value is found that is just enough.
        facts: what a new value means beyond its number.
    """

    family: str
    key: tuple[str, ...]
    value: float
    unit: str
    rows: tuple[Key, ...]
    moved: Callable[[float], Problem | None]
    search: Use | Ladder
    facts: Callable[[float], Mapping[str, Fact]] = field(default=lambda _: {})

    def eases(self, rows: Iterable[Key]) -> bool:
        """Whether moving it makes one of these rows easier to keep."""
        return any(row[: len(start)] == start for row in rows for start in self.rows)

    def helps(self, conflict: Conflict) -> bool:
        """Whether it touches a conflict: what does not leaves it as it is."""
        if conflict.rows:
            return self.eases(conflict.rows)
        return any(start[0] in conflict.families for start in self.rows)
