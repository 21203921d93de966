"""A plan at once: the heaviest pattern of each block, and other patterns where those do not fit together, compiled.

The linear program leaves few blocks undecided, so that its heaviest patterns nearly fit. One block after the other takes
another pattern: while rows are broken the one that loses least per unit that it mends, then whatever makes the whole
cheaper and breaks nothing. Nothing is proven, and nothing is sure to be found; it takes some hundredths of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.finish import NO_CHOICE, Choice, Start
from planner.optimization.backends.column_generation.master import Master, MasterAnswer
from planner.optimization.backends.column_generation.patterns import Pattern
from planner.optimization.backends.column_generation.sifting import reduced_costs

__all__ = ["compile_mending", "mended"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_WORK: Final = 2e8
"""Products of patterns, rows and moves up to which it is a matter of tenths of a second."""

_NEARLY: Final = 1e-9

_NEAR: Final = (-2, -1, 0, 1, 2)
"""How far from the linear program a column of no block may go."""


class Options(NamedTuple):
    """What each block may be: its patterns, and for a column of the master its steps, in rows of arrays.

    Attributes:
        use: options x tying rows.
        cost: what each costs.
        loss: what each costs at the prices of the linear program above its part of the bound.
        starts: options of block s are ``starts[s]:starts[s + 1]``.
    """

    use: Floats
    cost: Floats
    loss: Floats
    starts: Ints


class Sides(NamedTuple):
    """Sides of the tying rows, infinite where open, and how much breaking one by a unit weighs."""

    lower: Floats
    upper: Floats
    weight: Floats


@njit(cache=True, nogil=True)
def _excess(sides: Sides, r: int, activity: float) -> float:
    """By how much a row is broken, weighed."""
    slack = _NEARLY * max(1.0, abs(activity))
    over = max(activity - sides.upper[r] - slack, sides.lower[r] - activity - slack)
    return float(sides.weight[r] * over) if over > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _change(options: Options, sides: Sides, activity: Floats, old: int, new: int) -> float:
    """By how much all rows together are broken more if a block takes another option."""
    total = 0.0
    for r in range(activity.shape[0]):
        step = options.use[new, r] - options.use[old, r]
        if step != 0.0:
            total += _excess(sides, r, activity[r] + step) - _excess(sides, r, activity[r])
    return total


@njit(cache=True, nogil=True)
def _best_move(
    options: Options, sides: Sides, activity: Floats, chosen: Ints, broken: bool
) -> tuple[int, int]:
    """The block and its option of the best move; -1 where none helps."""
    block, option, best = -1, -1, np.inf if broken else -_NEARLY
    for s in range(chosen.shape[0]):
        old = chosen[s]
        for new in range(options.starts[s], options.starts[s + 1]):
            saved = options.cost[new] - options.cost[old]
            if new == old or (not broken and saved >= best):
                continue
            change = _change(options, sides, activity, old, new)
            if not broken:
                if change <= 0.0:
                    block, option, best = s, new, saved
            elif change < -_NEARLY:
                rate = (max(options.loss[new] - options.loss[old], 0.0) + _NEARLY) / -change
                if rate < best:
                    block, option, best = s, new, rate
    return block, option


@njit(cache=True, nogil=True)
def mend(options: Options, sides: Sides, chosen: Ints, moves: int) -> bool:
    """Move blocks to other options until all rows hold and no move makes it cheaper, or for so many moves.

    Args:
        options: of all blocks.
        sides: of the tying rows.
        chosen: the option of each block; changed.
        moves: at most.

    Returns:
        Whether all rows hold.
    """
    rows = options.use.shape[1]
    activity = np.zeros(rows)
    for s in range(chosen.shape[0]):
        activity += options.use[chosen[s]]
    broken = True
    for _ in range(moves):
        total = 0.0
        for r in range(rows):
            total += _excess(sides, r, activity[r])
        broken = total > 0.0
        block, option = _best_move(options, sides, activity, chosen, broken)
        if block < 0:
            break
        activity += options.use[option] - options.use[chosen[block]]
        chosen[block] = option
    total = 0.0
    for r in range(rows):
        total += _excess(sides, r, activity[r])
    return total <= 0.0


def mended(
    master: Master, answer: MasterAnswer, *, more: Sequence[Pattern] = (), start: Start | None = None
) -> Choice:
    """A choice near a linear program; none where rows stay broken.

    Args:
        master: rows, and the patterns that there are by now.
        answer: its linear program; patterns that came later weigh nothing.
        more: patterns beside those.
        start: a choice that keeps all rows, to be made cheaper beside that of the heaviest patterns.
    """
    patterns = [*master.patterns, *more, *(() if start is None else start.patterns)]
    block = np.array([pattern.block for pattern in patterns], dtype=np.int64)
    if len(np.unique(block)) < master.blocks:
        return NO_CHOICE
    order = np.argsort(block, kind="stable")
    firsts = np.searchsorted(block[order], np.arange(master.blocks + 1))
    steps = _steps(master, answer, () if start is None else start.columns)
    use = np.array([pattern.use for pattern in patterns]).reshape(len(patterns), len(master.rows))
    options = Options(
        np.vstack([use[order], steps.use]),
        np.append(np.array([pattern.cost for pattern in patterns])[order], steps.cost),
        np.append(reduced_costs(master, answer, patterns)[order], steps.loss),
        np.append(firsts, firsts[-1] + steps.starts[1:]),
    )
    weights = np.zeros(len(patterns))
    weights[: len(answer.weights)] = answer.weights[: len(master.patterns)]
    # The first of the heaviest ones, block by block: sorted by block, then by weight.
    begins = [np.lexsort((-weights[order], block[order]))[firsts[:-1]]]
    if start is not None:
        begins.append(firsts[1:] - 1)  # those of the start were added last
    ends = [np.append(begin, firsts[-1] + steps.starts[:-1]) for begin in begins]
    moves = int(min(2 * len(ends[0]) + 50, _WORK / max(options.use.size, 1)))
    kept = [chosen for chosen in ends if mend(options, _sides(master), chosen, moves)]
    if not kept:
        return NO_CHOICE
    chosen = min(kept, key=lambda each: float(options.cost[each].sum()))
    taken = tuple(patterns[order[at]] for at in chosen[: master.blocks])
    values = steps.values[chosen[master.blocks :] - firsts[-1]]
    cost = sum(pattern.cost for pattern in taken) + sum(
        column.cost * value for column, value in zip(master.columns, values.tolist(), strict=True)
    )
    return Choice(cost, taken, tuple(values.tolist()), -np.inf, {})


class Steps(NamedTuple):
    """Values that columns of no block may take: near those of the linear program, the nearest first.

    Attributes:
        values: of every column in turn.
        use: values x tying rows.
        cost: of each.
        loss: at the prices of the linear program, above the least.
        starts: values of column k are ``starts[k]:starts[k + 1]``.
    """

    values: Ints
    use: Floats
    cost: Floats
    loss: Floats
    starts: Ints


def _steps(master: Master, answer: MasterAnswer, given: Sequence[int]) -> Steps:
    values: list[int] = []
    cost: list[float] = []
    loss: list[float] = []
    starts = [0]
    rows: list[Floats] = []
    points: Sequence[float] = given or answer.columns.tolist()
    for column, point in zip(master.columns, points, strict=True):
        use = np.zeros(len(master.rows))
        for row, amount in column.use:
            use[row] += amount
        reduced = column.cost - float(use @ answer.prices)
        near = {min(max(round(point) + step, int(column.lower)), int(column.upper)) for step in _NEAR}
        for value in sorted(near, key=lambda each: (abs(each - point), each)):
            values.append(value)
            cost.append(column.cost * value)
            loss.append(reduced * (value - (column.lower if reduced > 0 else column.upper)))
            rows.append(use * value)
        starts.append(len(values))
    return Steps(
        np.array(values, dtype=np.int64),
        np.array(rows).reshape(len(values), len(master.rows)),
        np.array(cost),
        np.array(loss),
        np.array(starts, dtype=np.int64),
    )


def _sides(master: Master) -> Sides:
    """Each row weighs by its size, so that no unit counts more than another."""
    lower = np.array([row.lower for row in master.rows], dtype=np.float64)
    upper = np.array([row.upper for row in master.rows], dtype=np.float64)
    size = np.where(np.isfinite(upper), np.abs(upper), np.where(np.isfinite(lower), np.abs(lower), 1.0))
    return Sides(lower, upper, 1.0 / np.maximum(size, 1.0))


@cache
def compile_mending() -> None:
    """Compile (some seconds, once per machine) or load the kernel, so that no solve pays for it."""
    one = np.ones(1)
    options = Options(np.ones((1, 1)), one, one, np.array([0, 1], dtype=np.int64))
    mend(options, Sides(one, one, one), np.zeros(1, dtype=np.int64), 2)
