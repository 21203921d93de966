"""The block-angular shape of a program: one block per service, and the few rows that tie blocks together.

Rows of families that speak of one service join their columns to a block. Every other row ties, unless all
its columns are of one block after all (a quota of a namespace with one service). Columns of no block (added
nodes, patterns of pods, fairness levels) belong to the master problem.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from planner.optimization.program import Column, IntegerProgram, Key, Row, fold

__all__ = ["Block", "Shape", "shape_of"]

_LOCAL: Final = frozenset(
    {"demand", "rate", "headroom", "bounds", "safe_scale_in", "survive", "ratio", "start", "incumbents"}
)


@dataclass
class Block:
    """Columns and rows of one service (or of a host with its guests)."""

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Shape:
    """A program cut into blocks, master columns, tying rows, and columns that are no decision.

    ``impossible``: a row that is left with such columns only does not hold.
    """

    blocks: tuple[Block, ...]
    master: tuple[Column, ...]
    tying: tuple[Row, ...]
    fixed: tuple[Column, ...]
    impossible: bool


def shape_of(program: IntegerProgram) -> Shape:
    """Cut a program into its blocks; together they hold every column once and every row once."""
    local = [row for row in program.rows if _is_local(row)]
    label = _labels(program, local)
    blocks: dict[Key, Block] = defaultdict(Block)
    for column in program.columns:
        if column.key in label:
            blocks[label[column.key]].columns.append(column)
    tying = []
    for row in program.rows:
        owners = {label.get(key) for key in row.terms}
        owner = next(iter(owners)) if len(owners) == 1 else None
        if owner is not None:
            blocks[owner].rows.append(row)
        elif row.terms:
            tying.append(row)
    rest = [column for column in program.columns if column.key not in label]
    fixed = {column.key: column.lower for column in rest if column.lower == column.upper}
    folded = [fold(row, fixed) for row in tying]
    return Shape(
        blocks=tuple(blocks.values()),
        master=tuple(column for column in rest if column.lower < column.upper),
        tying=tuple(row for row in folded if row.terms),
        fixed=tuple(column for column in rest if column.lower == column.upper),
        impossible=any(not row.terms and not row.holds({}) for row in folded),
    )


def _labels(program: IntegerProgram, local: Iterable[Row]) -> dict[Key, Key]:
    """The block of every column that has one, named by one of its columns."""
    parent: dict[Key, Key] = {}
    for row in local:
        _join(parent, row.terms)
    label = {column.key: _root(parent, column.key) for column in program.columns if column.key in parent}
    # A candidate whose every row was folded away is still a block of its own, not a column of the master.
    return label | {
        column.key: column.key
        for column in program.columns
        if column.key not in label and column.key[0] in {"n", "z", "y"} and column.lower < column.upper
    }


def _is_local(row: Row) -> bool:
    return row.family in _LOCAL or (row.family == "change" and len(row.key) > 1)


def _root(parent: dict[Key, Key], key: Key) -> Key:
    while parent[key] != key:
        parent[key] = parent[parent[key]]
        key = parent[key]
    return key


def _join(parent: dict[Key, Key], keys: Iterable[Key]) -> None:
    first: Key | None = None
    for key in keys:
        parent.setdefault(key, key)
        root = _root(parent, key)
        if first is None:
            first = root
        elif root != first:
            parent[root] = first
