"""Column generation on the linear master: smoothed prices, a valid Lagrangian bound at every turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.coverings import CoveringPricer
from planner.optimization.backends.column_generation.master import Master, MasterAnswer
from planner.optimization.backends.column_generation.pricing import Priced, Pricer

__all__ = ["Relaxation", "Relaxed", "Told"]

Floats = NDArray[np.float64]

_SMOOTHING: Final = 0.6
"""Weight of the best prices so far in the prices that blocks see (Wentges 1997)."""

_PRICING_GAP: Final = 1e-7

_PATIENCE: Final = 12
_PROGRESS: Final = 0.99
"""Turns in a row that leave this part of the distance between value and bound, or more, are no progress."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """The state of the relaxation when it stopped.

    Attributes:
        answer: the last linear program.
        bound: proven lower bound on the goal.
        prices: the prices that proved it.
        impossible: a block has no pattern at all.
    """

    answer: MasterAnswer | None
    bound: float
    prices: Floats
    impossible: bool = False


class Told(NamedTuple):
    """What blocks cost at least at some prices of the tying rows: cost − prices · use >= bound.

    Attributes:
        prices: of the tying rows.
        each: bounds of the blocks that tell theirs one by one, those of branch and cut, in their order.
    """

    prices: Floats
    each: Floats


class Relaxation:
    """Prices blocks and grows a master until value and bound meet."""

    def __init__(self, master: Master, covering: CoveringPricer, others: Sequence[Pricer]) -> None:
        self.master = master
        self._covering = covering
        self._others = tuple(others)
        self.center = np.zeros(len(master.rows))
        self.bound = -np.inf
        self.told: list[Told] = []

    def ask_blocks(self, prices: Floats) -> list[Priced]:
        """The blocks' answers at these prices."""
        priced = [
            self._covering.price(prices, gap=_PRICING_GAP),
            *(pricer.price(prices, gap=_PRICING_GAP) for pricer in self._others),
        ]
        each = [one.each for one in priced if one.each is not None]
        if each and not any(one.impossible for one in priced):
            self.told.append(Told(prices.copy(), np.concatenate(each)))
        return priced

    def value_at(self, prices: Floats, priced: Sequence[Priced]) -> float:
        """The Lagrangian value of prices: no plan has a smaller goal."""
        blocks = sum(answer.bound for answer in priced)
        return blocks + self.master.column_bound(prices) + self.master.side_value(prices)

    def run(
        self,
        *,
        gap: float,
        keep_going: Callable[[], bool],
        report: Callable[[MasterAnswer | None, float], None],
    ) -> Relaxed:
        """Generate columns until the gap between the linear program and the bound is small.

        Args:
            gap: relative gap that is small enough.
            keep_going: asked at every turn.
            report: hears of the linear program and the bound at every turn; of the bound of the first prices alone.
        """
        answer: MasterAnswer | None = None
        smoothing, stalled, least = 0.0, 0, np.inf
        first = not self.master.patterns
        priced = self.ask_blocks(self.center)
        if any(one.impossible for one in priced):
            return Relaxed(answer, np.inf, self.center, impossible=True)
        self.bound = max(self.bound, self.value_at(self.center, priced))
        report(None, self.bound)
        # Beside the cheapest patterns the most frugal ones: with them there nearly always is a choice that fits.
        frugal = self.ask_blocks(self.master.clip(-self.master.penalty)) if first and keep_going() else []
        self.master.add([p for one in (*priced, *frugal) if one.batch for p in one.batch.all()])
        while keep_going():
            answer = self.master.solve()
            prices = self.master.clip(smoothing * self.center + (1 - smoothing) * answer.prices)
            priced = self.ask_blocks(prices)
            value = self.value_at(prices, priced)
            if value > self.bound:
                self.bound, self.center = value, prices
            report(answer, self.bound)
            distance = answer.value - self.bound
            # A block whose pricing stops early has a bound below its value, and the two never meet.
            stalled = stalled + 1 if distance >= _PROGRESS * least else 0
            least = min(least, distance)
            if distance <= gap * abs(answer.value) + 1e-9 or stalled >= _PATIENCE:
                break
            new = [
                pattern
                for one in priced
                if one.batch
                for pattern in one.batch.cheaper_than(answer.prices, answer.worth)
            ]
            if not new and smoothing == 0.0:
                break
            smoothing = _SMOOTHING if new else 0.0
            self.master.add(new)
        return Relaxed(answer, self.bound, self.center)
