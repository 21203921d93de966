"""The least cap of shares that the relaxation does not exclude: many caps, one set of arrays.

A cap of a share is how many filler steps a covering block has. So one cap after the other is asked for with the same
arrays, and prices that showed one cap to be too low mostly show the next one at once: their Lagrangian value is positive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.coverings import CoveringPricer, Coverings, CoveringUse
from planner.optimization.backends.column_generation.excess import KEPT_EXCESS, shows_excess, until_decided
from planner.optimization.backends.column_generation.items import CoveringBlock
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxation
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key

__all__ = ["Capped", "capped"]

Floats = NDArray[np.float64]

_TURNS: Final = 15
"""Turns in which prices that exclude a cap are looked for. Where a few find none, mostly there are none."""


@dataclass(frozen=True)
class Capped:
    """A program whose blocks all are coverings, some of them with a share that is capped.

    Attributes:
        ready: the program.
        coverings: its blocks.
        use: what they use of the tying rows.
        places: of the capped blocks among all.
        weights: of one filler step of each of those in its share.
        bases: of each of those, filler steps that are taken in any case.
    """

    ready: Prepared
    coverings: Coverings
    use: CoveringUse
    places: NDArray[np.int64]
    weights: Floats
    bases: Floats

    def least(
        self, caps: Sequence[int], start: Floats, *, keep_going: Callable[[], bool]
    ) -> tuple[int, Floats]:
        """How many of the caps, which rise, are excluded, and the prices that showed it.

        Args:
            caps: of the shares.
            start: prices to begin with.
            keep_going: whether there is time.
        """
        low, prices = 0, start
        while keep_going():
            low = self._shown(caps, low, prices, keep_going)
            if low == len(caps):
                break
            found = self._better_prices(caps[low], prices, keep_going)
            if found is None:
                break
            low, prices = low + 1, found
        return low, prices

    def _shown(self, caps: Sequence[int], low: int, prices: Floats, keep_going: Callable[[], bool]) -> int:
        """The first cap from ``low`` on that prices do not show to be too low; it is bisected for."""
        high = len(caps)
        while low < high and keep_going():
            middle = (low + high) // 2
            relaxation = self._relaxation(caps[middle])
            if relaxation is None or _excludes(relaxation, relaxation.master.clip(prices)):
                low = middle + 1
            else:
                high = middle
        return low

    def _better_prices(self, cap: int, prices: Floats, keep_going: Callable[[], bool]) -> Floats | None:
        """Prices that exclude a cap; None where a few turns find none."""
        relaxation = self._relaxation(cap)
        if relaxation is None:
            return prices
        relaxation.center = relaxation.master.clip(prices)
        relaxed = until_decided(relaxation, keep_going, turns=_TURNS)
        return relaxed.prices if shows_excess(relaxed) else None

    def _relaxation(self, cap: int) -> Relaxation | None:
        """The least excess of tying rows under a cap; None where a block cannot keep it."""
        room = np.floor(cap / self.weights) - self.bases
        if (room < 0).any():
            return None
        most = self.coverings.arrays.uf.copy()
        most[self.places] = np.minimum(most[self.places], room)
        pricer = CoveringPricer(self.coverings.with_fillers(most), self.use, self.usage)
        master = self.ready.master(self.usage, np.ones(len(self.ready.shape.tying)))
        return Relaxation(master, pricer, [])

    @cached_property
    def usage(self) -> Usage:
        """Of the goal that counts nothing."""
        return self.ready.usage({})


def _excludes(relaxation: Relaxation, prices: Floats) -> bool:
    """Whether prices show that tying rows cannot be kept. Prices may be scaled: what is asked is whether a value is positive."""
    largest = float(np.abs(prices).max(initial=0.0))
    if largest == 0.0:
        return False
    prices = prices / largest
    priced = relaxation.ask_blocks(prices)
    return any(one.impossible for one in priced) or relaxation.value_at(prices, priced) > KEPT_EXCESS


def capped(ready: Prepared, shares: Sequence[Mapping[Key, int]]) -> Capped | None:
    """A program with some shares to cap; None where it has blocks that are no coverings, or other shares.

    Rows that limit replicas are left out: what is excluded without them is excluded with them.
    """
    forms = [form for form in ready.listable if form is not None]
    if len(forms) < len(ready.shape.blocks) or any(len(share) != 1 for share in shares):
        return None
    coverings = Coverings(list(enumerate(forms)), ready.ties.position)
    places, weights, bases = [], [], []
    for share in shares:
        ((key, weight),) = share.items()
        number = ready.shape.owner.get(key)
        if number is None or weight <= 0 or not _is_filler(forms[number], key):
            return None
        places.append(number)
        weights.append(float(weight))
        bases.append(float(forms[number].base[key]))
    return Capped(
        ready,
        coverings,
        coverings.use(ready.ties),
        np.array(places, dtype=np.int64),
        np.array(weights),
        np.array(bases),
    )


def _is_filler(form: CoveringBlock, key: Key) -> bool:
    """Whether a share is what fills a block, or is known."""
    return key in form.base and (form.filler is None or form.filler.step.get(key) == 1)
