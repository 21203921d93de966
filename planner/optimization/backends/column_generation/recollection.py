"""What column generation remembers of a minimization: for the next level of a descent, and for the next plan of a fleet.

Everything remembered is a proposal. Patterns are looked at again wherever their block is not the very same, prices
only choose where the search starts, and bounds are always proven anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Block, Shape
from planner.optimization.backends.column_generation.master import Master, MasterAnswer
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.preparation import Prepared
from planner.optimization.backends.column_generation.ties import Usage
from planner.optimization.program import Key, Row

__all__ = ["Level", "Recollection", "proposals", "remember"]

Floats = NDArray[np.float64]

_SUPPORT = 1e-9
"""Weight in the linear program from which a pattern is remembered."""

_REPLICAS = "n"
"""First name of the keys of columns of replicas."""


@dataclass(frozen=True)
class Level:
    """One goal that was made small.

    Attributes:
        patterns: values of one block each that are not 0, with the block that they were made for.
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
    patterns = [
        (blocks[pattern.block], _some(pattern.decode()))
        for pattern, weight in zip(master.patterns, answer.weights, strict=False)
        if weight > _SUPPORT
    ]
    if values is not None:
        patterns += zip(blocks, _by_block(prepared.shape, values), strict=True)
    return Level(tuple(patterns), prepared.prices_by_row(prices), values)


def proposals(
    prepared: Prepared,
    usage: Usage,
    levels: Sequence[Level],
    plan: Mapping[Key, int] | None = None,
) -> list[Pattern]:
    """Remembered patterns for the blocks of today, and those of a plan that is not remembered.

    What falls short of today's rows is topped up, and what has more than it takes is made smaller.

    Args:
        prepared: the program of today.
        usage: costs in the goal of today.
        levels: what is remembered.
        plan: values of columns; blocks of which it does not say all are left out.
    """
    new = None if any(level.plan is plan for level in levels) else plan
    found = {
        (number, tuple(values.items())): values for number, values in _right(prepared, usage, levels, new)
    }
    costs, use = usage.of_each(list(found.values()))
    blocks = prepared.shape.blocks
    return [
        Pattern(number, cost, used, partial(_whole, blocks[number], values))
        for ((number, _), values), cost, used in zip(found.items(), costs.tolist(), use, strict=True)
    ]


def _right(
    prepared: Prepared, usage: Usage, levels: Iterable[Level], plan: Mapping[Key, int] | None
) -> Iterator[tuple[int, Mapping[Key, int]]]:
    blocks, owner = prepared.shape.blocks, prepared.shape.owner
    fitting = _Fitting(blocks, usage)
    for level in levels:
        for block, values in level.patterns:
            number = owner.get(block.columns[0].key)
            if number is None:
                continue
            if blocks[number] is block:
                yield number, values
            else:
                yield from ((number, near) for near in fitting.near(number, values))
    if plan is not None:
        for number, values in enumerate(_by_block(prepared.shape, plan)):
            if all(column.key in plan for column in blocks[number].columns):
                yield from ((number, near) for near in fitting.near(number, values))


class _Fitting:
    """Makes values of columns fit the blocks of today, each once."""

    def __init__(self, blocks: Sequence[Block], usage: Usage) -> None:
        self._blocks = blocks
        self._usage = usage
        self._ends: dict[int, dict[Key, tuple[int, int]]] = {}
        self._seen: set[tuple[int, frozenset[tuple[Key, int]]]] = set()

    def near(self, number: int, values: Mapping[Key, int]) -> Iterator[Mapping[Key, int]]:
        """Values that keep bounds and rows of a block: the given ones if they do, else topped up; then the same with less.

        Nothing where there are none, or the same values were asked about before.
        """
        asked = (number, frozenset(values.items()))
        if asked in self._seen:
            return
        self._seen.add(asked)
        block, ends = self._blocks[number], self._ends_of(number)
        if not values.keys() <= ends.keys():
            return
        found = _inside(values, ends)
        for row in block.rows:
            _top_up(row, found, ends, self._usage)
        if not all(_holds(row, found) for row in block.rows):
            return
        yield found
        less = dict(found)
        _thin_out(block, less, ends)
        if less != found:
            yield less

    def _ends_of(self, number: int) -> dict[Key, tuple[int, int]]:
        if number not in self._ends:
            columns = self._blocks[number].columns
            self._ends[number] = {column.key: (column.lower, column.upper) for column in columns}
        return self._ends[number]


def _inside(values: Mapping[Key, int], ends: Mapping[Key, tuple[int, int]]) -> dict[Key, int]:
    """Values moved between the ends of their columns; those at 0 are left out."""
    asked = {key: 0 for key, (low, high) in ends.items() if low > 0 or high < 0} | dict(values)
    return _some({key: min(max(value, ends[key][0]), ends[key][1]) for key, value in asked.items()})


def _top_up(row: Row, values: dict[Key, int], ends: Mapping[Key, tuple[int, int]], usage: Usage) -> None:
    """More replicas of the candidate that makes good most cheaply what a row misses."""
    missing = (row.lower or 0) - _activity(row, values) if row.lower is not None else 0
    if missing <= 0:
        return
    more = {
        key: -(-missing // coefficient)
        for key, coefficient in row.terms.items()
        if coefficient > 0 and key[0] == _REPLICAS
    }
    room = {key: count for key, count in more.items() if values.get(key, 0) + count <= ends[key][1]}
    if room:
        best = min(room, key=lambda key: (usage.cost.get(key, 0.0) * room[key], key))
        values[best] = values.get(best, 0) + room[best]


def _thin_out(block: Block, values: dict[Key, int], ends: Mapping[Key, tuple[int, int]]) -> None:
    """One replica less of each candidate that is not needed to keep the rows."""
    for key in [key for key in values if key[0] == _REPLICAS and values[key] > ends[key][0]]:
        values[key] -= 1
        if not all(_holds(row, values) for row in block.rows if key in row.terms):
            values[key] += 1
        elif not values[key]:
            del values[key]


def _activity(row: Row, values: Mapping[Key, int]) -> int:
    """The sum of the terms where columns that are not named are 0."""
    return sum(row.terms[key] * value for key, value in values.items() if key in row.terms)


def _holds(row: Row, values: Mapping[Key, int]) -> bool:
    activity = _activity(row, values)
    return (row.lower is None or activity >= row.lower) and (row.upper is None or activity <= row.upper)


def _some(values: Mapping[Key, int]) -> dict[Key, int]:
    return {key: value for key, value in values.items() if value}


def _by_block(shape: Shape, values: Mapping[Key, int]) -> list[dict[Key, int]]:
    """Values that are not 0 by the block of their columns."""
    found: list[dict[Key, int]] = [{} for _ in shape.blocks]
    for key, value in values.items():
        if value and (number := shape.owner.get(key)) is not None:
            found[number][key] = value
    return found


def _whole(block: Block, values: Mapping[Key, int]) -> Mapping[Key, int]:
    return {column.key: values.get(column.key, 0) for column in block.columns}
