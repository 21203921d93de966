"""Pricing: the cheapest way to run each block at given prices of the tying rows, with a valid bound.

Blocks with one covering row go through one compiled kernel (``coverings``), blocks of any other rows through another
(``branched_pricing``). What fits neither is a small integer program of its own that HiGHS answers; its dual bound is
valid too, so nothing is dropped silently.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.patterns import Batch
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.small import SmallProgram

__all__ = ["Priced", "Pricer", "ProgramPricer"]

Floats = NDArray[np.float64]

_SECONDS: Final = 10.0
"""Wall time of one program: its bound so far is valid, and a time limit is not passed by minutes."""


@dataclass(frozen=True, slots=True)
class Priced:
    """An answer to prices.

    Attributes:
        bound: the blocks together cost no less.
        impossible: a block has no pattern at all.
        batch: cheap patterns.
        each: bounds of the blocks one by one, where a pricer tells them.
    """

    bound: float
    impossible: bool
    batch: Batch | None
    each: Floats | None = None


class Pricer(Protocol):
    """Answers prices for some blocks."""

    def price(self, prices: Floats, *, gap: float) -> Priced:
        """Cheap patterns at these prices, and a bound; ``gap`` is how far a block may be from its best."""
        ...


class ProgramPricer:
    """A block that no kernel fits: a small integer program, kept in HiGHS and asked again and again."""

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
        answer = self._program.minimize(weights, gap=gap, seconds=_SECONDS)
        if answer.infeasible or answer.values is None:
            return Priced(answer.bound, answer.infeasible, None)
        values = answer.values
        cost, use = self._usage.of(values)
        batch = Batch(np.array([self._number]), np.array([cost]), use.reshape(1, -1), lambda _: values)
        return Priced(answer.bound, False, batch)
