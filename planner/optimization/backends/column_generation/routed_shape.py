"""Which blocks are services routed by length, and what their columns are: read from rows as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.optimization.backends.column_generation.routed import (
    BELOW,
    NONE,
    OTHER,
    REPLICAS,
    SERVED,
    SHARE,
    UNSERVED,
    Routed,
)
from planner.optimization.backends.column_generation.settling import OPEN
from planner.optimization.program import Key
from planner.optimization.scaling import GRID

__all__ = ["BlockRows", "roles_of", "routed_of", "without_implied"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_ROLES: Final = {"n": REPLICAS, "a": SHARE, "y": SERVED, "z": UNSERVED, "down": BELOW}
_CLEARLY: Final = 1e-12
"""Part by which a row is stricter than another at least, beyond the rounding of floats."""

_OF_A_SHARE: Final = 3
"""Names in the key of a share; after the loss of a failure domain it has one more."""


class BlockRows(NamedTuple):
    """Rows of all blocks; columns are counted through all blocks.

    Attributes:
        columns: columns of block s are ``columns[s]:columns[s + 1]``.
        rows: rows likewise.
        row: of each term.
        column: of each term.
        value: of each term.
        low: by row.
        high: by row.
        most: by column.
    """

    columns: Ints
    rows: Ints
    row: Ints
    column: Ints
    value: Ints
    low: Ints
    high: Ints
    most: Ints


class _Kinds(NamedTuple):
    """Rows by what they say."""

    occupancy: Bools
    bucket: Bools
    pair: Bools
    below: Bools
    closed: Bools


def roles_of(keys: Sequence[Key]) -> Ints:
    """What columns are by their keys."""
    return np.array([_role(key) for key in keys], dtype=np.int64)


def without_implied(blocks: BlockRows, role: Ints) -> BlockRows:
    """The rows but those of occupancy that the other one of the same replicas and shares implies: trigger or surge."""
    kinds = _kinds(role, blocks)
    replicas, busy = _replicas_of(role, blocks, kinds)
    some = np.flatnonzero(kinds.occupancy)
    order = some[np.argsort(replicas[some], kind="stable")]
    alone = np.bincount(replicas[some], minlength=len(role))
    pair = (replicas[order[:-1]] == replicas[order[1:]]) & (alone[replicas[order[:-1]]] == 2)  # noqa: PLR2004
    firsts, seconds = order[:-1][pair], order[1:][pair]
    kind = np.zeros(len(blocks.low), dtype=np.int64)
    kind[firsts], kind[seconds] = 1, 2
    loading = role[blocks.column] == SHARE
    in_first, in_second = loading & (kind[blocks.row] == 1), loading & (kind[blocks.row] == 2)  # noqa: PLR2004
    other = np.full(len(role), np.nan)
    other[blocks.column[in_second]] = busy[in_second]
    terms = np.bincount(blocks.row, minlength=len(blocks.low))
    ratio = busy[in_first] / other[blocks.column[in_first]]
    most, least = np.full(len(blocks.low), -np.inf), np.full(len(blocks.low), np.inf)
    np.maximum.at(most, blocks.row[in_first], ratio)
    np.minimum.at(least, blocks.row[in_first], ratio)
    same = terms[firsts] == terms[seconds]
    implied = np.zeros(len(blocks.low), dtype=bool)
    implied[firsts[same & (most[firsts] < 1 - _CLEARLY)]] = True
    implied[seconds[same & (least[firsts] > 1 + _CLEARLY)]] = True
    return _kept(blocks, ~implied)


def _kept(blocks: BlockRows, kept: Bools) -> BlockRows:
    """Some of the rows."""
    number = np.cumsum(kept) - 1
    terms = kept[blocks.row]
    before = np.concatenate(([0], np.cumsum(kept)))
    return blocks._replace(
        rows=before[blocks.rows],
        row=number[blocks.row[terms]],
        column=blocks.column[terms],
        value=blocks.value[terms],
        low=blocks.low[kept],
        high=blocks.high[kept],
    )


def _replicas_of(role: Ints, blocks: BlockRows, kinds: _Kinds) -> tuple[Ints, Floats]:
    """The replicas of each row of occupancy, and by term what a whole share takes of one of them."""
    rows = len(blocks.low)
    carried = kinds.occupancy[blocks.row] & (role[blocks.column] == REPLICAS)
    replicas, one = np.full(rows, NONE, dtype=np.int64), np.ones(rows)
    replicas[blocks.row[carried]], one[blocks.row[carried]] = blocks.column[carried], blocks.value[carried]
    return replicas, -blocks.value * float(GRID) / one[blocks.row]


def routed_of(role: Ints, blocks: BlockRows) -> Routed:
    """What the columns of all blocks are."""
    role = role.copy()
    n, count = len(role), len(blocks.columns) - 1
    owner = np.repeat(np.arange(count), np.diff(blocks.columns))
    first = blocks.columns[:-1][owner] if n else np.zeros(0, dtype=np.int64)
    kinds = _kinds(role, blocks)
    role[blocks.column[kinds.closed[blocks.row]]] = OTHER  # shares of candidates that have no room are none
    bucket = _buckets(role, blocks, kinds)
    host, occupied, busiest = _occupancies(role, blocks, kinds)
    below, alike, fewest = _others(role, blocks, kinds, owner)
    shares = role == SHARE
    fits = ~np.isin(role, (SHARE, SERVED, UNSERVED)) | (bucket != NONE)
    fits &= ~shares | (host != NONE)
    unfit = np.bincount(owner[~fits], minlength=count)
    per_block = np.zeros(count, dtype=np.int64)
    np.add.at(per_block, np.repeat(np.arange(count), np.diff(blocks.rows))[kinds.bucket], 1)
    local = np.where(host != NONE, host - first, NONE)
    lower = np.where(below != NONE, below - first, NONE)
    able = (unfit == 0) & (per_block > 0) & (np.bincount(owner[shares], minlength=count) > 0)
    return Routed(able, per_block, fewest, role, local, bucket, occupied, busiest, lower, alike)


def _role(key: Key) -> int:
    role = _ROLES.get(key[0], OTHER)
    return OTHER if role == SHARE and len(key) != _OF_A_SHARE else role


def _kinds(role: Ints, blocks: BlockRows) -> _Kinds:
    rows, of_term, value = len(blocks.low), role[blocks.column], blocks.value

    def counted(which: Bools) -> Ints:
        return np.bincount(blocks.row[which], minlength=rows)

    terms = counted(np.ones(len(value), dtype=bool))
    replicas, shares = counted(of_term == REPLICAS), counted(of_term == SHARE)
    served, unserved = counted(of_term == SERVED), counted(of_term == UNSERVED)
    carrying = counted((of_term == REPLICAS) & (value > 0))
    loading, routing = counted((of_term == SHARE) & (value < 0)), counted((of_term == SHARE) & (value == 1))
    asked = counted((of_term == SERVED) & (value == -1))
    equal = blocks.low == blocks.high
    open_ = blocks.high >= OPEN
    bucket = equal & (routing > 0) & (routing + asked == terms) & (asked <= 1)
    bucket &= np.where(asked == 1, blocks.low == 0, blocks.low == GRID)
    pair = equal & (served == 1) & (unserved == 1) & (terms == 2) & (blocks.low == GRID)  # noqa: PLR2004
    pair &= counted(value == 1) == terms
    less = counted((of_term == BELOW) & (value == 1))
    below = open_ & (less == 1) & (replicas == 1) & (terms == 2) & (counted(value == 1) == terms)  # noqa: PLR2004
    occupancy = (blocks.low == 0) & open_ & (carrying == 1) & (replicas == 1)
    occupancy &= (loading == shares) & (shares > 0) & (shares + replicas == terms)
    closed = (blocks.low == 0) & open_ & (loading == terms) & (terms > 0)
    return _Kinds(occupancy, bucket, pair, below, closed)


def _buckets(role: Ints, blocks: BlockRows, kinds: _Kinds) -> Ints:
    """The bucket of each share, of each served and of each unserved share; NONE where it is not in one row alone."""
    before: Ints = np.cumsum(kinds.bucket) - kinds.bucket
    first = before[np.minimum(blocks.rows[:-1], max(len(before) - 1, 0))] if len(before) else np.zeros(0, int)
    number = before - np.repeat(first, np.diff(blocks.rows))
    found = np.full(len(role), NONE, dtype=np.int64)
    in_bucket = kinds.bucket[blocks.row]
    found[blocks.column[in_bucket]] = number[blocks.row[in_bucket]]
    found[np.bincount(blocks.column[in_bucket], minlength=len(role)) != 1] = NONE
    of_pair = np.full(len(blocks.low), NONE, dtype=np.int64)
    in_pair, of_term = kinds.pair[blocks.row], role[blocks.column]
    served = in_pair & (of_term == SERVED)
    of_pair[blocks.row[served]] = found[blocks.column[served]]
    unserved = in_pair & (of_term == UNSERVED)
    found[blocks.column[unserved]] = of_pair[blocks.row[unserved]]
    lonely = (role == SERVED) & (np.bincount(blocks.column[served], minlength=len(role)) != 1)
    found[lonely] = NONE
    return found


def _occupancies(role: Ints, blocks: BlockRows, kinds: _Kinds) -> tuple[Ints, Floats, Floats]:
    """Of each share its replicas, and what the whole bucket occupies: in the fullest row of those, and at most."""
    n, rows = len(role), len(blocks.low)
    host, occupied, busiest = np.full(n, NONE, dtype=np.int64), np.zeros(n), np.zeros(n)
    replicas, every = _replicas_of(role, blocks, kinds)
    loading = kinds.occupancy[blocks.row] & (role[blocks.column] != REPLICAS)
    share, row, busy = blocks.column[loading], blocks.row[loading], every[loading]
    host[share] = replicas[row]
    np.maximum.at(busiest, share, busy)
    strange = np.zeros(n, dtype=bool)
    strange[share[host[share] != replicas[row]]] = True
    host[strange] = NONE
    totals = np.bincount(row, weights=busy, minlength=rows)
    some = np.flatnonzero(kinds.occupancy)
    order = some[np.lexsort((totals[some], replicas[some]))]
    fullest = np.full(n, NONE, dtype=np.int64)
    fullest[replicas[order]] = order
    chosen = fullest[replicas[row]] == row
    occupied[share[chosen]] = busy[chosen]
    return host, occupied, busiest


def _others(role: Ints, blocks: BlockRows, kinds: _Kinds, owner: Ints) -> tuple[Ints, Bools, Ints]:
    """Of replicas those below what is on order and whether rows speak of all alike; replicas that rows ask for, by block."""
    n, rows, count = len(role), len(blocks.low), len(blocks.columns) - 1
    below, alike = np.full(n, NONE, dtype=np.int64), np.ones(n, dtype=bool)
    of_term = role[blocks.column]
    less = kinds.below[blocks.row] & (of_term == BELOW)
    column = np.full(rows, NONE, dtype=np.int64)
    column[blocks.row[less]] = blocks.column[less]
    more = kinds.below[blocks.row] & (of_term == REPLICAS)
    matching = blocks.low[blocks.row[more]] == blocks.most[column[blocks.row[more]]]
    below[blocks.column[more][matching]] = column[blocks.row[more]][matching]
    alike[blocks.column[more][~matching]] = False
    special = (of_term == REPLICAS) & ~kinds.occupancy[blocks.row] & ~kinds.below[blocks.row]
    row, value = blocks.row[special], blocks.value[special]
    all_replicas = np.bincount(owner[role == REPLICAS], minlength=count)
    of_block = np.repeat(np.arange(count), np.diff(blocks.rows))
    terms = np.bincount(blocks.row, minlength=rows)
    least, most = np.full(rows, OPEN, dtype=np.int64), np.full(rows, -OPEN, dtype=np.int64)
    np.minimum.at(least, row, value)
    np.maximum.at(most, row, value)
    same = (least == most) & (least > 0) & (terms == all_replicas[of_block])
    same &= np.bincount(row, minlength=rows) == terms
    alike[blocks.column[special][~same[row]]] = False
    fewest = np.zeros(count, dtype=np.int64)
    asking = np.flatnonzero(same & (blocks.low > -OPEN))
    np.maximum.at(fewest, of_block[asking], -(-blocks.low[asking] // least[asking]))
    return below, alike, fewest
