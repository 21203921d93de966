"""The block-angular shape of a program: one block per service, and the few rows that tie blocks together.

Rows of families that speak of one service join their columns to a block. Every other row ties, unless all
its columns are of one block after all (a quota of a namespace with one service). Columns of no block (added
nodes, patterns of pods, fairness levels) belong to the master problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from planner.optimization.backends.column_generation.sparse import Terms
from planner.optimization.program import Column, IntegerProgram, Key, Row, fold

__all__ = ["Block", "Shape", "grown", "shape_of"]

Ints = NDArray[np.int64]

_LOCAL: Final = frozenset(
    {
        "demand",
        "rate",
        "headroom",
        "bounds",
        "safe_scale_in",
        "survive",
        "ratio",
        "incumbents",
        "variants",
    }
)
_ALONE: Final = frozenset({"n", "z", "y"})
"""A candidate or a share whose every row was folded away is still a block of its own, not a column of the master."""


@dataclass
class Block:
    """Columns and rows of one service (or of a host with its guests).

    ``fits`` is whether it fits the kernel of branch and cut, once somebody has asked.
    """

    columns: list[Column] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    fits: bool | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Shape:
    """A program cut into blocks, master columns, tying rows, and columns that are no decision.

    ``owner`` is the block of each column that has one. ``impossible``: a row that is left with columns that are no
    decision only does not hold.
    """

    blocks: tuple[Block, ...]
    master: tuple[Column, ...]
    tying: tuple[Row, ...]
    fixed: tuple[Column, ...]
    impossible: bool
    owner: Mapping[Key, int]


def shape_of(program: IntegerProgram, terms: Terms) -> Shape:
    """Cut a program, whose rows are also given as arrays, into its blocks: each column and each row is in one place."""
    label = _labels(program, terms)
    blocks = tuple(Block() for _ in range(int(label.max(initial=-1)) + 1))
    owner, rest = {}, []
    for column, number in zip(program.columns, label.tolist(), strict=True):
        if number >= 0:
            owner[column.key] = number
            blocks[number].columns.append(column)
        else:
            rest.append(column)
    tying = []
    for row, number in zip(program.rows, _owners(terms, label).tolist(), strict=True):
        if number >= 0:
            blocks[number].rows.append(row)
        elif row.terms:
            tying.append(row)
    none = Shape(blocks, (), (), (), impossible=False, owner=owner)
    return _with_ties(none, rest, tying)


def grown(shape: Shape, columns: Sequence[Column], rows: Sequence[Row]) -> Shape | None:
    """The shape of the program with more columns and rows; None where they join or make blocks.

    Blocks without a new row are the very same objects.
    """
    if any(column.key[0] in _ALONE for column in columns) or any(_is_local(row) for row in rows):
        return None
    more: dict[int, list[Row]] = {}
    tying = []
    for row in rows:
        owners = {shape.owner.get(key, -1) for key in row.terms}
        if len(owners) == 1 and -1 not in owners:
            more.setdefault(owners.pop(), []).append(row)
        elif row.terms:
            tying.append(row)
    blocks = list(shape.blocks)
    for number, of_block in more.items():
        blocks[number] = Block(blocks[number].columns, [*blocks[number].rows, *of_block])
    return _with_ties(replace(shape, blocks=tuple(blocks)), columns, tying)


def _with_ties(shape: Shape, columns: Sequence[Column], tying: Sequence[Row]) -> Shape:
    """More columns of no block, and more rows that tie."""
    fixed = (*shape.fixed, *(column for column in columns if column.lower == column.upper))
    known = {column.key: column.lower for column in fixed}
    folded = [fold(row, known) for row in tying]
    return replace(
        shape,
        master=(*shape.master, *(column for column in columns if column.lower < column.upper)),
        tying=(*shape.tying, *(row for row in folded if row.terms)),
        fixed=fixed,
        impossible=shape.impossible or any(not row.terms and not row.holds({}) for row in folded),
    )


def _labels(program: IntegerProgram, terms: Terms) -> Ints:
    """The block of every column, numbered in order of their first columns; -1: of none."""
    n = len(program.columns)
    local = np.repeat(
        np.fromiter((_is_local(row) for row in program.rows), dtype=bool, count=len(program.rows)),
        terms.counts,
    )
    first = np.repeat(terms.columns[terms.starts[:-1][terms.counts > 0]], terms.counts[terms.counts > 0])
    pairs = first[local], terms.columns[local]
    _, component = connected_components(
        coo_array((np.ones(len(pairs[0])), pairs), shape=(n, n)), directed=False
    )
    of_block = np.fromiter(
        (column.key[0] in _ALONE and column.lower < column.upper for column in program.columns),
        dtype=bool,
        count=n,
    )
    of_block[pairs[1]] = True
    label = np.full(n, -1, dtype=np.int64)
    _, firsts, numbers = np.unique(component[of_block], return_index=True, return_inverse=True)
    label[of_block] = np.argsort(np.argsort(firsts))[numbers]
    return label


def _owners(terms: Terms, label: Ints) -> Ints:
    """The block of all columns of each row; -1 where they are not of one block, or there is none."""
    found = np.full(len(terms.counts), -1, dtype=np.int64)
    some = terms.counts > 0
    if some.any():
        labels, starts = label[terms.columns], terms.starts[:-1][some]
        least, most = np.minimum.reduceat(labels, starts), np.maximum.reduceat(labels, starts)
        found[some] = np.where(least == most, least, -1)
    return found


def _is_local(row: Row) -> bool:
    return row.key[0] in _LOCAL or (row.key[0] == "change" and len(row.key) > 1)
