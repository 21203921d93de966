"""Rows as arrays: what is asked of a whole fleet at once is asked of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import inf
from operator import ne
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.optimization.program import IntegerProgram, Key, Row

__all__ = ["Rows", "Terms", "more_rows", "rows_like", "rows_of", "stacked", "terms_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N = TypeVar("N", np.float64, np.int64)

_EXACT: Final = 2.0**53
"""Whole numbers up to here are floats, and so are their sums."""


class Terms(NamedTuple):
    """Terms of some sums, one sum after the other (compressed sparse rows).

    Attributes:
        starts: terms of sum i are ``starts[i]:starts[i + 1]``.
        columns: position of the column of each term.
        values: its coefficient.
    """

    starts: Ints
    columns: Ints
    values: Floats

    @property
    def counts(self) -> Ints:
        """Terms of each sum."""
        return np.diff(self.starts)

    @property
    def sums(self) -> Ints:
        """The sum that each term is of."""
        return np.repeat(np.arange(len(self.starts) - 1), self.counts)


def terms_of(sums: Sequence[Mapping[Key, int]], position: Mapping[Key, int]) -> Terms:
    """Some sums as arrays, columns numbered by ``position``."""
    counts = np.fromiter(map(len, sums), dtype=np.int64, count=len(sums))
    n = int(counts.sum())
    keys = chain.from_iterable(sums)
    values = chain.from_iterable(terms.values() for terms in sums)
    return Terms(
        np.concatenate(([0], np.cumsum(counts))),
        np.fromiter(map(position.__getitem__, keys), dtype=np.int64, count=n),
        np.fromiter(values, dtype=np.float64, count=n),
    )


def stacked(above: Terms, below: Terms) -> Terms:
    """The sums of both, one after the other."""
    return Terms(
        np.concatenate((above.starts, below.starts[1:] + above.starts[-1])),
        np.concatenate((above.columns, below.columns)),
        np.concatenate((above.values, below.values)),
    )


class Rows(NamedTuple):
    """All rows of a program as arrays, open sides infinite."""

    terms: Terms
    lower: Floats
    upper: Floats

    def hold(self, values: Sequence[int]) -> bool | None:
        """Whether whole values of the columns keep every row; None where floats cannot tell."""
        x = np.array(values, dtype=np.float64)
        parts = self.terms.values * x[self.terms.columns]
        sums, rows = self.terms.sums, len(self.lower)
        size = np.bincount(sums, weights=np.abs(parts), minlength=rows)
        sides = np.concatenate((self.lower, self.upper))
        if max(size.max(initial=0.0), np.abs(sides[np.isfinite(sides)]).max(initial=0.0)) >= _EXACT:
            return None
        activity = np.bincount(sums, weights=parts, minlength=rows)
        return bool(np.all((activity >= self.lower) & (activity <= self.upper)))


def rows_of(program: IntegerProgram) -> Rows:
    """The rows of a program; columns are numbered in the order of the program."""
    none = Terms(np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0))
    return more_rows(Rows(none, np.empty(0), np.empty(0)), program)


def more_rows(known: Rows, program: IntegerProgram) -> Rows:
    """The rows of a program of which the first ones are known."""
    new: Sequence[Row] = program.rows[len(known.lower) :]
    more = _arrays(new, program.position)
    return Rows(
        stacked(known.terms, more.terms),
        np.concatenate((known.lower, more.lower)),
        np.concatenate((known.upper, more.upper)),
    )


def rows_like(known: Rows, old: IntegerProgram, program: IntegerProgram) -> Rows | None:
    """The rows of a program much like an old one, whose rows are known; None where it has other columns, rows or terms."""
    if len(program.rows) != len(old.rows) or list(program.position) != list(old.position):
        return None
    changed = np.fromiter(map(ne, program.rows, old.rows), dtype=bool, count=len(old.rows))
    new = _arrays([program.rows[i] for i in np.flatnonzero(changed).tolist()], program.position)
    if not np.array_equal(new.terms.counts, known.terms.counts[changed]):
        return None
    at = np.repeat(changed, known.terms.counts)
    return Rows(
        Terms(
            known.terms.starts,
            _replaced(known.terms.columns, at, new.terms.columns),
            _replaced(known.terms.values, at, new.terms.values),
        ),
        _replaced(known.lower, changed, new.lower),
        _replaced(known.upper, changed, new.upper),
    )


def _arrays(rows: Sequence[Row], position: Mapping[Key, int]) -> Rows:
    lower = np.fromiter((-inf if row.lower is None else row.lower for row in rows), np.float64, len(rows))
    upper = np.fromiter((inf if row.upper is None else row.upper for row in rows), np.float64, len(rows))
    return Rows(terms_of([row.terms for row in rows], position), lower, upper)


def _replaced(values: NDArray[N], at: NDArray[np.bool_], new: NDArray[N]) -> NDArray[N]:
    found = values.copy()
    found[at] = new
    return found
