"""The tying rows of a shape as scaled arrays, and what columns use of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from planner.optimization.backends.column_generation.blocks import Shape
from planner.optimization.backends.column_generation.sparse import Terms, stacked, terms_of
from planner.optimization.program import Key

__all__ = ["Ties", "Usage", "more_ties", "ties_of"]

Floats = NDArray[np.float64]

_SCALE: Final = 1e3
"""Rows with larger coefficients are scaled down to it: prices and penalties keep to one size."""


@dataclass(frozen=True)
class Ties:
    """Tying rows as arrays.

    Attributes:
        position: number of each column that is a decision.
        terms: the rows, not scaled.
        lower: sides, not scaled; -inf where there is none.
        upper: sides, not scaled; inf where there is none.
    """

    position: Mapping[Key, int]
    terms: Terms
    lower: Floats
    upper: Floats

    @cached_property
    def scales(self) -> Floats:
        """By what each row is divided."""
        if not len(self.lower):
            return np.empty(0)
        return np.maximum(
            1.0, np.maximum.reduceat(np.abs(self.terms.values), self.terms.starts[:-1]) / _SCALE
        )

    @cached_property
    def scaled(self) -> Floats:
        """Coefficient of each term, divided by the scale of its row."""
        return self.terms.values / self.scales[self.terms.sums]

    @cached_property
    def untied(self) -> NDArray[np.bool_]:
        """Whether a column is in no row."""
        found = np.ones(len(self.position), dtype=bool)
        found[self.terms.columns] = False
        return found

    @cached_property
    def use(self) -> dict[Key, tuple[tuple[int, float], ...]]:
        """(row, scaled coefficient) pairs by column."""
        keys = list(self.position)
        found: dict[Key, list[tuple[int, float]]] = {}
        triples = zip(
            self.terms.columns.tolist(), self.terms.sums.tolist(), self.scaled.tolist(), strict=True
        )
        for column, row, value in triples:
            found.setdefault(keys[column], []).append((row, value))
        return {key: tuple(pairs) for key, pairs in found.items()}

    def used_by(self, sums: Terms) -> csr_array:
        """What some sums of columns use: sums x tying rows."""
        shape = len(sums.starts) - 1, len(self.position)
        steps = csr_array((sums.values, sums.columns, sums.starts), shape=shape)
        rows = csr_array(
            (self.scaled, self.terms.columns, self.terms.starts), shape=(len(self.lower), len(self.position))
        )
        return csr_array(steps @ rows.T)

    def worth_of(self, cost: Floats) -> Floats:
        """By row, the dearest column per unit that it uses of the row; ``cost`` is by column."""
        if not len(self.lower):
            return np.empty(0)
        ratios = np.abs(cost[self.terms.columns] / self.scaled)
        return np.asarray(np.maximum.reduceat(ratios, self.terms.starts[:-1]))


def ties_of(shape: Shape, before: tuple[Shape, Ties] | None = None) -> Ties:
    """The tying rows of a shape as arrays; those of the shape before where neither rows nor columns are others."""
    if before is not None and before[0].tying == shape.tying:
        keys = [column.key for block in shape.blocks for column in block.columns]
        if [*keys, *(column.key for column in shape.master)] == list(before[1].position):
            return before[1]
    none = Ties(
        {},
        Terms(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)),
        np.empty(0),
        np.empty(0),
    )
    return more_ties(none, shape)


def more_ties(ties: Ties, shape: Shape) -> Ties:
    """The arrays of a shape that has grown from the one of ``ties``."""
    position = ties.position
    if not position:
        keys = (column.key for block in shape.blocks for column in block.columns)
        position = {key: number for number, key in enumerate(keys)}
    new = [column.key for column in shape.master if column.key not in position]
    if new:
        position = {**position, **{key: len(position) + more for more, key in enumerate(new)}}
    rows = shape.tying[len(ties.lower) :]
    return Ties(
        position,
        stacked(ties.terms, terms_of([row.terms for row in rows], position)),
        np.append(ties.lower, [-inf if row.lower is None else float(row.lower) for row in rows]),
        np.append(ties.upper, [inf if row.upper is None else float(row.upper) for row in rows]),
    )


@dataclass(frozen=True)
class Usage:
    """What one unit of each column costs in a goal, and uses of the tying rows (scaled)."""

    ties: Ties
    cost: Mapping[Key, float]

    @property
    def rows(self) -> int:
        """Tying rows."""
        return len(self.ties.lower)

    @property
    def use(self) -> Mapping[Key, tuple[tuple[int, float], ...]]:
        """(row, coefficient) pairs by column."""
        return self.ties.use

    @cached_property
    def by_column(self) -> Floats:
        """Cost by position of the column."""
        position = self.ties.position
        numbers = np.fromiter(map(position.get, self.cost, repeat(-1)), dtype=np.int64, count=len(self.cost))
        costs = np.fromiter(self.cost.values(), dtype=np.float64, count=len(self.cost))
        found = np.zeros(len(position))
        found[numbers[numbers >= 0]] = costs[numbers >= 0]
        return found

    def cost_of(self, sums: Terms) -> Floats:
        """Cost of some sums of columns."""
        weights = self.by_column[sums.columns] * sums.values
        total = np.bincount(sums.sums, weights=weights, minlength=len(sums.starts) - 1)
        return total.astype(np.float64)  # of no terms it is whole

    def of_each(self, values: Sequence[Mapping[Key, int]]) -> tuple[Floats, Floats]:
        """Cost and use of many values of columns at once: by values, and values x tying rows."""
        sums = terms_of(
            [{key: value for key, value in one.items() if value} for one in values], self.ties.position
        )
        return self.cost_of(sums), np.asarray(self.ties.used_by(sums).toarray())

    def of(self, values: Mapping[Key, int]) -> tuple[float, Floats]:
        """Cost and use of some values."""
        total = 0.0
        used = np.zeros(self.rows)
        use = self.use
        for key, value in values.items():
            if value:
                total += self.cost.get(key, 0.0) * value
                for row, coefficient in use.get(key, ()):
                    used[row] += coefficient * value
        return total, used
