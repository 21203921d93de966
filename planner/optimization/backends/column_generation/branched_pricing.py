"""Pricing of blocks of any rows by compiled branch and cut: roles and ratios, survival, headroom, routing by length.

What does not fit (too large for a dense dictionary, or sums beyond 64 bits) is left to the small program in HiGHS, and
so is every block of which the kernel knows no values: only HiGHS may say that there are none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.branched import (
    Flat,
    cheapest,
    compile_branching,
    flat,
    nothing_recalled,
    price_blocks,
)
from planner.optimization.backends.column_generation.branching import KNOWN
from planner.optimization.backends.column_generation.patterns import Batch
from planner.optimization.backends.column_generation.pricing import Priced, ProgramPricer
from planner.optimization.backends.column_generation.sparse import Terms
from planner.optimization.backends.column_generation.ties import Ties, Usage
from planner.optimization.program import Key

__all__ = ["BranchedPricer", "Branchings", "in_parts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WORK: Final = 20_000_000
"""Nodes of a block times the cells of its dictionary, at most."""

_LEAST_GAP: Final = 3e-5
"""Relative gap at which a block counts as solved; a smaller one is not worth its nodes."""

_CHUNKS: Final = 8
"""Parts of the blocks by worker, so that none waits long for the other."""


T = TypeVar("T")


def in_parts(blocks: int, work: Callable[[Ints], T]) -> list[T]:
    """What comes of work on some blocks at a time, as much at once as there are cores; kernels let go of the interpreter."""
    workers = min(os.cpu_count() or 1, blocks)
    count = workers * _CHUNKS
    parts = [np.arange(first, blocks, count) for first in range(min(blocks, count))]
    if workers <= 1:
        return list(map(work, parts))
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, parts))


@dataclass(frozen=True)
class Branchings:
    """Blocks for the kernel, whatever the goal.

    Attributes:
        blocks: the number of each among all blocks, and the block.
        position: number of each column of the program.
    """

    blocks: Sequence[tuple[int, Block]]
    position: Mapping[Key, int]

    def are(self, blocks: Sequence[tuple[int, Block]]) -> bool:
        """Whether these are the very same blocks."""
        return len(blocks) == len(self.blocks) and all(
            mine[0] == its[0] and mine[1] is its[1] for mine, its in zip(self.blocks, blocks, strict=True)
        )

    @cached_property
    def flat(self) -> Flat:
        """As the kernel reads them."""
        return flat([block for _, block in self.blocks])

    @cached_property
    def numbers(self) -> Ints:
        """Number of each among all blocks."""
        return np.array([number for number, _ in self.blocks], dtype=np.int64)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Columns, block by block."""
        return tuple(column.key for _, block in self.blocks for column in block.columns)

    @cached_property
    def owner(self) -> Ints:
        """The block of each column."""
        return np.repeat(np.arange(len(self.blocks)), np.diff(self.flat.columns))

    @cached_property
    def steps(self) -> Terms:
        """One step of each column."""
        at = np.fromiter(map(self.position.__getitem__, self.keys), dtype=np.int64, count=len(self.keys))
        return Terms(np.arange(len(at) + 1), at, np.ones(len(at)))

    def use(self, ties: Ties) -> csr_array:
        """What one step of each column uses of the tying rows."""
        return ties.used_by(self.steps)


class BranchedPricer:
    """All blocks for the kernel under one goal."""

    def __init__(self, branchings: Branchings, use: csr_array, usage: Usage) -> None:
        self._all = branchings
        self._usage = usage
        self._use = use
        self._cost = usage.cost_of(branchings.steps)
        self._recalled = nothing_recalled(branchings.flat)
        if branchings.blocks:
            compile_branching()

    @property
    def rows(self) -> int:
        """Tying rows that have a price."""
        return self._usage.rows

    def weights(self, prices: Floats) -> dict[Key, float]:
        """What one step of each column costs at these prices."""
        return dict(zip(self._all.keys, (self._cost - self._use @ prices).tolist(), strict=True))

    def price(self, prices: Floats, *, gap: float) -> Priced:
        """The answer for all blocks together."""
        n = len(self._all.blocks)
        if not n:
            return Priced(0.0, False, None)
        cost = self._cost - self._use @ prices
        self._run(cost, (max(gap, _LEAST_GAP), _WORK))
        bounds = self._recalled.bounds.copy()
        unknown = ~np.isfinite(bounds) | (self._recalled.counts[:, 1] == 0)
        for s in np.flatnonzero(unknown).tolist():
            exactly = ProgramPricer(*self._all.blocks[s], self._usage).price(prices, gap=gap)
            if exactly.impossible:
                return Priced(np.inf, True, None)
            bounds[s] = exactly.bound
            self._learn(s, exactly)
        return Priced(float(bounds.sum()), False, self._batch(cost), each=bounds)

    def _run(self, cost: Floats, limits: tuple[float, int]) -> None:
        """Price all blocks."""

        def work(part: Ints) -> None:
            price_blocks(part, self._all.flat, self._recalled, cost, limits)

        in_parts(len(self._all.blocks), work)

    def _learn(self, s: int, exactly: Priced) -> None:
        """Keep the values that HiGHS found."""
        if exactly.batch is None:
            return
        values = exactly.batch.decode(0)
        columns = self._all.blocks[s][1].columns
        start = int(self._all.flat.columns[s]) * KNOWN
        self._recalled.known[start : start + len(columns)] = [values[column.key] for column in columns]
        self._recalled.counts[s, 1] = max(1, int(self._recalled.counts[s, 1]))

    def _batch(self, cost: Floats) -> Batch | None:
        """The cheapest known values of every block, as patterns."""
        chosen, at = cheapest(self._all.flat.columns, self._recalled, cost)
        have = np.flatnonzero(at >= 0)
        if not len(have):
            return None
        taken = np.flatnonzero(chosen)
        by_block = csr_array(
            (chosen[taken].astype(np.float64), (self._all.owner[taken], taken)),
            shape=(len(at), len(chosen)),
        )
        return Batch(
            self._all.numbers[have],
            np.asarray(by_block @ self._cost)[have],
            np.asarray((by_block @ self._use).toarray())[have],
            lambda i: self._decode(int(have[i]), chosen),
        )

    def _decode(self, s: int, chosen: Ints) -> dict[Key, int]:
        first, last = int(self._all.flat.columns[s]), int(self._all.flat.columns[s + 1])
        return dict(zip(self._all.keys[first:last], chosen[first:last].tolist(), strict=True))
