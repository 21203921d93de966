"""All covering blocks of a program at once: flat arrays for the kernel, made once whatever the goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from planner.optimization.backends.column_generation.covering import KEPT, Answers, Blocks, Weights, price
from planner.optimization.backends.column_generation.items import CoveringBlock
from planner.optimization.backends.column_generation.patterns import Batch
from planner.optimization.backends.column_generation.pricing import Priced
from planner.optimization.backends.column_generation.sparse import Terms, terms_of
from planner.optimization.backends.column_generation.ties import Ties, Usage
from planner.optimization.program import Key

__all__ = ["CoveringPricer", "CoveringUse", "Coverings"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NODES: Final = 2_000
"""Nodes of the search in one block: ten times as many cost a fleet ten times the time, and no gap was smaller for it."""


@dataclass(frozen=True)
class Coverings:
    """Covering blocks as arrays.

    Attributes:
        blocks: the number of each among all blocks, and its form.
        position: number of each column.
    """

    blocks: Sequence[tuple[int, CoveringBlock]]
    position: Mapping[Key, int]

    @cached_property
    def starts(self) -> Ints:
        """Items of block s are ``starts[s]:starts[s + 1]``."""
        return np.cumsum([0, *(len(block.items) for _, block in self.blocks)], dtype=np.int64)

    @cached_property
    def numbers(self) -> Ints:
        """Number of each among all blocks."""
        return np.array([number for number, _ in self.blocks], dtype=np.int64)

    @cached_property
    def owner(self) -> Ints:
        """The block of each item."""
        return np.repeat(np.arange(len(self.blocks)), np.diff(self.starts))

    @cached_property
    def arrays(self) -> Blocks:
        """As the kernel reads them."""
        items = [item for _, block in self.blocks for item in block.items]
        rows = np.cumsum([0, *(len(block.rows) for _, block in self.blocks)], dtype=np.int64)
        widest = max((len(block.rows) for _, block in self.blocks), default=0)
        coverage = np.zeros((max(widest, 1), len(items)))
        for start, (_, block) in zip(self.starts.tolist(), self.blocks, strict=False):
            for row, (amounts, _) in enumerate(block.rows):
                coverage[row, start + np.fromiter(amounts, dtype=np.int64)] = list(amounts.values())
        return Blocks(
            self.starts,
            rows,
            coverage,
            np.array([item.most for item in items], dtype=np.int64),
            np.array([owed for _, block in self.blocks for _, owed in block.rows], dtype=np.float64),
            np.array([steps for _, block in self.blocks for steps in block.filler_rows], dtype=np.float64),
            np.array([float(b.filler.most) if b.filler else 0.0 for _, b in self.blocks], dtype=np.float64),
        )

    @cached_property
    def steps(self) -> Terms:
        """Columns that one of each item changes."""
        return terms_of([item.step for _, block in self.blocks for item in block.items], self.position)

    @cached_property
    def fillers(self) -> Terms:
        """Columns that a filler step of each block changes."""
        steps = [block.filler.step if block.filler else {} for _, block in self.blocks]
        return terms_of(steps, self.position)

    @cached_property
    def bases(self) -> Terms:
        """Columns of each block when no item is taken."""
        values = [{key: value for key, value in block.base.items() if value} for _, block in self.blocks]
        return terms_of(values, self.position)

    def with_fillers(self, most: Floats) -> Coverings:
        """The same with other numbers of filler steps."""
        other = replace(self)
        kept = {name: value for name, value in self.__dict__.items() if name not in {"blocks", "position"}}
        other.__dict__.update(kept | {"arrays": self.arrays._replace(uf=most)})
        return other

    def use(self, ties: Ties) -> CoveringUse:
        """What they use of the tying rows."""
        return CoveringUse(
            ties.used_by(self.steps),
            ties.used_by(self.fillers),
            np.asarray(ties.used_by(self.bases).toarray()),
        )


class CoveringUse(NamedTuple):
    """What covering blocks use of the tying rows.

    Attributes:
        items: by one of each item, items x tying rows.
        fillers: by a filler step of each block, blocks x tying rows.
        bases: by each block in any case, blocks x tying rows.
    """

    items: csr_array
    fillers: csr_array
    bases: Floats


class CoveringPricer:
    """All covering blocks of a program under one goal."""

    def __init__(self, coverings: Coverings, use: CoveringUse, usage: Usage) -> None:
        self._all = coverings
        self._use = use
        self._cost = usage.cost_of(coverings.steps)
        self._filler_cost = usage.cost_of(coverings.fillers)
        self._base_cost = usage.cost_of(coverings.bases)

    def price(self, prices: Floats, *, gap: float) -> Priced:
        """The answer for all covering blocks together."""
        every = self._all
        n = len(every.blocks)
        if not n:
            return Priced(0.0, False, None)
        weights = self._cost - self._use.items @ prices
        filler = self._filler_cost - self._use.fillers @ prices
        answers = Answers(
            best=np.zeros((KEPT, len(weights)), dtype=np.int64),
            fillers=np.zeros((KEPT, n)),
            values=np.full((KEPT, n), np.inf),
            bounds=np.zeros(n),
        )
        price(every.arrays, Weights(weights, filler), (gap, _NODES), answers)
        if np.isinf(answers.bounds).any():
            return Priced(np.inf, True, None)
        fixed = self._base_cost - self._use.bases @ prices
        return Priced(float(answers.bounds.sum() + fixed.sum()), False, self._batch(answers))

    def _batch(self, answers: Answers) -> Batch:
        """All coverings that the kernel found, as patterns."""
        best, fillers, values, _ = answers
        slots, numbers = np.nonzero(np.isfinite(values))
        cost, use = zip(*(self._totals(best[slot], fillers[slot]) for slot in range(KEPT)), strict=True)
        return Batch(
            self._all.numbers[numbers],
            np.array(cost)[slots, numbers],
            np.array(use)[slots, numbers],
            lambda i: self._decode(int(numbers[i]), best[slots[i]], int(fillers[slots[i], numbers[i]])),
        )

    def _totals(self, counts: Ints, fillers: Floats) -> tuple[Floats, Floats]:
        """Cost and use of every block when so many of its items and filler steps are taken."""
        every = self._all
        n = len(every.blocks)
        taken = np.flatnonzero(counts)
        cost = np.bincount(every.owner[taken], weights=self._cost[taken] * counts[taken], minlength=n)
        by_block = csr_array(
            (counts[taken].astype(np.float64), (every.owner[taken], taken)), shape=(n, len(counts))
        )
        use = (by_block @ self._use.items).toarray() + self._use.fillers.multiply(fillers[:, None]).toarray()
        return self._base_cost + self._filler_cost * fillers + cost, self._use.bases + use

    def _decode(self, number: int, taken: Ints, fillers: int) -> dict[Key, int]:
        counts = taken[self._all.starts[number] : self._all.starts[number + 1]]
        positions = np.flatnonzero(counts)
        return self._all.blocks[number][1].values(((int(p), int(counts[p])) for p in positions), fillers)
