"""The pricing kernel: a least-cost covering of a few rows by whole items, for many blocks at once.

One block:  minimize  w·x + w_f·f   subject to   A·x + a_f·f ≥ b,  0 ≤ x ≤ u whole,  0 ≤ f ≤ u_f whole.
The filler f (unserved demand) has many small steps; it is never branched on, only used to finish.

Depth-first branch and bound over items in order of their cost per coverage. The bound of a node is the
largest of its rows' fractional fills, so a block of one row is bounded by its linear relaxation. A block
that runs out of nodes returns the bound of its root: every bound that leaves here is valid.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["KEPT", "Answers", "Blocks", "Weights", "compile_kernel", "price"]

KEPT: Final = 4
"""Coverings that are returned per block: the best, and those that were the best before it."""

_BESIDE: Final = 1e-3
"""Weight of what an item covers in rows other than the one that costs most."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Blocks(NamedTuple):
    """All blocks, flat.

    Attributes:
        starts: items of block s are ``starts[s]:starts[s+1]``.
        row_starts: rows of block s are ``row_starts[s]:row_starts[s+1]``.
        a: coverage, rows of the widest block x items.
        u: upper bound by item.
        b: what is owed by row.
        af: coverage of a filler step by row.
        uf: filler steps by block.
    """

    starts: Ints
    row_starts: Ints
    a: Floats
    u: Ints
    b: Floats
    af: Floats
    uf: Floats


class Weights(NamedTuple):
    """Cost by item, and of a filler step by block."""

    w: Floats
    wf: Floats


class Answers(NamedTuple):
    """Out: coverings (KEPT x items), their filler steps and values (KEPT x blocks), and a bound by block."""

    best: Ints
    fillers: Floats
    values: Floats
    bounds: Floats


class _Block(NamedTuple):
    """One block, as the symbols of the module."""

    w: Floats
    a: Floats
    u: Ints
    b: Floats
    wf: float
    af: Floats
    uf: float


class _Order(NamedTuple):
    """Items in branching order, each item's rank in it (-1: never branched on), and by ratio in each row."""

    branch: Ints
    rank: Ints
    by_row: Ints
    usable: int


class _Start(NamedTuple):
    """What is taken before the search because it costs nothing: items, filler steps, cost, and what is still owed."""

    taken: Ints
    filled: float
    cost: float
    need: Floats


@njit(cache=True)
def _take_free(block: _Block) -> _Start:
    n = block.w.shape[0]
    taken = np.zeros(n, dtype=np.int64)
    need = block.b.copy()
    cost = 0.0
    filled = 0.0
    for j in range(n):
        if block.w[j] <= 0.0:
            taken[j] = block.u[j]
            cost += block.w[j] * block.u[j]
            need -= block.a[:, j] * block.u[j]
    if block.wf < 0.0:
        filled = block.uf
        cost += block.wf * filled
        need -= block.af * filled
    return _Start(taken, filled, cost, need)


@njit(cache=True)
def _by_row(block: _Block) -> Ints:
    """Items by cost per coverage in each row."""
    rows, n = block.a.shape
    by_row = np.empty((rows, n), dtype=np.int64)
    for row in range(rows):
        ratio = np.full(n, np.inf)
        for j in range(n):
            if block.a[row, j] > 0.0:
                ratio[j] = block.w[j] / block.a[row, j]
        by_row[row] = np.argsort(ratio, kind="mergesort")
    return by_row


@njit(cache=True)
def _dearest_row(block: _Block, order: _Order) -> int:
    """The row that costs most to fill: in its order good coverings come first."""
    dearest, most = 0, -1.0
    for row in range(block.b.shape[0]):
        cost = _fill(block, order, row, 0, block.b[row])
        if cost > most:
            dearest, most = row, cost
    return dearest


@njit(cache=True)
def _order(block: _Block) -> _Order:
    rows, n = block.a.shape
    by_row = _by_row(block)
    every = np.arange(n)
    main = _dearest_row(block, _Order(every, every, by_row, n))
    score = np.full(n, np.inf)
    for j in range(n):
        covers = 0.0
        for row in range(rows):
            if block.b[row] > 0.0:
                weight = 1.0 if row == main else _BESIDE
                covers += weight * min(block.a[row, j], block.b[row]) / block.b[row]
        if covers > 0.0 and block.w[j] > 0.0 and block.u[j] > 0:
            score[j] = block.w[j] / covers
    branch = np.argsort(score, kind="mergesort")
    rank = np.full(n, -1, dtype=np.int64)
    usable = 0
    while usable < n and score[branch[usable]] < np.inf:
        rank[branch[usable]] = usable
        usable += 1
    return _Order(branch, rank, by_row, usable)


@njit(cache=True)
def _fill(block: _Block, order: _Order, row: int, depth: int, need: float) -> float:
    """Cost of covering ``need`` of one row fractionally by items of rank >= depth and by the filler."""
    cost = 0.0
    filler = block.wf / block.af[row] if block.af[row] > 0.0 else np.inf
    for position in range(order.by_row.shape[1]):
        if need <= 0.0:
            return cost
        j = order.by_row[row, position]
        if order.rank[j] < depth or block.a[row, j] <= 0.0:
            continue
        ratio = block.w[j] / block.a[row, j]
        if filler <= ratio:
            most = min(need, block.af[row] * block.uf)
            cost += most * filler
            need -= most
            filler = np.inf
        most = min(need, block.a[row, j] * block.u[j])
        cost += most * ratio
        need -= most
    if need > 0.0 and filler < np.inf:
        most = min(need, block.af[row] * block.uf)
        cost += most * filler
        need -= most
    return cost if need <= 1e-9 * max(1.0, block.b[row]) else np.inf


@njit(cache=True)
def _fills(block: _Block, order: _Order, depth: int, need: Floats) -> float:
    """The dearest row: every row must be covered, so its fill is a bound for all."""
    most = 0.0
    for row in range(need.shape[0]):
        most = max(most, _fill(block, order, row, depth, need[row]))
    return most


@njit(cache=True)
def _finish(block: _Block, need: Floats) -> float:
    """Filler steps that cover what is left; infinite where they cannot."""
    steps = 0.0
    for row in range(need.shape[0]):
        if need[row] > 0.0:
            if block.af[row] <= 0.0:
                return np.inf
            steps = max(steps, np.ceil(need[row] / block.af[row] - 1e-12))
    return steps if steps <= block.uf else np.inf


@njit(cache=True)
def _wanted(block: _Block, j: int, need: Floats) -> int:
    """The most of an item that still covers something."""
    most = 0.0
    for row in range(need.shape[0]):
        if need[row] > 0.0 and block.a[row, j] > 0.0:
            most = max(most, np.ceil(need[row] / block.a[row, j] - 1e-12))
    return int(min(block.u[j], np.int64(most)))


@njit(cache=True)
def _record(answers: Answers, taken: Ints, steps: float, value: float) -> None:
    """Put a better covering first; the others move down."""
    for slot in range(KEPT - 1, 0, -1):
        answers.values[slot] = answers.values[slot - 1]
        answers.fillers[slot] = answers.fillers[slot - 1]
        answers.best[slot] = answers.best[slot - 1]
    answers.values[0, 0] = value
    answers.fillers[0, 0] = steps
    answers.best[0] = taken


@njit(cache=True)
def _cutoff(answers: Answers, gap: float) -> float:
    best = answers.values[0, 0]
    return best - gap * abs(best) - 1e-9 if best < np.inf else np.inf


@njit(cache=True)
def _search(  # noqa: PLR0915 - one loop is one search
    block: _Block, order: _Order, start: _Start, limits: tuple[float, int], answers: Answers
) -> bool:
    """Depth-first search below ``start``; whether it was cut short."""
    gap, nodes = limits
    rows = block.b.shape[0]
    covered_by_step = block.af[0] if rows and block.uf > 0.0 else 0.0
    left = np.empty((order.usable + 1, rows))
    cost = np.empty(order.usable + 1)
    x = np.zeros(order.usable + 1, dtype=np.int64)
    left[0] = start.need
    cost[0] = start.cost
    depth = 0
    visited = 0
    entering = True
    while depth >= 0:
        if entering:
            visited += 1
            steps = _finish(block, left[depth])
            if steps < np.inf and cost[depth] + block.wf * steps < _cutoff(answers, 0.0):
                taken = start.taken.copy()
                for position in range(depth):
                    taken[order.branch[position]] += x[position]
                _record(answers, taken, start.filled + steps, cost[depth] + block.wf * steps)
            extra = _fills(block, order, depth, left[depth])
            if depth == order.usable or extra <= 0.0 or cost[depth] + extra >= _cutoff(answers, gap):
                depth -= 1
                entering = False
                continue
            x[depth] = _wanted(block, order.branch[depth], left[depth])
        else:
            if x[depth] == 0 or visited > nodes:
                depth -= 1
                continue
            x[depth] -= 1
        j = order.branch[depth]
        left[depth + 1] = left[depth] - block.a[:, j] * x[depth]
        cost[depth + 1] = cost[depth] + block.w[j] * x[depth]
        depth += 1
        entering = True
        if (
            rows == 1
            and left[depth, 0] > 0.0
            and block.wf * block.a[0, j] >= block.w[j] * covered_by_step
            and cost[depth] + _fills(block, order, depth, left[depth]) >= _cutoff(answers, gap)
        ):
            # Short of covering, fewer of the best item never bound better: what cuts this count cuts all smaller ones.
            # Not so where the filler is cheaper than the item: then what it can fill is better left to it.
            depth -= 2
            entering = False
    return visited > nodes


@njit(cache=True)
def _replaces(block: _Block, i: int, j: int) -> bool:
    """Whether some item i, so many that they cover no less, cost no more than one item j, and there is no end of them.

    Enough of an item that what is owed is covered is no end: more would cover nothing.
    """
    times = 1.0
    for row in range(block.b.shape[0]):
        if block.b[row] > 0.0:
            covers = min(block.a[row, j], block.b[row])
            if covers > 0.0:
                if block.a[row, i] <= 0.0:
                    return False
                times = max(times, np.ceil(covers / block.a[row, i] - 1e-12))
            if block.a[row, i] > 0.0 and block.u[i] * block.a[row, i] < block.b[row]:
                return False
    return bool(times * block.w[i] <= block.w[j])


@njit(cache=True)
def _without_replaceable(block: _Block) -> _Block:
    """The block without items that others replace at these prices."""
    n = block.w.shape[0]
    most = block.u.copy()
    for j in range(n):
        if block.w[j] > 0.0 and most[j] > 0:
            for i in range(n):
                if i != j and most[i] > 0 and block.w[i] > 0.0 and _replaces(block, i, j):
                    most[j] = 0
                    break
    return _Block(block.w, block.a, most, block.b, block.wf, block.af, block.uf)


@njit(cache=True)
def _cover(block: _Block, limits: tuple[float, int], answers: Answers) -> float:
    """Cover one block; a valid lower bound, infinite where there is no covering."""
    start = _take_free(block)
    rest = _Block(block.w, block.a, block.u, start.need, block.wf, block.af, block.uf - start.filled)
    rest = _without_replaceable(rest)
    order = _order(rest)
    root = _fills(rest, order, 0, start.need)
    if root == np.inf:
        return np.inf
    cut = _search(rest, order, start, limits, answers)
    if cut:
        return start.cost + root
    if answers.values[0, 0] == np.inf:
        return np.inf
    return max(start.cost + root, _cutoff(answers, limits[0]))


@njit(cache=True)
def price(blocks: Blocks, weights: Weights, limits: tuple[float, int], answers: Answers) -> None:
    """Cover all blocks.

    Args:
        blocks: what is to be covered, and by what.
        weights: what it costs at the prices of this turn.
        limits: relative gap at which a block counts as solved (stays inside its bound), and nodes per block.
        answers: filled in; bounds and values are infinite where there is no covering.
    """
    for s in range(blocks.starts.shape[0] - 1):
        lo, hi = blocks.starts[s], blocks.starts[s + 1]
        first, last = blocks.row_starts[s], blocks.row_starts[s + 1]
        block = _Block(
            weights.w[lo:hi],
            blocks.a[: last - first, lo:hi].copy(),
            blocks.u[lo:hi],
            blocks.b[first:last],
            weights.wf[s],
            blocks.af[first:last],
            blocks.uf[s],
        )
        own = Answers(
            answers.best[:, lo:hi],
            answers.fillers[:, s : s + 1],
            answers.values[:, s : s + 1],
            answers.bounds[s : s + 1],
        )
        own.bounds[0] = _cover(block, limits, own)


@cache
def compile_kernel() -> None:
    """Compile (some seconds, once per machine) or load the kernel, so that no solve pays for it."""
    one, none = np.ones(1), np.zeros(1)
    starts = np.array([0, 1], dtype=np.int64)
    blocks = Blocks(starts, starts, np.ones((1, 1)), np.ones(1, dtype=np.int64), one, none, none)
    answers = Answers(
        np.zeros((KEPT, 1), dtype=np.int64), np.zeros((KEPT, 1)), np.full((KEPT, 1), np.inf), np.zeros(1)
    )
    price(blocks, Weights(one, none), (0.0, 1), answers)
