"""Large neighborhood search: a few blocks at a time are planned anew, exactly, around what the others do.

A plan that breaks tying rows is repaired first, whatever that costs; a plan that keeps them is improved and never
breaks one again. Blocks that the linear program leaves undecided come first: there are no more of them than tying rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Shape
from planner.optimization.backends.small import SmallProgram
from planner.optimization.program import Column, Goal, Key, Row

__all__ = ["Neighborhoods", "State"]

Ints = NDArray[np.int64]

_WHOLE_64: Final = 2**62

_SECONDS: Final = 2.0
"""Wall time of one neighborhood."""


@dataclass
class State:
    """Values of every block and of the master columns."""

    blocks: list[Mapping[Key, int]]
    master: dict[Key, int]

    def values(self) -> dict[Key, int]:
        """All values together."""
        found = dict(self.master)
        for block in self.blocks:
            found |= block
        return found


class Neighborhoods:
    """Improves a state, one neighborhood after the other.

    Args:
        shape: the program.
        goal: what is made small.
        scales: by tying row, how much breaking it by one weighs (1 / scale).
        state: where to start.
    """

    def __init__(self, shape: Shape, goal: Goal, scales: Sequence[float], state: State) -> None:
        self._shape = shape
        self._goal = goal
        self._weight = 1.0 / np.array(scales, dtype=np.float64)
        self.state = state
        self._uses: dict[Key, list[tuple[int, int]]] = defaultdict(list)
        for number, row in enumerate(shape.tying):
            for key, coefficient in row.terms.items():
                self._uses[key].append((number, coefficient))
        self._lower = np.array([-np.inf if row.lower is None else row.lower for row in shape.tying])
        self._upper = np.array([np.inf if row.upper is None else row.upper for row in shape.tying])
        fixed = {column.key: column.lower for column in shape.fixed}
        self._constant = goal.constant + sum(
            value * fixed[key] for key, value in goal.terms.items() if key in fixed
        )
        # Sums of very large figures need integers without an end; ordinary ones are faster in 64 bits.
        self._whole = np.dtype(object) if _largest_sum(shape, goal) > _WHOLE_64 else np.dtype(np.int64)
        parts = [self._part(values) for values in state.blocks]
        self._cost = np.array([cost for cost, _ in parts], dtype=self._whole)
        self._use = np.array([use for _, use in parts], dtype=self._whole).reshape(
            len(parts), len(shape.tying)
        )
        self._master = self._part(state.master)

    def _part(self, values: Mapping[Key, int]) -> tuple[int, Ints]:
        """Goal and use of the tying rows of some values."""
        cost = 0
        use = np.zeros(len(self._shape.tying), dtype=self._whole)
        for key, value in values.items():
            if value:
                cost += self._goal.terms.get(key, 0) * value
                for row, coefficient in self._uses.get(key, ()):
                    use[row] += coefficient * value
        return cost, use

    def value(self) -> int:
        """Goal of the state."""
        return int(self._cost.sum()) + self._master[0] + self._constant

    def broken(self) -> float:
        """By how much the state breaks tying rows, weighed by their scales; 0 when it keeps all."""
        activity = self._use.sum(axis=0) + self._master[1]
        excess = np.maximum(0, activity - self._upper) + np.maximum(0, self._lower - activity)
        return float(excess @ self._weight)

    def _rank(self) -> tuple[float, int]:
        return self.broken(), self.value()

    def improve(self, chosen: Sequence[int], *, gap: float, seconds: float) -> bool:
        """Plan some blocks and the master columns anew; whether the state got better."""
        before = self._rank()
        columns, rows, weights = self._subprogram(frozenset(chosen))
        answer = SmallProgram(columns, rows).minimize(weights, gap=gap, seconds=seconds)
        if answer.values is None:
            return False
        found = answer.values
        blocks = {n: {c.key: found[c.key] for c in self._shape.blocks[n].columns} for n in chosen}
        if any(not row.holds(values) for n, values in blocks.items() for row in self._shape.blocks[n].rows):
            return False
        old = (self._cost.copy(), self._use.copy(), self._master)
        master = {column.key: found[column.key] for column in self._shape.master}
        for number, values in blocks.items():
            self._cost[number], self._use[number] = self._part(values)
        self._master = self._part(master)
        if self._rank() >= before:
            self._cost, self._use, self._master = old
            return False
        self.state.master |= master
        for number, values in blocks.items():
            self.state.blocks[number] = values
        return True

    def _subprogram(self, chosen: frozenset[int]) -> tuple[list[Column], list[Row], dict[Key, float]]:
        blocks = [self._shape.blocks[number] for number in sorted(chosen)]
        columns = [column for block in blocks for column in block.columns] + list(self._shape.master)
        rows = [row for block in blocks for row in block.rows]
        repair = self.broken() > 0
        weights: dict[Key, float] = {} if repair else {c.key: self._goal.terms.get(c.key, 0) for c in columns}
        others = np.ones(len(self._shape.blocks), dtype=bool)
        others[list(chosen)] = False
        taken = self._use[others].sum(axis=0)
        terms: dict[int, dict[Key, int]] = defaultdict(dict)
        for column in columns:
            for number, coefficient in self._uses.get(column.key, ()):
                terms[number][column.key] = coefficient
        for number, used in terms.items():
            row = self._shape.tying[number]
            for side, sign in ((row.upper, -1), (row.lower, 1)):
                if side is None:
                    continue
                held = dict(used)
                if repair:
                    slack: Key = ("slack", str(number), str(sign))
                    columns.append(Column(slack, 0, 2**40))
                    weights[slack] = float(self._weight[number])
                    held[slack] = sign
                limit = side - int(taken[number])
                rows.append(Row(row.key, held, limit if sign > 0 else None, limit if sign < 0 else None))
        return columns, rows, weights

    def run(
        self,
        undecided: Sequence[int],
        *,
        size: int,
        gap: float,
        seed: int,
        seconds_left: Callable[[], float],
        good_enough: Callable[[], bool],
    ) -> None:
        """Improve until it is good enough, time is up, or many neighborhoods in a row did not help."""
        idle = 0
        patience = 2 * max(8, len(self._shape.blocks) // size)
        for chosen in self._neighborhoods(undecided, size, seed):
            left = seconds_left()
            if left <= 0 or good_enough() or idle > patience:
                return
            idle = 0 if self.improve(chosen, gap=gap, seconds=min(left, _SECONDS)) else idle + 1

    def _neighborhoods(self, undecided: Sequence[int], size: int, seed: int) -> Iterator[list[int]]:
        """First the undecided blocks, then blocks at random, always some undecided ones among them."""
        rng = np.random.default_rng(seed)
        n = len(self._shape.blocks)
        first = list(undecided)
        for start in range(0, len(first), size):
            yield first[start : start + size]
        while True:
            share = min(len(first), size // 2)
            chosen = set(rng.choice(first, share, replace=False).tolist()) if share else set()
            while len(chosen) < min(size, n):
                chosen.add(int(rng.integers(n)))
            yield sorted(chosen)


def _largest_sum(shape: Shape, goal: Goal) -> int:
    """The largest value that the goal or a tying row can take."""
    columns = [column for block in shape.blocks for column in block.columns] + list(shape.master)
    most = {column.key: max(abs(column.lower), abs(column.upper)) for column in columns}
    sums = [goal.terms, *(row.terms for row in shape.tying)]
    return max(sum(abs(value) * most.get(key, 0) for key, value in terms.items()) for terms in sums)
