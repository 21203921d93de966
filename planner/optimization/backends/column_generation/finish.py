"""From weights of patterns to one pattern per block: the integer master.

A block may also stand there whole, with its own columns and rows, in the place of patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, hstack

from planner.optimization.backends.column_generation.blocks import Block, Shape
from planner.optimization.backends.column_generation.master import Master, MasterColumn
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.highs import Listener, has_point, quiet_highs, says_none, scaled
from planner.optimization.program import Key

__all__ = ["NOBODY", "NO_CHOICE", "Choice", "Ending", "Start", "Whole", "choose"]

Floats = NDArray[np.float64]

_WEIGHT: Final = 1e4
"""Tolerances of HiGHS are absolute: costs are brought to a size that suits them."""

NOBODY: Final = Listener()
"""Choices that nobody hears of before they are made."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One pattern per block and values of the master columns; nothing where no choice was found.

    Attributes:
        value: goal of the choice; inf where there is none.
        patterns: one of each block that has some.
        columns: values of the master columns.
        bound: no choice is cheaper.
        whole: values of the columns of blocks that stand whole.
    """

    value: float
    patterns: tuple[Pattern, ...]
    columns: tuple[int, ...]
    bound: float
    whole: Mapping[Key, int]

    @property
    def found(self) -> bool:
        """Whether there is one."""
        return self.value < inf

    def values(self, shape: Shape) -> dict[Key, int]:
        """Values of all columns of the program that was cut into this shape."""
        values = {column.key: column.lower for column in shape.fixed} | dict(self.whole)
        for pattern in self.patterns:
            values |= pattern.decode()
        for column, amount in zip(shape.master, self.columns, strict=True):
            values[column.key] = amount
        return values


NO_CHOICE: Final = Choice(inf, (), (), -inf, {})


class Whole(NamedTuple):
    """Blocks that stand whole, and what their columns cost and use."""

    blocks: Sequence[Block]
    usage: Usage


class Start(NamedTuple):
    """A choice to begin with: one pattern of each block, and values of the columns of the master."""

    patterns: Sequence[Pattern]
    columns: Sequence[int]


class Ending(NamedTuple):
    """When a choice is good enough, or late enough.

    Attributes:
        seconds: wall time.
        gap: relative gap at which to stop.
        target: a choice that costs no more is good enough.
    """

    seconds: float
    gap: float
    target: float = -inf


def choose(
    master: Master,
    patterns: Sequence[Pattern],
    *,
    ending: Ending,
    whole: Whole | None = None,
    start: Start | None = None,
    listener: Listener = NOBODY,
) -> Choice:
    """The best choice among these patterns that HiGHS finds in time.

    Args:
        master: rows that tie blocks, and columns of no block.
        patterns: of all blocks but those that stand whole.
        ending: when to stop.
        whole: blocks that stand whole.
        start: a choice to begin with, where no block stands whole.
        listener: hears of the goal of every better choice.
    """
    if start is not None:
        patterns = [*patterns, *start.patterns]
    listed = sorted({pattern.block for pattern in patterns})
    blocks = whole.blocks if whole is not None else ()
    if len(listed) + len(blocks) < master.blocks:
        return NO_CHOICE
    model = _Model(master, listed)
    model.add_master(master.columns)
    model.add_patterns(patterns)
    keys = [column.key for block in blocks for column in block.columns]
    if whole is not None:
        for block in whole.blocks:
            model.add_block(block, whole.usage)
    if start is not None and whole is None:
        model.begin_with(start)
    value, bound, x = model.solve(ending, listener)
    if x is None:
        return Choice(inf, (), (), bound, {})
    first, last = len(master.columns), len(master.columns) + len(patterns)
    return Choice(
        value,
        tuple(patterns[int(i)] for i in np.flatnonzero(x[first:last] > 0.5)),  # noqa: PLR2004 - one or none
        tuple(round(amount) for amount in x[:first]),
        bound,
        {key: round(amount) for key, amount in zip(keys, x[last:], strict=True)},
    )


class _Model:
    """Columns and rows as they come together; handed to HiGHS at the end."""

    def __init__(self, master: Master, listed: Sequence[int]) -> None:
        self._ties = len(master.rows)
        self._lower = [row.lower for row in master.rows] + [1.0] * len(listed)
        self._upper = [row.upper for row in master.rows] + [1.0] * len(listed)
        self._convexity = {block: self._ties + place for place, block in enumerate(listed)}
        self._parts: list[coo_array] = []
        self._cost: list[float] = []
        self._ends: list[tuple[float, float]] = []
        self._start: Floats | None = None

    def add_master(self, columns: Sequence[MasterColumn]) -> None:
        """Columns of no block."""
        triples = [(row, number, value) for number, column in enumerate(columns) for row, value in column.use]
        self._add(triples, [c.cost for c in columns], [(float(c.lower), float(c.upper)) for c in columns])

    def add_patterns(self, patterns: Sequence[Pattern]) -> None:
        """A column each, to be taken or not; one of each block."""
        use = np.array([pattern.use for pattern in patterns]).reshape(len(patterns), self._ties)
        at, row = np.nonzero(use)
        triples = list(zip(row.tolist(), at.tolist(), use[at, row].tolist(), strict=True))
        triples += [(self._convexity[pattern.block], at, 1.0) for at, pattern in enumerate(patterns)]
        self._add(triples, [pattern.cost for pattern in patterns], [(0.0, 1.0)] * len(patterns))

    def add_block(self, block: Block, usage: Usage) -> None:
        """A block as it is."""
        position = {column.key: number for number, column in enumerate(block.columns)}
        triples = [
            (row, number, value) for key, number in position.items() for row, value in usage.use.get(key, ())
        ]
        for row in block.rows:
            lower, upper, values = scaled(row)
            at = len(self._lower)
            triples += [(at, position[key], value) for key, value in zip(row.terms, values, strict=True)]
            self._lower.append(lower)
            self._upper.append(upper)
        self._add(
            triples,
            [usage.cost.get(column.key, 0.0) for column in block.columns],
            [(float(column.lower), float(column.upper)) for column in block.columns],
        )

    def begin_with(self, start: Start) -> None:
        """A choice that is known; its patterns were added last."""
        self._start = np.zeros(len(self._cost))
        self._start[: len(start.columns)] = start.columns
        self._start[len(self._cost) - len(start.patterns) :] = 1.0

    def _add(
        self,
        triples: Sequence[tuple[int, int, float]],
        cost: Sequence[float],
        ends: Sequence[tuple[float, float]],
    ) -> None:
        rows, columns, values = zip(*triples, strict=True) if triples else ((), (), ())
        shape = (max(rows, default=-1) + 1, len(cost))
        self._parts.append(coo_array((np.array(values, dtype=np.float64), (rows, columns)), shape=shape))
        self._cost += cost
        self._ends += ends

    def solve(self, ending: Ending, listener: Listener) -> tuple[float, float, Floats | None]:
        """Value, bound, and the columns where there is a choice."""
        cost = np.array(self._cost)
        unit = float(np.abs(cost).max(initial=0.0)) / _WEIGHT or 1.0
        highs = self._handed_over(cost / unit)
        highs.setOptionValue("mip_rel_gap", ending.gap)
        if ending.target > -inf:
            highs.setOptionValue("objective_target", ending.target / unit)
        replace(listener, unit=unit).listen_to(highs)
        if says_none(highs, ending.seconds):
            return inf, inf, None
        info = highs.getInfo()
        bound = float(info.mip_dual_bound) * unit
        if not has_point(highs):
            return inf, bound, None
        x = np.round(np.array(highs.getSolution().col_value))
        # HiGHS 1.16 was seen to tell a value 1 % below that of its point where it begins with a point that is given.
        value = float(cost @ x)
        return value, min(bound, value), x

    def _handed_over(self, cost: Floats) -> highspy.Highs:
        highs, empty = quiet_highs(), np.array([], dtype=np.int32)
        for lower, upper in zip(self._lower, self._upper, strict=True):
            highs.addRow(lower, upper, 0, empty, np.array([]))
        tall = [_as_tall(part, len(self._lower)) for part in self._parts]
        matrix = csc_array(hstack(tall, format="csc"))
        n = len(cost)
        ends = np.array(self._ends).reshape(-1, 2)
        highs.addCols(
            n,
            cost,
            np.ascontiguousarray(ends[:, 0]),
            np.ascontiguousarray(ends[:, 1]),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )
        highs.changeColsIntegrality(
            n, np.arange(n, dtype=np.int32), np.full(n, highspy.HighsVarType.kInteger)
        )
        if self._start is not None:
            known = highspy.HighsSolution()
            known.col_value = self._start.tolist()
            highs.setSolution(known)
        return highs


def _as_tall(part: coo_array, rows: int) -> coo_array:
    row, column = part.coords
    return coo_array((part.data, (row, column)), shape=(rows, part.shape[1]))
