"""Every covering of one block that costs at most so much, compiled: what a better plan could be made of.

One block:  w·x + w_f·f ≤ limit,  A·x + a_f·f ≥ b,  L·x ≤ l,  0 ≤ x ≤ u whole, and f the fewest filler steps that do.
A covering from which an item can be left out is not listed: the one without it costs and uses less.

Depth-first over items in order of their cost per coverage. A node is left when its cost and the cheapest way to cover
what is still owed, row by row without regard to bounds, exceed the limit.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Coverable", "Listed", "cheapest_covering", "compile_enumeration", "coverings_within"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_EASE: Final = 1e-9
"""Part of the limit that is rounding; what is covered is counted in integers."""


class Coverable(NamedTuple):
    """One block; the symbols of the module, items in the order in which they are branched on.

    Attributes:
        w: cost by item, positive.
        a: coverage, rows x items.
        b: what is owed by row.
        u: upper bound by item.
        uses: of limits, limits x items.
        most: side of each limit.
        wf: cost of a filler step, positive.
        af: coverage of a filler step by row.
        uf: filler steps there are.
    """

    w: Floats
    a: Ints
    b: Ints
    u: Ints
    uses: Ints
    most: Ints
    wf: float
    af: Ints
    uf: int


class Listed(NamedTuple):
    """What was found.

    Attributes:
        counts: coverings x items.
        fillers: filler steps of each.
        complete: nothing was left out for want of room or time.
    """

    counts: Ints
    fillers: Ints
    complete: bool


def coverings_within(block: Coverable, limit: float, *, most: int, nodes: int) -> Listed:
    """The coverings that cost at most ``limit``.

    Args:
        block: items in any order.
        limit: largest cost that is listed.
        most: stop when more than so many are found.
        nodes: stop after so many nodes.
    """
    return _listed(block, limit, most, nodes, only_best=False)


def cheapest_covering(block: Coverable, *, nodes: int) -> Listed:
    """The cheapest covering alone; none where there is none. Not complete: it may not be the cheapest."""
    return _listed(block, np.inf, 1, nodes, only_best=True)


def _listed(block: Coverable, limit: float, most: int, nodes: int, *, only_best: bool) -> Listed:
    order = _branching_order(block)
    sorted_block = Coverable(
        block.w[order],
        np.ascontiguousarray(block.a[:, order]),
        block.b,
        block.u[order],
        np.ascontiguousarray(block.uses[:, order]),
        block.most,
        block.wf,
        block.af,
        block.uf,
    )
    bounds = _Bounds(limit, most, nodes, only_best)
    found, fillers, size, complete = _search(sorted_block, _cheapest_after(sorted_block), bounds)
    counts = np.zeros((size, len(order)), dtype=np.int64)
    counts[:, order] = found[:size]
    return Listed(counts, fillers[:size], bool(complete))


def _branching_order(block: Coverable) -> Ints:
    """Cheapest per coverage first, in the row that costs most to cover alone."""
    if not len(block.b):
        return np.argsort(block.w, kind="stable")
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(block.a > 0, block.w / block.a, np.inf)
    alone = [
        need * ratio if need > 0 else 0.0
        for need, ratio in zip(block.b, ratios.min(axis=1, initial=np.inf), strict=True)
    ]
    return np.argsort(ratios[int(np.argmax(alone))], kind="stable")


def _cheapest_after(block: Coverable) -> Floats:
    """By row and depth, the least cost per coverage of the items from there on."""
    rows, n = block.a.shape
    cheapest = np.full((rows, n + 1), np.inf)
    for row in range(rows):
        for item in range(n - 1, -1, -1):
            own = block.w[item] / block.a[row, item] if block.a[row, item] > 0 else np.inf
            cheapest[row, item] = min(own, cheapest[row, item + 1])
    return cheapest


@njit(cache=True, nogil=True)
def _rounded_up(amount: int, by: int) -> int:
    up: int = -(-amount // by)
    return up


@njit(cache=True, nogil=True)
def _fewest_fillers(block: Coverable, need: Ints) -> int:
    """Filler steps that cover the rest; -1 where they cannot."""
    steps = 0
    for row in range(len(need)):
        if need[row] > 0:
            if block.af[row] <= 0:
                return -1
            steps = max(steps, _rounded_up(need[row], block.af[row]))
    return steps if steps <= block.uf else -1


@njit(cache=True, nogil=True)
def _room(block: Coverable, item: int, need: Ints, left: Ints) -> int:
    """How many of an item help and fit."""
    most = 0
    for row in range(len(need)):
        if need[row] > 0 and block.a[row, item] > 0:
            most = max(most, _rounded_up(need[row], block.a[row, item]))
    most = min(most, block.u[item])
    for row in range(len(left)):
        if block.uses[row, item] > 0:
            most = min(most, left[row] // block.uses[row, item])
    return int(max(most, 0))


@njit(cache=True, nogil=True)
def _least(block: Coverable, cheapest: Floats, depth: int, need: Ints) -> float:
    """What covering the rest costs at least: in each row by fillers, where they are cheaper, and then by items."""
    least = 0.0
    for row in range(len(need)):
        if need[row] > 0:
            rest, cost = float(need[row]), 0.0
            if block.af[row] > 0 and block.wf / block.af[row] < cheapest[row, depth]:
                filled = min(rest, float(block.af[row] * block.uf))
                rest, cost = rest - filled, filled * block.wf / block.af[row]
            if rest > 0.0:
                cost += rest * cheapest[row, depth]
            least = max(least, cost)
    return least


class _Path(NamedTuple):
    """The way from the root to a node: counts by depth, and by depth what is owed, left of limits and paid."""

    x: Ints
    need: Ints
    left: Ints
    cost: Floats


@njit(cache=True, nogil=True)
def _step(block: Coverable, path: _Path, depth: int) -> None:
    """From a node to its child with the count that is chosen there."""
    count = path.x[depth]
    path.cost[depth + 1] = path.cost[depth] + count * block.w[depth]
    path.need[depth + 1] = path.need[depth] - count * block.a[:, depth]
    path.left[depth + 1] = path.left[depth] - count * block.uses[:, depth]


@njit(cache=True, nogil=True)
def _fillers_at(block: Coverable, path: _Path, depth: int, allowed: float) -> int:
    """Filler steps with which a node is a covering that costs no more than is allowed; -1 where it is none."""
    steps = _fewest_fillers(block, path.need[depth])
    fine = steps >= 0 and path.cost[depth] + steps * block.wf <= allowed
    return steps if fine else -1


class _Bounds(NamedTuple):
    """Of a search: largest cost, coverings, nodes, and whether what is found lowers the largest cost."""

    limit: float
    most: int
    nodes: int
    only_best: bool


@njit(cache=True, nogil=True)
def _search(block: Coverable, cheapest: Floats, bounds: _Bounds) -> tuple[Ints, Ints, int, bool]:
    n = block.w.shape[0]
    found, fillers = np.zeros((bounds.most, n), dtype=np.int64), np.zeros(bounds.most, dtype=np.int64)
    size = 0
    path = _Path(
        np.zeros(n + 1, dtype=np.int64),
        np.zeros((n + 1, block.b.shape[0]), dtype=np.int64),
        np.zeros((n + 1, block.most.shape[0]), dtype=np.int64),
        np.zeros(n + 1),
    )
    path.need[0], path.left[0] = block.b, block.most
    allowed = bounds.limit + _EASE * abs(bounds.limit)
    depth, fresh = 0, True
    for _ in range(bounds.nodes):
        if depth < 0:
            return found, fillers, size, True
        if fresh:
            leaf = depth == n or path.need[depth].max() <= 0
            steps = _fillers_at(block, path, depth, allowed) if leaf else -1
            if steps >= 0:
                if bounds.only_best:
                    size, allowed = 0, (path.cost[depth] + steps * block.wf) * (1.0 - _EASE)
                if size == bounds.most:
                    return found, fillers, size, False
                found[size, :depth] = path.x[:depth]
                found[size, depth:] = 0
                fillers[size], size = steps, size + 1
            fresh = (
                not leaf and path.cost[depth] + _least(block, cheapest, depth, path.need[depth]) <= allowed
            )
            path.x[depth] = _room(block, depth, path.need[depth], path.left[depth]) if fresh else 0
        else:
            path.x[depth] -= 1
            fresh = path.x[depth] >= 0
        if fresh:
            _step(block, path, depth)
            fresh = path.cost[depth + 1] <= allowed
            depth += fresh
        else:
            depth -= 1
    return found, fillers, size, depth < 0


@cache
def compile_enumeration() -> None:
    """Compile the search, or load it from the cache, before anybody's time runs."""
    one, ones = np.ones(1, np.int64), np.ones((1, 1), np.int64)
    block = Coverable(np.ones(1), ones, one, one, ones, one, 1.0, one, 1)
    coverings_within(block, 1.0, most=1, nodes=10)
