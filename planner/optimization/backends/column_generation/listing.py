"""All patterns of some blocks whose reduced cost is at most so much, as far as there is room for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from planner.optimization.backends.column_generation.items import CoveringBlock
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key

__all__ = ["Form", "Lister", "Listing", "form_of"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

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


@dataclass(frozen=True)
class Form:
    """A block ready for listing.

    Attributes:
        number: among all blocks.
        block: as a covering problem.
        cost: by item.
        use: of the tying rows, items x rows.
        base_cost: when no item is taken.
        base_use: when no item is taken.
        filler_cost: of a filler step.
        filler_use: of a filler step.
    """

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


@dataclass(frozen=True, slots=True)
class Listing:
    """All patterns of reduced cost up to ``theta`` of some blocks; the others stand whole."""

    theta: float
    blocks: frozenset[int]
    patterns: list[Pattern]


class Lister:
    """Lists patterns of some blocks at given prices of the tying rows."""

    def __init__(self, forms: Sequence[Form], prices: Floats) -> None:
        told = [(form, coverable := _coverable(form, prices), _least(coverable)) for form in forms]
        self._known = [(form, coverable, least) for form, coverable, least in told if least is not None]
        self._crowded: dict[int, tuple[float, int]] = {}
        leasts = [abs(least) for _, _, least in self._known]
        self._small = _PART_OF_BLOCK * sum(leasts) / len(leasts) if any(leasts) else inf

    def list_within(
        self, wanted: float, room: tuple[int, int], seconds_left: Callable[[], float]
    ) -> Listing | None:
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

    def _listed(self, theta: float, limits: tuple[int, int]) -> Listing | None:
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
        return Listing(theta, frozenset(blocks), patterns) if blocks else None


def form_of(number: int, block: CoveringBlock, usage: Usage) -> Form:
    """A block with what it costs and uses under a goal."""
    items = [usage.of(item.step) for item in block.items]
    base_cost, base_use = usage.of(block.base)
    filler_cost, filler_use = usage.of(block.filler.step if block.filler is not None else {})
    return Form(
        number,
        block,
        np.array([cost for cost, _ in items]),
        np.array([use for _, use in items]).reshape(len(items), usage.rows),
        base_cost,
        base_use,
        filler_cost,
        filler_use,
    )


def _coverable(form: Form, prices: Floats) -> Coverable:
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


def _patterns(form: Form, listed: Listed) -> list[Pattern]:
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
