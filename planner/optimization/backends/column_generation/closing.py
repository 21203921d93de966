"""Closing the gap that column generation leaves: all patterns that a better plan could be made of, chosen from exactly.

At the prices of the relaxation every pattern has a reduced cost, and a plan costs the Lagrangian bound plus the
reduced costs of its patterns at least. So a plan cheaper than the bound plus θ has no pattern whose reduced cost
exceeds θ (the argument of Baldacci, Christofides and Mingozzi 2008 for vehicle routing). With all patterns up to θ
listed, the best choice among them is optimal if it is cheaper than that, and the bound rises to the smaller of the two
in any case. A block that has too many patterns, or is no covering problem, stands there whole, as itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.enumeration import (
    Coverable,
    Listed,
    cheapest_covering,
    coverings_within,
)
from planner.optimization.backends.column_generation.finish import choose
from planner.optimization.backends.column_generation.items import CoveringBlock
from planner.optimization.backends.column_generation.master import Master
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key

__all__ = ["Closed", "Closing"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_FEWEST: Final = 4_000
_MOST: Final = 64_000
"""Patterns of all blocks together that are chosen from: at first, and in the end."""

_FIRST: Final = 0.05
"""Largest θ, as a share of the bound: plans that are worse are no news."""

_GROWTH: Final = 2.0
_SMALLEST: Final = 64.0
_PART_OF_BLOCK: Final = 0.01
"""θ grows by so much from this part of what is wanted, or of what a block costs, as long as there is room."""

_PART: Final = 4
"""A block with more coverings than this part of the room stands whole: it has so many replicas that few are a fraction."""

_NODES: Final = 500_000
_NEIGHBORS: Final = 150
"""Cheapest patterns of a block that each other one is compared with: what one of them beats is left out."""

_TINY: Final = 1e-12
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


@dataclass(frozen=True)
class _Form:
    """A block ready for listing: its costs and uses by item."""

    number: int
    block: CoveringBlock
    cost: Floats
    use: Floats
    base_cost: float
    base_use: Floats
    filler_cost: float
    filler_use: Floats

    @property
    def has_costs(self) -> bool:
        """Whether the goal tells its patterns apart."""
        return bool(self.cost.any()) or bool(self.filler_cost)

    @property
    def most(self) -> float:
        """No pattern costs more."""
        pairs = zip(self.cost.tolist(), self.block.items, strict=True)
        items = sum(float(cost) * item.most for cost, item in pairs)
        filler = self.filler_cost * self.block.filler.most if self.block.filler is not None else 0.0
        return self.base_cost + items + filler

    @property
    def only_adds(self) -> bool:
        """Whether taking less never costs or uses more."""
        parts = (self.cost, self.use, self.filler_use, np.array([self.filler_cost]))
        return all(bool((part >= 0).all()) for part in parts)


class Closing:
    """All blocks of a program under one goal.

    Args:
        ready: the program.
        usage: its goal.
        master: rows and columns beside the patterns.
    """

    def __init__(self, ready: Prepared, usage: Usage, master: Master) -> None:
        self._ready = ready
        self._usage = usage
        self._master = master
        upper_only = not np.isfinite(ready.ties.lower).any()
        forms = (
            _form(number, block, usage)
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
        turn = _Turn(self._forms, relaxed.prices)
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

    def _choose(self, listing: _Listing, seconds: float, gap: float) -> _Found:
        blocks = self._ready.shape.blocks
        whole = [block for number, block in enumerate(blocks) if number not in listing.blocks]
        choice = choose(
            self._master,
            listing.patterns,
            seconds=max(seconds, 0.01),
            gap=gap / 4,
            whole=whole,
            usage=self._usage,
        )
        if not choice.found:
            return _Found(None, inf, choice.bound)
        values = {column.key: column.lower for column in self._ready.shape.fixed} | dict(choice.whole)
        for pattern in choice.patterns:
            values |= pattern.decode()
        for column, amount in zip(self._ready.shape.master, choice.columns, strict=True):
            values[column.key] = amount
        return _Found(values, choice.value, choice.bound)


@dataclass(frozen=True, slots=True)
class _Found:
    values: Mapping[Key, int] | None
    value: float
    bound: float


@dataclass(frozen=True, slots=True)
class _Listing:
    """All patterns of reduced cost up to ``theta`` of some blocks; the others stand whole."""

    theta: float
    blocks: frozenset[int]
    patterns: list[Pattern]


class _Turn:
    """Listing at given prices."""

    def __init__(self, forms: Sequence[_Form], prices: Floats) -> None:
        told = [(form, coverable := _coverable(form, prices), _least(coverable)) for form in forms]
        self._known = [(form, coverable, least) for form, coverable, least in told if least is not None]
        self._crowded: dict[int, tuple[float, int]] = {}
        leasts = [abs(least) for _, _, least in self._known]
        self._small = _PART_OF_BLOCK * sum(leasts) / len(leasts) if any(leasts) else inf

    def list_within(
        self, wanted: float, room: tuple[int, int], seconds_left: Callable[[], float]
    ) -> _Listing | None:
        """Patterns of reduced cost up to θ, the largest up to ``wanted`` for which there is room.

        Args:
            wanted: no larger θ is of use.
            room: patterns of all blocks together, and blocks that may stand whole though they could be listed.
            seconds_left: wall time that is left.
        """
        best, theta = None, min(wanted / _SMALLEST, self._small)
        while seconds_left() > 0:
            theta = min(theta, wanted)
            found = self._listed(theta, room)
            if found is None:
                break
            best = found
            if theta >= wanted:
                break
            theta *= _GROWTH
        return best

    def _listed(self, theta: float, limits: tuple[int, int]) -> _Listing | None:
        """None where there is no room. A block that would take much of it stands whole instead."""
        room, whole = limits
        patterns: list[Pattern] = []
        blocks = set()
        for form, coverable, least in self._known:
            crowded_at, of = self._crowded.get(form.number, (inf, 0))
            if theta >= crowded_at and room <= of:
                whole -= 1
                continue
            listed = coverings_within(coverable, least + theta, most=room // _PART, nodes=_NODES)
            if listed.complete:
                blocks.add(form.number)
                patterns += _patterns(form, listed)
            else:
                self._crowded[form.number] = (theta, room)
                whole -= 1
            if len(patterns) > room or whole < 0:
                return None
        return _Listing(theta, frozenset(blocks), patterns) if blocks else None


def _form(number: int, block: CoveringBlock, usage: Usage) -> _Form:
    items = [usage.of(item.step) for item in block.items]
    base_cost, base_use = usage.of(block.base)
    filler_cost, filler_use = usage.of(block.filler.step if block.filler is not None else {})
    return _Form(
        number,
        block,
        np.array([cost for cost, _ in items]),
        np.array([use for _, use in items]).reshape(len(items), usage.rows),
        base_cost,
        base_use,
        filler_cost,
        filler_use,
    )


def _coverable(form: _Form, prices: Floats) -> Coverable:
    block, n = form.block, len(form.block.items)
    a = np.zeros((max(len(block.rows), 1), n), dtype=np.int64)
    for row, (coverage, _) in enumerate(block.rows):
        a[row, list(coverage)] = list(coverage.values())
    uses = np.zeros((len(block.limits), n), dtype=np.int64)
    for row, (use, _) in enumerate(block.limits):
        uses[row, list(use)] = list(use.values())
    w = form.cost - form.use @ prices
    return Coverable(
        np.maximum(w, _TINY * max(float(w.max(initial=0.0)), 1.0)),
        a,
        np.array([owed for _, owed in block.rows] or [0], dtype=np.int64),
        np.array([item.most for item in block.items], dtype=np.int64),
        uses,
        np.array([most for _, most in block.limits], dtype=np.int64),
        form.filler_cost - float(form.filler_use @ prices),
        np.array(block.filler_rows if block.filler else [0] * len(a), dtype=np.int64),
        block.filler.most if block.filler else 0,
    )


def _least(coverable: Coverable) -> float | None:
    """The least cost of a covering; None where it cannot be told."""
    listed = cheapest_covering(coverable, nodes=_NODES)
    if not listed.complete or not len(listed.counts):
        return None
    return float(listed.counts[0] @ coverable.w + listed.fillers[0] * coverable.wf)


def _patterns(form: _Form, listed: Listed) -> list[Pattern]:
    """Those listed that none of the cheapest beats in cost and in every use."""
    counts, fillers = listed.counts, listed.fillers
    cost = form.base_cost + counts @ form.cost + fillers * form.filler_cost
    use = form.base_use + counts @ form.use + fillers[:, None] * form.filler_use
    order = np.argsort(cost, kind="stable")
    counts, fillers, cost, use = counts[order], fillers[order], cost[order], use[order]
    beaten = np.zeros(len(cost), dtype=bool)
    for rival in range(min(_NEIGHBORS, len(cost))):
        if not beaten[rival]:
            beaten[rival + 1 :] |= (use[rival + 1 :] >= use[rival]).all(axis=1)
    return [
        Pattern(
            form.number, float(cost[i]), use[i], partial(_decoded, form.block, counts[i], int(fillers[i]))
        )
        for i in np.flatnonzero(~beaten)
    ]


def _decoded(block: CoveringBlock, counts: Ints, fillers: int) -> dict[Key, int]:
    return block.values(((int(at), int(counts[at])) for at in np.flatnonzero(counts)), fillers)
