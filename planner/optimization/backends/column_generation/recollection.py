"""What column generation remembers of a minimization: for the next level of a descent, and for the next plan of a fleet.

Everything remembered is a proposal. Patterns are looked at again wherever their block is not the very same, prices
only choose where the search starts, and bounds are always proven anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.master import Master, MasterAnswer
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key

__all__ = ["Level", "Recollection", "proposals", "remember", "start_prices"]

Floats = NDArray[np.float64]

_SUPPORT = 1e-9
"""Weight in the linear program from which a pattern is remembered."""


@dataclass(frozen=True)
class Level:
    """One goal that was made small.

    Attributes:
        patterns: values of one block each, with the block that they were made for.
        prices: by key of the tying row, in the goal per unit of the row.
        plan: values of the columns in the end; None: there was no plan.
    """

    patterns: tuple[tuple[Block, Mapping[Key, int]], ...]
    prices: Mapping[Key, float]
    plan: Mapping[Key, int] | None


@dataclass(frozen=True)
class Recollection:
    """What was made small by name of the goal.

    Attributes:
        prepared: the program that all levels of the descent have in common.
        levels: of this descent, in order.
        before: of the descent before it.
    """

    prepared: Prepared
    levels: Mapping[str, Level] = field(default_factory=dict)
    before: Mapping[str, Level] = field(default_factory=dict)

    def on(self, prepared: Prepared) -> Recollection:
        """The same for a program; where it is not one that has grown from the one of the levels, that one is kept."""
        return self if prepared.grown_from is self.prepared else replace(self, prepared=prepared)

    def same(self, goal: str) -> Level | None:
        """The last time that the same goal was made small."""
        return self.levels.get(goal, self.before.get(goal))

    def of(self, goal: str) -> tuple[Level, ...]:
        """What may help with a goal: the same one, and the one before it in this descent."""
        found = (self.same(goal), *list(self.levels.values())[-1:])
        return tuple({id(level): level for level in found if level is not None}.values())

    def plus(self, goal: str, level: Level) -> Recollection:
        """With one more goal."""
        others = {name: one for name, one in self.levels.items() if name != goal}
        return replace(self, levels={**others, goal: level})

    def aged(self) -> Recollection:
        """For the next descent, with which no level is made yet."""
        return Recollection(self.prepared, before=self.levels)


def remember(
    prepared: Prepared, master: Master, answer: MasterAnswer, prices: Floats, values: Mapping[Key, int] | None
) -> Level:
    """What a minimization leaves: patterns that the linear program uses, those of the plan, and the best prices."""
    blocks = prepared.shape.blocks
    patterns: list[tuple[Block, Mapping[Key, int]]] = [
        (blocks[pattern.block], pattern.decode())
        for pattern, weight in zip(master.patterns, answer.weights[len(master.columns) :], strict=False)
        if weight > _SUPPORT
    ]
    if values is not None:
        patterns += [
            (block, {column.key: values[column.key] for column in block.columns}) for block in blocks
        ]
    per_unit = (prices / prepared.ties.scales).tolist()
    by_row = {row.key: price for row, price in zip(prepared.shape.tying, per_unit, strict=True)}
    return Level(tuple(patterns), by_row, values)


def start_prices(prepared: Prepared, level: Level) -> Floats:
    """Remembered prices of the rows that are still there, 0 for the others."""
    known = [level.prices.get(row.key, 0.0) for row in prepared.shape.tying]
    return np.array(known) * prepared.ties.scales


def proposals(
    prepared: Prepared,
    usage: Usage,
    levels: Sequence[Level],
    plan: Mapping[Key, int] | None = None,
) -> list[Pattern]:
    """Remembered patterns that are right for the blocks of today, and those of a plan that is not remembered.

    Args:
        prepared: the program of today.
        usage: costs in the goal of today.
        levels: what is remembered.
        plan: values of columns; blocks of which it does not say all are left out.
    """
    new = None if any(level.plan is plan for level in levels) else plan
    found = {(number, tuple(values.values())): values for number, values in _right(prepared, levels, new)}
    costs, use = usage.of_each(list(found.values()))
    return [
        Pattern(number, cost, used, _constant(values))
        for ((number, _), values), cost, used in zip(found.items(), costs.tolist(), use, strict=True)
    ]


def _right(
    prepared: Prepared, levels: Iterable[Level], plan: Mapping[Key, int] | None
) -> Iterator[tuple[int, Mapping[Key, int]]]:
    blocks, owner = prepared.shape.blocks, prepared.shape.owner
    for level in levels:
        for block, values in level.patterns:
            number = owner.get(next(iter(values)))
            if number is not None and (blocks[number] is block or _fits(blocks[number], values)):
                yield number, {column.key: values[column.key] for column in blocks[number].columns}
    for number, block in enumerate(blocks if plan is not None else ()):
        if plan is not None and _fits(block, plan):
            yield number, {column.key: plan[column.key] for column in block.columns}


def _fits(block: Block, values: Mapping[Key, int]) -> bool:
    """Whether values keep the bounds and rows of a block."""
    return all(
        column.key in values and column.lower <= values[column.key] <= column.upper
        for column in block.columns
    ) and all(row.holds(values) for row in block.rows)


def _constant(values: Mapping[Key, int]) -> Callable[[], Mapping[Key, int]]:
    return lambda: values
