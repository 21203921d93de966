"""A minimal conflict: limits that cannot hold together, though without any one of them the rest can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from models.explanation import Conflict
from models.problem import Problem
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.formulation import formulate
from planner.optimization.program import IntegerProgram, Row

__all__ = ["POLICY", "conflict_in", "conflict_of"]

POLICY: Final = (
    "change",
    "ratio",
    "variants",
    "incumbents",
    "placement",
    "safe_scale_in",
    "bounds",
    "headroom",
    "survive",
    "nodes",
    "spend",
    "power",
    "quota",
    "gpus",
    "rate",
    "demand",
)
"""Order of the deletion filter: what can be left out early is no part of the conflict that is shown."""

_ROWS: Final = 0.5
"""Share of the time left that the search for single rows may take."""


def conflict_of(problem: Problem, oracle: Oracle) -> Conflict | None:
    """Deletion filter over families in policy order, then over their rows; None when time ran out before anything was certain.

    A family or row whose removal could not be judged in time stays in: the conflict is then valid, but maybe not
    minimal. No rows are named where not even their families were certain.
    """
    return conflict_in(formulate(problem, roomy=True).program, oracle)


def conflict_in(program: IntegerProgram, oracle: Oracle) -> Conflict | None:
    """As :func:`conflict_of`, of a program."""
    if oracle.feasible(program) is not False:
        return None
    present = set(program.families)
    dropped: list[str] = []
    for family in (*POLICY, *sorted(present.difference(POLICY))):
        if family in present and oracle.feasible(program.without([*dropped, family])) is False:
            dropped.append(family)
    conflicting = program.without(dropped)
    rows = _needed_rows(conflicting, oracle.until(_ROWS))
    return Conflict(
        families=tuple(sorted(conflicting.families, key=_rank)),
        rows=tuple(
            dict.fromkeys(row.key for row in sorted(rows, key=lambda row: (_rank(row.family), row.key)))
        ),
    )


def _needed_rows(program: IntegerProgram, oracle: Oracle) -> Sequence[Row]:
    """Rows that still conflict: parts are left out where the rest conflicts without them, in smaller and smaller parts.

    Rows of one key belong together. What stays is minimal when time was enough for parts of one row.
    """
    impossible = program.impossible
    if impossible:
        return impossible[:1]
    kept = _by_key(program.rows)
    size = len(kept)
    while size > 0 and oracle.seconds_left > 0:
        start = 0
        while start < len(kept):
            rest = [*kept[:start], *kept[start + size :]]
            if oracle.feasible(_of(program, rest)) is False:
                kept = rest
            else:
                start += size
        size //= 2
    return [row for group in kept for row in group]


def _by_key(rows: Sequence[Row]) -> list[list[Row]]:
    groups: dict[object, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (-_rank(row.family), row.key)):
        groups.setdefault(row.key, []).append(row)
    return list(groups.values())


def _of(program: IntegerProgram, groups: Sequence[Sequence[Row]]) -> IntegerProgram:
    return IntegerProgram(program.columns, tuple(row for group in groups for row in group))


def _rank(family: str) -> int:
    """The promise first, then what stands against it."""
    order = (*reversed(POLICY),)
    return order.index(family) if family in order else len(order)
