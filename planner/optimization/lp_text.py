"""A program as text in the CPLEX LP format, for people who review it and for every solver that reads such files.

Names are the keys, written ``n(chat.small@east)``; what the format does not allow in a name becomes a dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from planner.optimization.program import Goal, IntegerProgram, Key, Row

__all__ = ["column_names", "lp_text", "row_names"]

_WIDTH: Final = 110
_LONGEST_NAME: Final = 90
"""CBC gives up on names of more than 100 letters; a number may follow."""
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_@#]")
_NOTHING: Final = "nothing"
"""A column at 0 for sums without terms, which the format does not know."""


def lp_text(program: IntegerProgram, goal: Goal | None = None) -> str:
    """The program in the CPLEX LP format: columns, rows and terms in their own order.

    Args:
        program: columns and rows.
        goal: what is made small; without one any feasible point is asked for.
    """
    names = column_names(program)
    labels = row_names(program)
    aim = goal or Goal("feasible", {})
    constant = [f"{aim.constant:+d}"] if aim.constant else []
    empty = not aim.terms or any(not row.terms for row in program.rows)
    return "\n".join([
        "Minimize",
        *_wrapped("goal", [*_terms(aim.terms, names), *constant]),
        "Subject To",
        *(line for row, label in zip(program.rows, labels, strict=True) for line in _row(row, label, names)),
        "Bounds",
        *(f" {column.lower} <= {names[column.key]} <= {column.upper}" for column in program.columns),
        *([f" {_NOTHING} = 0"] if empty else []),
        "General",
        *(f" {names[column.key]}" for column in program.columns),
        "End",
        "",
    ])  # fmt: skip


def column_names(program: IntegerProgram) -> dict[Key, str]:
    """A legal name for every column, each once; the same for equal columns in equal order."""
    keys = [column.key for column in program.columns]
    return dict(zip(keys, _distinct(keys), strict=True))


def row_names(program: IntegerProgram) -> list[str]:
    """A legal name for every row in its order, each once."""
    return _distinct(row.key for row in program.rows)


def _row(row: Row, label: str, names: Mapping[Key, str]) -> Iterator[str]:
    """A row; one with two sides is written once for each."""
    total = _terms(row.terms, names)
    if row.lower is not None and row.lower == row.upper:
        yield from _wrapped(label, [*total, f"= {row.lower}"])
        return
    both = row.lower is not None and row.upper is not None
    if row.lower is not None:
        yield from _wrapped(f"{label}.least" if both else label, [*total, f">= {row.lower}"])
    if row.upper is not None:
        yield from _wrapped(f"{label}.most" if both else label, [*total, f"<= {row.upper}"])


def _terms(terms: Mapping[Key, int], names: Mapping[Key, str]) -> list[str]:
    return [f"{coefficient:+d} {names[key]}" for key, coefficient in terms.items()] or [f"0 {_NOTHING}"]


def _wrapped(label: str, parts: Iterable[str]) -> Iterator[str]:
    """A statement on as many lines as it needs: readers of the format limit the length of a line."""
    line = f" {label}:"
    for part in parts:
        if len(line) + len(part) >= _WIDTH:
            yield line
            line = "  "
        line = f"{line} {part}"
    yield line


def _distinct(keys: Iterable[Key]) -> list[str]:
    """A legal name for every key; where two are equal, later ones are numbered."""
    found: dict[str, None] = {}
    for key in keys:
        plain = _legal(key)
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}~{number}"
        found[name] = None
    return list(found)


def _legal(key: Key) -> str:
    kind, *rest = (_FORBIDDEN.sub(".", name) for name in key)
    return f"{kind}({','.join(rest)})"[:_LONGEST_NAME] if rest else kind
