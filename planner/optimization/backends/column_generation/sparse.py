"""Rows as arrays: what is asked of a whole fleet at once is asked of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.optimization.program import Key

__all__ = ["Terms", "stacked", "terms_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


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
