"""Pricing: the cheapest way to run each block at given prices of the tying rows, with a valid bound.

Blocks that are covering problems go through the compiled kernel, all at once. Every other block is a small
integer program of its own that HiGHS answers; its dual bound is valid too, so nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.covering import KEPT, Answers, Blocks, Weights, price
from planner.optimization.backends.column_generation.items import CoveringBlock
from planner.optimization.backends.column_generation.patterns import Batch, Usage
from planner.optimization.backends.column_generation.small import SmallProgram
from planner.optimization.program import Key

__all__ = ["CoveringPricer", "Priced", "ProgramPricer"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NODES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Priced:
    """An answer to prices.

    Attributes:
        bound: the blocks together cost no less.
        impossible: a block has no pattern at all.
        batch: cheap patterns.
    """

    bound: float
    impossible: bool
    batch: Batch | None


class CoveringPricer:
    """All covering blocks of a program as flat arrays for the kernel."""

    def __init__(self, blocks: Sequence[tuple[int, CoveringBlock]], usage: Usage) -> None:
        self._blocks = tuple(blocks)
        self._usage = usage
        items = [item for _, block in blocks for item in block.items]
        self._starts = np.cumsum([0, *(len(block.items) for _, block in blocks)], dtype=np.int64)
        self._row_starts = np.cumsum([0, *(len(block.rows) for _, block in blocks)], dtype=np.int64)
        self._numbers = np.array([number for number, _ in blocks], dtype=np.int64)
        self._owner = np.repeat(np.arange(len(blocks)), np.diff(self._starts))
        self._read_coverage()
        self._cost, self._rows, self._items, self._use = _linear([item.step for item in items], usage)
        fillers = [block.filler.step if block.filler else {} for _, block in blocks]
        self._filler_cost, *self._filler_use = _linear(fillers, usage)
        self._arrays = Blocks(
            self._starts,
            self._row_starts,
            self._coverage,
            np.array([item.most for item in items], dtype=np.int64),
            self._owed,
            self._filler_rows,
            np.array([float(b.filler.most) if b.filler else 0.0 for _, b in blocks], dtype=np.float64),
        )
        bases = [usage.of(block.base) for _, block in blocks]
        self._base_cost = np.array([cost for cost, _ in bases])
        self._base_use = np.array([use for _, use in bases]).reshape(len(bases), usage.rows)

    def _read_coverage(self) -> None:
        widest = max((len(block.rows) for _, block in self._blocks), default=0)
        self._coverage = np.zeros((max(widest, 1), int(self._starts[-1])))
        self._owed = np.zeros(int(self._row_starts[-1]))
        self._filler_rows = np.zeros(int(self._row_starts[-1]))
        for number, (_, block) in enumerate(self._blocks):
            for row, (coverage, owed) in enumerate(block.rows):
                for position, amount in coverage.items():
                    self._coverage[row, self._starts[number] + position] = amount
                self._owed[self._row_starts[number] + row] = owed
                self._filler_rows[self._row_starts[number] + row] = block.filler_rows[row]

    def price(self, prices: Floats, *, gap: float) -> Priced:
        """The answer for all covering blocks together."""
        n = len(self._blocks)
        if not n:
            return Priced(0.0, False, None)
        weights = self._cost - np.bincount(
            self._items, weights=self._use * prices[self._rows], minlength=len(self._cost)
        )
        rows, owners, use = self._filler_use
        filler = self._filler_cost - np.bincount(owners, weights=use * prices[rows], minlength=n)
        answers = Answers(
            best=np.zeros((KEPT, len(weights)), dtype=np.int64),
            fillers=np.zeros((KEPT, n)),
            values=np.full((KEPT, n), np.inf),
            bounds=np.zeros(n),
        )
        price(self._arrays, Weights(weights, filler), (gap, _NODES), answers)
        if np.isinf(answers.bounds).any():
            return Priced(np.inf, True, None)
        fixed = self._base_cost - self._base_use @ prices
        return Priced(float(answers.bounds.sum() + fixed.sum()), False, self._batch(answers))

    def _batch(self, answers: Answers) -> Batch:
        """All coverings that the kernel found, as patterns."""
        best, fillers, values, _ = answers
        n, rows = len(self._blocks), self._usage.rows
        slots, numbers = np.nonzero(np.isfinite(values))
        cost = np.empty((KEPT, n))
        use = np.empty((KEPT, n, rows))
        filler_rows, filler_owners, filler_use = self._filler_use
        for slot in range(KEPT):
            counts = best[slot]
            cost[slot] = self._base_cost + self._filler_cost * fillers[slot]
            cost[slot] += np.bincount(self._owner, weights=self._cost * counts, minlength=n)
            cells = np.bincount(
                self._owner[self._items] * rows + self._rows,
                weights=self._use * counts[self._items],
                minlength=n * rows,
            ) + np.bincount(
                filler_owners * rows + filler_rows,
                weights=filler_use * fillers[slot][filler_owners],
                minlength=n * rows,
            )
            use[slot] = self._base_use + cells.reshape(n, rows)
        return Batch(
            self._numbers[numbers],
            cost[slots, numbers],
            use[slots, numbers],
            lambda i: self._decode(int(numbers[i]), best[slots[i]], int(fillers[slots[i], numbers[i]])),
        )

    def _decode(self, number: int, taken: Ints, fillers: int) -> dict[Key, int]:
        counts = taken[self._starts[number] : self._starts[number + 1]]
        positions = np.flatnonzero(counts)
        return self._blocks[number][1].values(((int(p), int(counts[p])) for p in positions), fillers)


def _linear(steps: Sequence[Mapping[Key, int]], usage: Usage) -> tuple[Floats, Ints, Ints, Floats]:
    """Cost of every step, and (row, step, coefficient) triples of what it uses."""
    cost = np.zeros(len(steps))
    rows, owners, use = [], [], []
    for number, step in enumerate(steps):
        for key, amount in step.items():
            cost[number] += usage.cost.get(key, 0.0) * amount
            for row, coefficient in usage.use.get(key, ()):
                rows.append(row)
                owners.append(number)
                use.append(coefficient * amount)
    return (
        cost,
        np.array(rows, dtype=np.int64),
        np.array(owners, dtype=np.int64),
        np.array(use, dtype=np.float64),
    )


class ProgramPricer:
    """A block that is no covering problem: a small integer program, kept in HiGHS and asked again and again."""

    def __init__(self, number: int, block: Block, usage: Usage) -> None:
        self._number = number
        self._usage = usage
        self._program = SmallProgram(block.columns, block.rows)

    def price(self, prices: Floats, *, gap: float) -> Priced:
        """The cheapest pattern and the bound of HiGHS."""
        weights = {
            key: self._usage.cost.get(key, 0.0)
            - sum(prices[row] * coefficient for row, coefficient in self._usage.use.get(key, ()))
            for key in self._program.keys
        }
        answer = self._program.minimize(weights, gap=gap)
        if answer.infeasible or answer.values is None:
            return Priced(answer.bound, answer.infeasible, None)
        values = answer.values
        cost, use = self._usage.of(values)
        batch = Batch(np.array([self._number]), np.array([cost]), use.reshape(1, -1), lambda _: values)
        return Priced(answer.bound, False, batch)
