"""Closing the gap that column generation leaves: all patterns that a better plan could be made of, chosen from exactly.

At the prices of the relaxation every pattern has a reduced cost, and a plan costs the Lagrangian bound plus the
reduced costs of its patterns at least. So a plan cheaper than the bound plus θ has no pattern whose reduced cost
exceeds θ (the argument of Baldacci, Christofides and Mingozzi 2008 for vehicle routing). With all patterns up to θ
listed, the best choice among them is optimal if it is cheaper than that, and the bound rises to the smaller of the two
in any case. A block that has too many patterns, or is no covering problem, stands there whole, as itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from planner.optimization.backends.column_generation.finish import NOBODY, Ending, Whole, choose
from planner.optimization.backends.column_generation.listing import Lister, Listing, form_of
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.backends.highs import Listener
from planner.optimization.program import Key

__all__ = ["Closed", "Closing"]

_FEWEST: Final = 4_000
_MOST: Final = 64_000
"""Patterns of all blocks together that are chosen from: at first, and in the end."""

_FIRST: Final = 0.05
"""Largest θ, as a share of the bound: plans that are worse are no news."""

_ABOVE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Closed:
    """What came of it.

    Attributes:
        values: of all columns, where a better plan was found.
        bound: proven on the goal without its constant; -inf where nothing is.
        impossible: it is proven that there is no plan at all.
    """

    values: Mapping[Key, int] | None
    bound: float
    impossible: bool = False


class Closing:
    """All blocks of a program under one goal.

    Args:
        ready: the program.
        usage: its goal.
        master: rows and columns beside the patterns.
        listener: hears of better choices on the way.
    """

    def __init__(self, ready: Prepared, usage: Usage, master: Master, *, listener: Listener = NOBODY) -> None:
        self._ready = ready
        self._listener = listener
        self._usage = usage
        self._master = master
        upper_only = not np.isfinite(ready.ties.lower).any()
        forms = (
            form_of(number, block, usage)
            for number, block in enumerate(ready.listable)
            if block is not None and upper_only
        )
        self._forms = [form for form in forms if form.only_adds]
        self.useful = any(form.has_costs for form in self._forms)
        self._dearest = self._cost_of_most()

    def _cost_of_most(self) -> float:
        """No plan costs more than this; inf where that is not known."""
        if len(self._forms) < self._master.blocks:
            return inf
        columns = sum(max(c.cost * c.lower, c.cost * c.upper) for c in self._master.columns)
        most = columns + sum(form.most for form in self._forms)
        return most + _ABOVE * max(abs(most), 1.0)

    def close(
        self,
        relaxed: Relaxed,
        value: float,
        *,
        gap: float,
        constant: float,
        seconds_left: Callable[[], float],
    ) -> Closed:
        """List and choose until the gap is closed, or time or room is up.

        Args:
            relaxed: prices of the tying rows, and the bound that they prove.
            value: of the plan at hand, without the constant; inf where there is none.
            gap: relative gap that is enough.
            constant: of the goal; the gap is one of the whole.
            seconds_left: wall time that is left.
        """
        best: Mapping[Key, int] | None = None
        bound, room, whole = relaxed.bound, _FEWEST, max(2, self._master.blocks // 20)
        turn = Lister(self._forms, relaxed.prices)
        while self.useful and seconds_left() > 0 and room <= _MOST:
            wanted = min(self._enough(value, gap, constant) - relaxed.bound, _FIRST * abs(relaxed.bound))
            listing = turn.list_within(wanted, (room, whole), seconds_left)
            room, whole = 4 * room, 2 * whole
            if listing is None:
                continue
            found = self._choose(listing, seconds_left(), gap)
            bound = max(bound, min(found.bound, relaxed.bound + listing.theta))
            if found.values is not None and found.value < value and self._ready.keeps(found.values):
                value, best = found.value, found.values
            if bound >= self._enough(value, gap, constant):
                break
        impossible = best is None and value == inf and bound > self._dearest
        return Closed(best, bound, impossible=impossible)

    def _enough(self, value: float, gap: float, constant: float) -> float:
        """The bound that settles it: one that proves the value, or that nothing is so dear."""
        within = value - gap * abs(value + constant) if value < inf else inf
        return min(within, self._dearest)

    def _choose(self, listing: Listing, seconds: float, gap: float) -> _Found:
        blocks = self._ready.shape.blocks
        whole = [block for number, block in enumerate(blocks) if number not in listing.blocks]
        choice = choose(
            self._master,
            listing.patterns,
            ending=Ending(max(seconds, 0.01), gap / 4),
            whole=Whole(whole, self._usage),
            listener=self._listener,
        )
        if not choice.found:
            return _Found(None, inf, choice.bound)
        return _Found(choice.values(self._ready.shape), choice.value, choice.bound)


@dataclass(frozen=True, slots=True)
class _Found:
    values: Mapping[Key, int] | None
    value: float
    bound: float
