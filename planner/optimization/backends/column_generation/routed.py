"""Blocks of services that are routed by length, as the kernel sees them: what prices tell of them at a glance.

With prices w of replicas and o_cb for the replicas of c that all of bucket b occupies, serving b costs p_b = min_c w_c·o_cb
at least, and y_c = max_b p_b/o_cb <= w_c is what a replica of c saves at most. So Σ_b p_b is a bound, and a pattern with a
replica of c costs at least w_c − y_c more: p and y are multipliers of the rows of buckets and of occupancy. Rows that are
left out here only lower it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.scaling import GRID

__all__ = [
    "BELOW",
    "NONE",
    "OTHER",
    "REPLICAS",
    "SERVED",
    "SHARE",
    "UNSERVED",
    "Part",
    "Routed",
    "drop_dear",
    "unsplit",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

OTHER: Final = 0
REPLICAS: Final = 1
SHARE: Final = 2
SERVED: Final = 3
UNSERVED: Final = 4
BELOW: Final = 5
"""What a column is: replicas, a share of a bucket on a candidate, its served or unserved share, replicas below those on order."""

NONE: Final = -1

_PASSES: Final = 8
_SURE: Final = 1e-9


class Routed(NamedTuple):
    """Columns of all blocks in a row; other columns are meant by their number within their block.

    Attributes:
        able: by block, whether it is of this kind.
        buckets: by block.
        fewest: by block, replicas that rows ask for whatever their kind.
        role: what a column is.
        host: of a share, the replicas that it is on.
        bucket: of a share, a served or an unserved one.
        occupied: of a share, replicas that the whole bucket occupies, in one row of those replicas.
        busiest: the same in the row where it is most.
        below: of replicas, the column of those below what is on order.
        alike: of replicas, whether all rows beside those of occupancy speak of all replicas of the block alike.
    """

    able: Bools
    buckets: Ints
    fewest: Ints
    role: Ints
    host: Ints
    bucket: Ints
    occupied: Floats
    busiest: Floats
    below: Ints
    alike: Bools


class Part(NamedTuple):
    """One block with prices: candidates x buckets where nothing else is said.

    Attributes:
        columns: of the replicas of each candidate.
        price: of one replica, at least.
        most: of one replica, at most: what is saved below those on order is not counted.
        occupied: as above; infinite where a bucket cannot be served.
        busiest: as above.
        spared: cost of an unserved bucket, by bucket; infinite where it must be served.
        constant: cost of other columns, at least.
    """

    columns: Ints
    price: Floats
    most: Floats
    occupied: Floats
    busiest: Floats
    spared: Floats
    constant: float


@njit(cache=True, nogil=True)
def _part(s: int, c0: int, routed: Routed, cost: Floats, ends: tuple[Floats, Floats]) -> tuple[bool, Part]:
    """The block s, whose first column is c0; False where its prices say nothing at a glance."""
    lower, upper = ends
    n = cost.shape[0]
    role = routed.role[c0 : c0 + n]
    columns = np.flatnonzero(role == REPLICAS)
    place = np.full(n, NONE, dtype=np.int64)
    place[columns] = np.arange(columns.shape[0])
    shape = (columns.shape[0], routed.buckets[s])
    occupied, busiest = np.full(shape, np.inf), np.full(shape, np.inf)
    spared = np.full(shape[1], np.inf)
    price, most = cost[columns], cost[columns]
    constant, fine = 0.0, True
    for j in range(n):
        if role[j] == SHARE:
            h, b = place[routed.host[c0 + j]], routed.bucket[c0 + j]
            occupied[h, b], busiest[h, b] = routed.occupied[c0 + j], routed.busiest[c0 + j]
            fine = fine and cost[j] == 0.0
        elif role[j] == UNSERVED:
            spared[routed.bucket[c0 + j]] = cost[j]
            fine = fine and cost[j] >= 0.0
        elif role[j] == SERVED:
            fine = fine and cost[j] == 0.0
        elif role[j] != REPLICAS:
            constant += min(cost[j] * lower[j], cost[j] * upper[j])
    for h in range(shape[0]):
        j = routed.below[c0 + columns[h]]
        if j != NONE and 0.0 < cost[j] < price[h]:
            price[h] -= cost[j]
            constant += cost[j] * upper[j]
        fine = fine and price[h] > 0.0
    return fine, Part(columns, price, most, occupied, busiest, spared, constant)


@njit(cache=True, nogil=True)
def _values(part: Part, upper: Floats) -> tuple[Floats, Floats]:
    """Least price of each bucket, and what a replica of each candidate saves at most."""
    candidates, buckets = part.occupied.shape
    paid, saves = part.spared.copy(), np.zeros(candidates)
    for b in range(buckets):
        for h in range(candidates):
            if upper[part.columns[h]] > 0.0:
                paid[b] = min(paid[b], part.price[h] * part.occupied[h, b])
        for h in range(candidates):
            if 0.0 < part.occupied[h, b] < np.inf and paid[b] < np.inf:
                saves[h] = max(saves[h], paid[b] / part.occupied[h, b])
    return paid, saves


@njit(cache=True, nogil=True)
def _replaces(part: Part, d: int, c: int) -> bool:
    """Whether a replica of d does all that one of c does, and costs no more."""
    return bool(part.most[d] <= part.price[c] and (part.busiest[d] <= part.occupied[c]).all())


@njit(cache=True, nogil=True)
def _drop_replaceable(part: Part, alike: Bools, fewest: int, lower: Floats, upper: Floats) -> None:
    """No replicas of candidates in whose place others do, of which there are enough for all that they may be asked for."""
    count = part.columns.shape[0]
    enough = np.zeros(count, dtype=np.bool_)
    for h in range(count):
        j = part.columns[h]
        whole = part.busiest[h].sum()
        enough[h] = alike[j] and whole < np.inf and upper[j] >= max(np.ceil(whole) + 1.0, float(fewest))
    for c in range(count):
        j = part.columns[c]
        if not alike[j] or lower[j] > 0.0 or upper[j] <= 0.0:
            continue
        for d in range(count):
            if d != c and enough[d] and upper[part.columns[d]] > 0.0 and _replaces(part, d, c):
                upper[j] = 0.0
                break


@njit(cache=True, nogil=True)
def drop_dear(
    at: tuple[int, int], routed: Routed, cost: Floats, ends: tuple[Floats, Floats], limits: tuple[float, bool]
) -> float:
    """Lower the ends of replicas to what patterns that cost less than a limit may have; a bound on the block.

    Args:
        at: number of the block, and its first column.
        routed: all blocks.
        cost: of one unit of each column of the block.
        ends: lower ends of its columns, and upper ones, which are lowered.
        limits: what patterns may cost, and whether only the cheapest one is wanted, so that others may take its place.
    """
    (s, c0), (lower, upper), (limit, cheapest) = at, ends, limits
    fine, part = _part(s, c0, routed, cost, ends)
    if not fine:
        return -np.inf
    n = cost.shape[0]
    if cheapest:
        _drop_replaceable(part, routed.alike[c0 : c0 + n], routed.fewest[s], lower, upper)
    paid, saves = _values(part, upper)
    bound = part.constant + paid.sum()
    for h in range(part.columns.shape[0]):
        bound += (part.price[h] - saves[h]) * lower[part.columns[h]]
    bound -= _SURE * abs(bound)
    if bound < np.inf and limit < np.inf:
        for h in range(part.columns.shape[0]):
            j, more = part.columns[h], part.price[h] - saves[h]
            if more > 0.0 and more * (upper[j] - lower[j]) > limit - bound:
                upper[j] = lower[j] + max(0.0, np.floor((limit - bound) / more + _SURE))
    return float(bound)


@njit(cache=True, nogil=True)
def _cost_of(part: Part, h: int, load: float, lower: Floats) -> float:
    """What the replicas of a candidate cost that carry a load without sharing a bucket."""
    return float(part.price[h] * max(lower[part.columns[h]], np.ceil(load - _SURE)))


@njit(cache=True, nogil=True)
def _best_move(part: Part, b: int, old: int, ends: tuple[Floats, Floats], loads: Floats) -> int:
    """The candidate to which a bucket goes best from an old one."""
    lower, upper = ends
    now = _cost_of(part, old, loads[old], lower)
    leaving = now - _cost_of(part, old, loads[old] - part.busiest[old, b], lower)
    best, gain = old, _SURE * now
    for h in range(loads.shape[0]):
        load = loads[h] + part.busiest[h, b]
        if h != old and load < np.inf and np.ceil(load - _SURE) <= upper[part.columns[h]]:
            saved = leaving - _cost_of(part, h, load, lower) + _cost_of(part, h, loads[h], lower)
            if saved > gain:
                best, gain = h, saved
    return best


@njit(cache=True, nogil=True)
def _improve(part: Part, ends: tuple[Floats, Floats], on: Ints) -> float:
    """Move whole buckets as long as that pays; what it costs then."""
    candidates, buckets = part.busiest.shape
    loads = np.zeros(candidates)
    for b in range(buckets):
        loads[on[b]] += part.busiest[on[b], b]
    moved, passes = True, 0
    while moved and passes < _PASSES:
        moved, passes = False, passes + 1
        for b in range(buckets):
            best = _best_move(part, b, on[b], ends, loads)
            if best != on[b]:
                moved = True
                loads[on[b]] -= part.busiest[on[b], b]
                loads[best] += part.busiest[best, b]
                on[b] = best
    total = 0.0
    for h in range(candidates):
        total += _cost_of(part, h, loads[h], ends[0])
    return total


@njit(cache=True, nogil=True)
def _best_places(part: Part, ends: tuple[Floats, Floats]) -> Ints:
    """A candidate for each bucket: from where each is cheapest, and from all on one."""
    candidates, buckets = part.busiest.shape
    on = np.zeros(buckets, dtype=np.int64)
    for b in range(buckets):
        on[b] = np.argmin(part.price * part.busiest[:, b])
    value = _improve(part, ends, on)
    best, least = NONE, np.inf
    for h in range(candidates):
        whole = part.busiest[h].sum()
        if whole < np.inf and np.ceil(whole - _SURE) <= ends[1][part.columns[h]]:
            alone = part.price[h] * np.ceil(whole - _SURE)
            if alone < least:
                best, least = h, alone
    if best != NONE:
        together = np.full(buckets, best, dtype=np.int64)
        if _improve(part, ends, together) < value:
            return together
    return on


@njit(cache=True, nogil=True)
def unsplit(at: tuple[int, int], routed: Routed, cost: Floats, ends: tuple[Floats, Floats], x: Ints) -> bool:
    """Values of the block in which each bucket is on one candidate, cheap ones; False where there are none at a glance.

    Args as in :func:`drop_dear`; ``x`` is the answer, of which rows beside those of routing are not looked at.
    """
    (s, c0), (lower, _) = at, ends
    fine, part = _part(s, c0, routed, cost, ends)
    if not fine or part.columns.shape[0] == 0:
        return False
    on = _best_places(part, ends)
    loads = np.zeros(part.columns.shape[0])
    for b in range(on.shape[0]):
        loads[on[b]] += part.busiest[on[b], b]
    if not loads.max() < np.inf:
        return False
    x[:] = np.ceil(lower - _SURE).astype(np.int64)
    counts = np.maximum(x[part.columns], np.ceil(loads - _SURE).astype(np.int64))
    counts[np.argmin(part.price)] += max(0, routed.fewest[s] - counts.sum())
    x[part.columns] = counts
    _follow(c0, routed, ends[1], part.columns[on], x)
    return True


@njit(cache=True, nogil=True)
def _follow(c0: int, routed: Routed, upper: Floats, on: Ints, x: Ints) -> None:
    """Shares of buckets that are all on the replicas ``on``, and replicas below those on order."""
    for j in range(x.shape[0]):
        role = routed.role[c0 + j]
        if role == SERVED:
            x[j] = GRID
        elif role == UNSERVED:
            x[j] = 0
        elif role == SHARE:
            x[j] = GRID if on[routed.bucket[c0 + j]] == routed.host[c0 + j] else 0
        elif role == REPLICAS and routed.below[c0 + j] != NONE:
            low = routed.below[c0 + j]
            x[low] = max(0, np.int64(upper[low]) - x[j])
