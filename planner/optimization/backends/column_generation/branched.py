"""Blocks of any rows as flat arrays, and the compiled loop that prices them: one dense block at a time is spread out.

Rows that others imply are left out: where routing by length has a row for the trigger and one for the surge, one of
them usually is the stricter one in every bucket.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.branching import (
    CUTS,
    KNOWN,
    branch_and_cut,
    branch_and_cut_left,
    relaxed_of,
)
from planner.optimization.backends.column_generation.narrowing import Narrow
from planner.optimization.backends.column_generation.routed import NONE, Routed, drop_dear, unsplit
from planner.optimization.backends.column_generation.routed_shape import (
    BlockRows,
    roles_of,
    routed_of,
    without_implied,
)
from planner.optimization.backends.column_generation.settling import OPEN, Exact
from planner.optimization.backends.column_generation.tree_search import Memory, Relaxed, offer, value_of
from planner.optimization.program import Column, Row
from planner.optimization.scaling import GRID

__all__ = [
    "Flat",
    "Recalled",
    "cheapest",
    "compile_branching",
    "fit_all",
    "fits",
    "flat",
    "nothing_recalled",
    "price_blocks",
    "spread",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_SHARES: Final = frozenset({"a", "y", "z", "w"})
_MOST_CELLS: Final = 5_000_000
_LARGEST_SUM: Final = 2**61
_FEWEST_NODES: Final = 100
_NEARLY: Final = 1e-6


class Flat(NamedTuple):
    """All blocks, one after the other.

    Attributes:
        columns: columns of block s are ``columns[s]:columns[s + 1]``.
        rows: rows likewise.
        terms: terms of row i are ``terms[i]:terms[i + 1]``.
        at: column of a term, counted within its block.
        value: coefficient of a term.
        low: lower side by row; -OPEN where there is none.
        high: upper side by row; OPEN where there is none.
        least: lower end by column.
        most: upper end by column.
        whole: columns that are no shares.
        routed: what is known of blocks that are routed by length.
    """

    columns: Ints
    rows: Ints
    terms: Ints
    at: Ints
    value: Ints
    low: Ints
    high: Ints
    least: Ints
    most: Ints
    whole: Bools
    routed: Routed


class Recalled(NamedTuple):
    """What blocks remember from one turn to the next, and what the last turn proved.

    Attributes:
        counts: by block, cuts and known values.
        cuts: by block, CUTS x columns.
        sides: lower and upper end of each cut, blocks x CUTS x 2.
        known: by block, KNOWN x columns.
        basic: by block, whether each column and each row (cuts at the end) was basic.
        bounds: by block.
        nodes: by block.
    """

    counts: Ints
    cuts: Floats
    sides: Floats
    known: Ints
    basic: Bools
    bounds: Floats
    nodes: Ints


def fits(block: Block) -> bool:
    """Whether a block is small enough for a dense dictionary, and its sums for 64 bits."""
    if block.fits is None:
        fit_all([block])
    return bool(block.fits)


def fit_all(blocks: Sequence[Block]) -> None:
    """Find out for many blocks at once whether they fit."""
    unknown = [block for block in blocks if block.fits is None]
    rows = [row for block in unknown for row in block.rows]
    sizes = np.array([float(sum(map(abs, row.terms.values()))) for row in rows])
    sides = np.array([_farther(row.lower, row.upper) for row in rows])
    first = 0
    for block in unknown:
        last = first + len(block.rows)
        widest = max((max(abs(column.lower), abs(column.upper)) for column in block.columns), default=0)
        largest = max(
            float(sides[first:last].max(initial=0)), widest * float(sizes[first:last].max(initial=0))
        )
        cells = len(block.columns) * (len(block.rows) + CUTS)
        block.fits = cells <= _MOST_CELLS and largest < _LARGEST_SUM
        first = last


def _farther(lower: int | None, upper: int | None) -> float:
    return float(max(abs(lower or 0), abs(upper or 0)))


def flat(blocks: Sequence[Block]) -> Flat:
    """Blocks that fit, as arrays."""
    columns = [column for block in blocks for column in block.columns]
    by_block = [list(_needed(block)) for block in blocks]
    rows = [row for of_block in by_block for row in of_block]
    starts, of_rows = _starts([len(block.columns) for block in blocks]), _starts(list(map(len, by_block)))
    position = {column.key: number for number, column in enumerate(columns)}
    counts = np.fromiter((len(row.terms) for row in rows), dtype=np.int64, count=len(rows))
    keys, n = chain.from_iterable(row.terms for row in rows), int(counts.sum())
    column = np.fromiter(map(position.__getitem__, keys), dtype=np.int64, count=n)
    value = np.fromiter(chain.from_iterable(row.terms.values() for row in rows), dtype=np.int64, count=n)
    every = BlockRows(
        columns=starts,
        rows=of_rows,
        row=np.repeat(np.arange(len(rows)), counts),
        column=column,
        value=value,
        low=np.array([-OPEN if row.lower is None else row.lower for row in rows], dtype=np.int64),
        high=np.array([OPEN if row.upper is None else row.upper for row in rows], dtype=np.int64),
        most=np.array([one.upper for one in columns], dtype=np.int64),
    )
    role = roles_of([one.key for one in columns])
    needed = without_implied(every, role)
    counts = np.bincount(needed.row, minlength=len(needed.low))
    first = starts[:-1][np.repeat(np.arange(len(blocks)), np.diff(needed.rows))[needed.row]]
    return Flat(
        columns=starts,
        rows=needed.rows,
        terms=_starts(counts.tolist()),
        at=needed.column - first,
        value=needed.value,
        low=needed.low,
        high=needed.high,
        least=np.array([one.lower for one in columns], dtype=np.int64),
        most=needed.most,
        whole=np.array([_is_whole(one) for one in columns], dtype=np.bool_),
        routed=routed_of(role, needed),
    )


def nothing_recalled(blocks: Flat) -> Recalled:
    """Memories of blocks that were never priced."""
    n, count = int(blocks.columns[-1]), len(blocks.columns) - 1
    return Recalled(
        counts=np.zeros((count, 2), dtype=np.int64),
        cuts=np.zeros(n * CUTS),
        sides=np.zeros((count, CUTS, 2)),
        known=np.zeros(n * KNOWN, dtype=np.int64),
        basic=np.zeros(0, dtype=np.bool_) if not count else _all_rows_basic(blocks),
        bounds=np.zeros(count),
        nodes=np.zeros(count, dtype=np.int64),
    )


def _all_rows_basic(blocks: Flat) -> Bools:
    columns, rows = np.diff(blocks.columns), np.diff(blocks.rows) + CUTS
    lengths = np.stack((columns, rows), axis=1).ravel()
    return np.repeat(np.tile([False, True], len(columns)), lengths)


def _is_whole(column: Column) -> bool:
    return column.key[0] not in _SHARES


def _starts(lengths: Sequence[int]) -> Ints:
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)))


def _needed(block: Block) -> Iterator[Row]:
    """Rows that no other row of the same columns implies; columns of blocks are never negative.

    Where services are routed by length there are so many that it is looked at in arrays.
    """
    if any(column.key[0] == "a" for column in block.columns):
        return iter(block.rows)
    alike: dict[frozenset[object], list[Row]] = defaultdict(list)
    for row in block.rows:
        if row.upper is None and row.lower == 0:
            alike[frozenset(row.terms)].append(row)
    implied: set[int] = set()
    for rows in alike.values():
        for row in rows:
            others = (other for other in rows if other is not row and id(other) not in implied)
            if any(_implies(other, row) for other in others):
                implied.add(id(row))
    return (row for row in block.rows if id(row) not in implied)


def _implies(one: Row, other: Row) -> bool:
    """Whether ``one >= 0`` implies ``other >= 0`` for columns >= 0: a multiple of it is nowhere larger."""
    key = next((key for key, value in one.terms.items() if value > 0), None)
    if key is None or other.terms[key] <= 0:
        return False
    mine, its = one.terms[key], other.terms[key]
    return all(value * its <= other.terms[k] * mine for k, value in one.terms.items())


@njit(cache=True, nogil=True)
def spread(s: int, blocks: Flat, room: int) -> tuple[Exact, Relaxed]:
    """One block, dense: exactly, and as the relaxation has it with so much room for cuts."""
    c0, c1 = blocks.columns[s], blocks.columns[s + 1]
    r0, r1 = blocks.rows[s], blocks.rows[s + 1]
    a = np.zeros((r1 - r0, c1 - c0), dtype=np.int64)
    for i in range(r0, r1):
        for t in range(blocks.terms[i], blocks.terms[i + 1]):
            a[i - r0, blocks.at[t]] = blocks.value[t]
    least, most = blocks.least[c0:c1], blocks.most[c0:c1]
    exact = Exact(a, blocks.low[r0:r1], blocks.high[r0:r1], least, most, blocks.whole[c0:c1])
    return exact, relaxed_of(exact, room)


@njit(cache=True, nogil=True)
def _is_pattern(s: int, blocks: Flat, x: Ints) -> bool:
    """Whether values are between the ends of the columns and keep every row."""
    c0, c1 = blocks.columns[s], blocks.columns[s + 1]
    if ((x < blocks.least[c0:c1]) | (x > blocks.most[c0:c1])).any():
        return False
    for i in range(blocks.rows[s], blocks.rows[s + 1]):
        activity = 0
        for t in range(blocks.terms[i], blocks.terms[i + 1]):
            activity += blocks.value[t] * x[blocks.at[t]]
        if activity < blocks.low[i] or activity > blocks.high[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _ends_left(s: int, blocks: Flat, lower: Floats, upper: Floats) -> tuple[Ints, Ints]:
    """Ends of the columns in whole steps, where those of replicas were lowered: shares go with their replicas."""
    c0, routed = blocks.columns[s], blocks.routed
    n = lower.shape[0]
    least, most = blocks.least[c0 : c0 + n].copy(), blocks.most[c0 : c0 + n].copy()
    for j in range(n):
        host = routed.host[c0 + j]
        if blocks.whole[c0 + j]:
            least[j] = np.int64(np.ceil(lower[j] - _NEARLY))
            most[j] = np.int64(np.floor(upper[j] + _NEARLY))
        elif host != NONE and routed.busiest[c0 + j] > 0.0:
            room = np.floor(upper[host] + _NEARLY) * GRID / routed.busiest[c0 + j]
            if room < most[j]:
                most[j] = max(least[j], np.int64(np.floor(room * (1.0 + 1e-12))))
    return least, most


@njit(cache=True, nogil=True)
def _what_is_left(s: int, blocks: Flat, lower: Floats, upper: Floats) -> Narrow:
    """A block without the columns that have no choice, and without the rows that speak of none."""
    least, most = _ends_left(s, blocks, lower, upper)
    columns = np.flatnonzero(least < most)
    place = np.full(least.shape[0], NONE, dtype=np.int64)
    place[columns] = np.arange(columns.shape[0])
    r0, m = blocks.rows[s], blocks.rows[s + 1] - blocks.rows[s]
    kept = np.zeros(m, dtype=np.bool_)
    for i in range(m):
        for t in range(blocks.terms[r0 + i], blocks.terms[r0 + i + 1]):
            kept[i] = kept[i] or place[blocks.at[t]] != NONE
    rows = np.flatnonzero(kept)
    a = np.zeros((rows.shape[0], columns.shape[0]), dtype=np.int64)
    low, high = blocks.low[r0 + rows], blocks.high[r0 + rows]
    for r in range(rows.shape[0]):
        shift = 0
        for t in range(blocks.terms[r0 + rows[r]], blocks.terms[r0 + rows[r] + 1]):
            k = place[blocks.at[t]]
            if k == NONE:
                shift += blocks.value[t] * least[blocks.at[t]]
            else:
                a[r, k] = blocks.value[t]
        low[r] = low[r] - shift if low[r] > -OPEN else low[r]
        high[r] = high[r] - shift if high[r] < OPEN else high[r]
    whole = blocks.whole[blocks.columns[s] + columns]
    return Narrow(columns, rows, least, Exact(a, low, high, least[columns], most[columns], whole))


@njit(cache=True, nogil=True)
def _price_routed(
    s: int, blocks: Flat, memory: Memory, cost: Floats, limits: tuple[float, int]
) -> tuple[bool, float, int]:
    """Price a block that is routed by length among what a cheaper pattern can have; False where that is everything."""
    (gap, most), c0, n = limits, blocks.columns[s], cost.shape[0]
    whole = blocks.whole[c0 : c0 + n]
    grid = np.where(whole, 1.0, float(GRID))
    lower, upper = blocks.least[c0 : c0 + n] / grid, blocks.most[c0 : c0 + n] / grid
    best = np.inf
    for k in range(memory.counts[1]):
        best = min(best, value_of(cost, grid, memory.known[k]))
    x = np.zeros(n, dtype=np.int64)
    if unsplit((s, c0), blocks.routed, cost, (lower, upper), x) and _is_pattern(s, blocks, x):
        best = offer(memory, cost, grid, x, best)
    before = upper.copy()
    enough = best - gap * abs(best) if best < np.inf else best
    drop_dear((s, c0), blocks.routed, cost, (lower, upper), (enough, True))
    if not (upper < before).any():
        return False, best, 0
    left = _what_is_left(s, blocks, lower, upper)
    x[:] = left.fixed
    x[left.columns] = 0
    constant = value_of(cost, grid, x)
    found, nodes, own = branch_and_cut_left(left, memory, cost, (gap, most, best - constant))
    for known in range(own.shape[0]):
        x = left.fixed.copy()
        x[left.columns] = own[known]
        if _is_pattern(s, blocks, x):
            best = offer(memory, cost, grid, x, best)
    return True, min(found + constant, enough), nodes


@njit(cache=True, nogil=True)
def price_blocks(
    which: Ints, blocks: Flat, recalled: Recalled, cost: Floats, limits: tuple[float, int]
) -> None:
    """Price some blocks; what is found is in ``recalled``.

    Args:
        which: numbers of blocks.
        blocks: all blocks.
        recalled: moved on for those blocks.
        cost: of one step of every column.
        limits: relative gap at which a block counts as solved, and nodes times cells of a block at most.
    """
    for s in which:
        c0, c1 = blocks.columns[s], blocks.columns[s + 1]
        n, m = c1 - c0, blocks.rows[s + 1] - blocks.rows[s]
        start = c0 + blocks.rows[s] + s * CUTS
        count = recalled.counts[s, 0]
        memory = Memory(
            np.array([m + count, recalled.counts[s, 1]]),
            recalled.known[c0 * KNOWN : c1 * KNOWN].reshape((KNOWN, n)),
            recalled.basic[start : start + n + m + CUTS],
        )
        of_units = cost[c0:c1] * np.where(blocks.whole[c0:c1], 1.0, float(GRID))
        most = max(_FEWEST_NODES, limits[1] // (n * m))
        if blocks.routed.able[s]:
            done, bound, nodes = _price_routed(s, blocks, memory, of_units, (limits[0], most))
            recalled.counts[s, 1] = memory.counts[1]
            if done:
                recalled.bounds[s], recalled.nodes[s] = bound, nodes
                continue
        exact, relaxed = spread(s, blocks, CUTS)
        cuts = recalled.cuts[c0 * CUTS : c1 * CUTS].reshape((CUTS, n))
        relaxed.a[m : m + count] = cuts[:count]
        relaxed.lower[n + m :], relaxed.upper[n + m :] = recalled.sides[s, :, 0], recalled.sides[s, :, 1]
        recalled.bounds[s], recalled.nodes[s] = branch_and_cut(
            relaxed, exact, memory, of_units, (limits[0], most, np.inf)
        )
        count = memory.counts[0] - m
        recalled.counts[s, 0], recalled.counts[s, 1] = count, memory.counts[1]
        cuts[:count] = relaxed.a[m : m + count]
        recalled.sides[s, :, 0], recalled.sides[s, :, 1] = relaxed.lower[n + m :], relaxed.upper[n + m :]


@njit(cache=True, nogil=True)
def cheapest(columns: Ints, recalled: Recalled, cost: Floats) -> tuple[Ints, Ints]:
    """Of every block the cheapest known values (all columns in a row), and which they are (-1: none is known)."""
    chosen = np.zeros(columns[-1], dtype=np.int64)
    at = np.full(columns.shape[0] - 1, -1, dtype=np.int64)
    for s in range(at.shape[0]):
        c0, c1 = columns[s], columns[s + 1]
        n = c1 - c0
        least = np.inf
        for k in range(recalled.counts[s, 1]):
            start = c0 * KNOWN + k * n
            value = 0.0
            for j in range(n):
                value += cost[c0 + j] * recalled.known[start + j]
            if value < least:
                at[s], least = k, value
        if at[s] >= 0:
            start = c0 * KNOWN + at[s] * n
            chosen[c0:c1] = recalled.known[start : start + n]
    return chosen, at


@cache
def compile_branching() -> None:
    """Compile (half a minute, once per machine) or load the kernel, so that no solve pays for it."""
    one = Column(("n", "one"), 0, 2)
    blocks = flat([Block([one], [Row(("rate",), {one.key: 2}, lower=1)])])
    recalled = nothing_recalled(blocks)
    price_blocks(np.zeros(1, dtype=np.int64), blocks, recalled, np.ones(1), (0.0, 8))
    cheapest(blocks.columns, recalled, np.ones(1))
