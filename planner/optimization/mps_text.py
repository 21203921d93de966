"""A program as text in the free MPS format, with the names of the LP text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from planner.optimization.lp_text import column_names, row_names
from planner.optimization.program import Column, Goal, IntegerProgram, Key, Row

__all__ = ["mps_text"]

_GOAL: Final = "goal"


def mps_text(program: IntegerProgram, goal: Goal | None = None) -> str:
    """The program in the free MPS format: columns, rows and terms in their own order.

    Args:
        program: columns and rows.
        goal: what is made small; without one any feasible point is asked for.
    """
    aim = goal or Goal("feasible", {})
    names = column_names(program)
    rows = list(zip(program.rows, row_names(program), strict=True))
    return "\n".join([
        "NAME fleet FREE",
        "ROWS",
        f" N {_GOAL}",
        *(f" {_kind(row)} {name}" for row, name in rows),
        "COLUMNS",
        " MARKER 'MARKER' 'INTORG'",
        *_columns(program, names, rows, aim),
        " MARKER 'MARKER' 'INTEND'",
        "RHS",
        *([f" RHS {_GOAL} {-aim.constant}"] if aim.constant else []),
        *(f" RHS {name} {side}" for row, name in rows if (side := _side(row))),
        "RANGES",
        *(f" RANGE {name} {width}" for row, name in rows if (width := _width(row)) is not None),
        "BOUNDS",
        *(line for column in program.columns for line in _bounds(column, names[column.key])),
        "ENDATA",
        "",
    ])  # fmt: skip


def _columns(
    program: IntegerProgram, names: Mapping[Key, str], rows: list[tuple[Row, str]], goal: Goal
) -> Iterator[str]:
    entries: dict[Key, list[str]] = defaultdict(list)
    for row, name in rows:
        for key, value in row.terms.items():
            entries[key].append(f"{name} {value}")
    for column in program.columns:
        # A column that nothing names must be named all the same.
        own = [f"{_GOAL} {goal.terms.get(column.key, 0)}"] if column.key in goal.terms else []
        for entry in own + entries[column.key] or [f"{_GOAL} 0"]:
            yield f" {names[column.key]} {entry}"


def _kind(row: Row) -> str:
    if row.lower is not None and row.lower == row.upper:
        return "E"
    if row.lower is None and row.upper is None:
        return "N"
    return "L" if row.lower is None else "G"


def _side(row: Row) -> int:
    """The right side; 0 is the default and not written."""
    side = row.upper if row.lower is None else row.lower
    return side or 0


def _width(row: Row) -> int | None:
    """Between two sides that differ."""
    if row.lower is None or row.upper is None or row.lower == row.upper:
        return None
    return row.upper - row.lower


def _bounds(column: Column, name: str) -> Iterator[str]:
    if column.lower == column.upper:
        yield f" FX BOUND {name} {column.lower}"
        return
    yield f" LO BOUND {name} {column.lower}"
    yield f" UP BOUND {name} {column.upper}"
