"""Patterns: feasible values of one block, with what they cost and what they use of the tying rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key

__all__ = ["Batch", "Pattern", "Usage"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to run a block.

    Attributes:
        block: which block.
        cost: contribution to the goal.
        use: contribution to each tying row.
        decode: the values of its columns; asked for only when the pattern is chosen.
    """

    block: int
    cost: float
    use: Floats
    decode: Callable[[], Mapping[Key, int]]


@dataclass(frozen=True, slots=True)
class Batch:
    """Patterns of several blocks at once, one row each.

    Attributes:
        blocks: block of each pattern.
        cost: cost of each.
        use: patterns x tying rows.
        decode: values of the columns of pattern i.
    """

    blocks: Ints
    cost: Floats
    use: Floats
    decode: Callable[[int], Mapping[Key, int]]

    def cheaper_than(self, prices: Floats, worth: Floats) -> list[Pattern]:
        """Patterns whose reduced cost is negative at these prices and worths of blocks."""
        reduced = self.cost - self.use @ prices - worth[self.blocks]
        return [
            self.pattern(int(i)) for i in np.flatnonzero(reduced < -1e-9 * np.maximum(1.0, np.abs(self.cost)))
        ]

    def pattern(self, i: int) -> Pattern:
        """Pattern i on its own."""
        return Pattern(int(self.blocks[i]), float(self.cost[i]), self.use[i], lambda: self.decode(i))

    def all(self) -> list[Pattern]:
        """Every pattern on its own."""
        return [self.pattern(i) for i in range(len(self.blocks))]
