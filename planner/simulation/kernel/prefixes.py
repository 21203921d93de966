"""The prefix cache of a replica: blocks by hash, held by running requests, else kept until memory is wanted.

An entry stands for one prefix block of the trace, that is ``width`` KV blocks. The table is open addressing with
linear probing; entries that nobody holds form a list from least to most recently used (vLLM V1 frees the blocks of a
request from its last to its first, so that ends of prefixes go first).
"""

from __future__ import annotations

from planner.simulation.kernel import rep, slot, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.state import State

__all__ = ["let_go", "matched", "publish", "reclaim", "take", "width"]

_HASH, _HOLDERS, _OLDER, _NEWER = range(4)


@compiled
def width(st: State, r: int) -> int:
    """KV blocks of one prefix block."""
    return int(st.totals[total.HASH_BLOCK] // st.replicas[r, rep.BLOCK_SIZE])


@compiled
def _bucket(name: int, mask: int) -> int:
    mixed = name ^ (name >> 29)
    mixed = (mixed * 0x5851F42D4C957F2D) & 0x7FFFFFFFFFFFFFFF
    return int((mixed ^ (mixed >> 32)) & mask)


@compiled
def _find(st: State, r: int, name: int) -> int:
    """The bucket that holds ``name``, or the empty one where it would go."""
    table, mask = st.table[r], st.table.shape[1] - 1
    b = _bucket(name, mask)
    while table[b] and st.entries[r, table[b] - 1, _HASH] != name:
        b = (b + 1) & mask
    return b


@compiled
def _erase(st: State, r: int, b: int) -> None:
    """Empty a bucket and close the gap in its run."""
    table, mask = st.table[r], st.table.shape[1] - 1
    table[b] = 0
    gap, b = b, (b + 1) & mask
    while table[b]:
        home = _bucket(st.entries[r, table[b] - 1, _HASH], mask)
        if ((b - home) & mask) >= ((b - gap) & mask):
            table[gap], table[b], gap = table[b], 0, b
        b = (b + 1) & mask


@compiled
def _unlist(st: State, r: int, e: int) -> None:
    entries, row = st.entries[r], st.replicas[r]
    older, newer = entries[e, _OLDER], entries[e, _NEWER]
    if older:
        entries[older - 1, _NEWER] = newer
    else:
        row[rep.OLDEST] = newer
    if newer:
        entries[newer - 1, _OLDER] = older
    else:
        row[rep.NEWEST] = older


@compiled
def reclaim(st: State, r: int) -> None:
    """Forget least recently used prefixes until the blocks that were taken are there."""
    row, entries = st.replicas[r], st.entries[r]
    while row[rep.FREE] < row[rep.CACHED] and row[rep.OLDEST]:
        e = row[rep.OLDEST] - 1
        _unlist(st, r, e)
        _erase(st, r, _find(st, r, entries[e, _HASH]))
        entries[e, _NEWER] = row[rep.ENTRY_FREE]
        row[rep.ENTRY_FREE] = e + 1
        row[rep.CACHED] -= width(st, r)


@compiled
def matched(st: State, r: int, s: int) -> tuple[int, int]:
    """Leading prefix blocks of a request that are there, and how many of them nobody holds.

    At least one token stays to be computed; llm-d-inference-sim counts all of a prompt.
    """
    if not st.replicas[r, rep.PREFIX] or not st.slots[s, slot.HASHES]:
        return 0, 0
    kept = 0 if st.replicas[r, rep.KIND] == rep.WORKERS else 1
    usable = (st.slots[s, slot.TARGET] - kept) // st.totals[total.HASH_BLOCK]
    found, unheld = 0, 0
    for i in range(min(usable, st.slots[s, slot.HASHES])):
        e = st.table[r, _find(st, r, st.hashes[st.slots[s, slot.HASH_AT] + i])] - 1
        if e < 0:
            break
        found += 1
        unheld += st.entries[r, e, _HOLDERS] == 0
    return found, unheld


@compiled
def take(st: State, r: int, s: int, count: int) -> None:
    """Hold the first ``count`` prefix blocks, all of which are there."""
    row, entries = st.replicas[r], st.entries[r]
    for i in range(count):
        e = st.table[r, _find(st, r, st.hashes[st.slots[s, slot.HASH_AT] + i])] - 1
        if entries[e, _HOLDERS] == 0:
            _unlist(st, r, e)
            row[rep.FREE] -= width(st, r)
            row[rep.CACHED] -= width(st, r)
        entries[e, _HOLDERS] += 1
    st.slots[s, slot.SHARED] = count


@compiled
def _new_entry(st: State, r: int, b: int, name: int) -> None:
    row, entries = st.replicas[r], st.entries[r]
    e = row[rep.ENTRY_FREE] - 1
    if e >= 0:
        row[rep.ENTRY_FREE] = entries[e, _NEWER]
    else:
        e = row[rep.ENTRIES]
        row[rep.ENTRIES] = e + 1
    entries[e, _HASH], entries[e, _HOLDERS] = name, 1
    st.table[r, b] = e + 1


@compiled
def publish(st: State, r: int, s: int, tokens: int) -> None:
    """Make the whole prefix blocks within ``tokens`` known; where one is known already, the own copy is given back.

    Their blocks are taken and older prefixes reclaimed before, so that there is an entry for each.
    """
    if not st.replicas[r, rep.PREFIX] or not st.slots[s, slot.HASHES]:
        return
    row, entries = st.replicas[r], st.entries[r]
    inside = min(tokens, st.slots[s, slot.INPUT]) // st.totals[total.HASH_BLOCK]
    for i in range(st.slots[s, slot.SHARED], min(inside, st.slots[s, slot.HASHES])):
        name = st.hashes[st.slots[s, slot.HASH_AT] + i]
        b = _find(st, r, name)
        e = st.table[r, b] - 1
        if e < 0:
            _new_entry(st, r, b, name)
        else:
            if entries[e, _HOLDERS] == 0:
                _unlist(st, r, e)
                row[rep.CACHED] -= width(st, r)
            else:
                row[rep.FREE] += width(st, r)
                row[rep.BLOCKED] = 0
            entries[e, _HOLDERS] += 1
        st.slots[s, slot.SHARED] = i + 1


@compiled
def let_go(st: State, r: int, s: int) -> None:
    """Hold its prefix blocks no longer; those that nobody holds stay until memory is wanted."""
    row, entries = st.replicas[r], st.entries[r]
    for i in range(st.slots[s, slot.SHARED] - 1, -1, -1):
        e = st.table[r, _find(st, r, st.hashes[st.slots[s, slot.HASH_AT] + i])] - 1
        entries[e, _HOLDERS] -= 1
        if entries[e, _HOLDERS] == 0:
            entries[e, _OLDER], entries[e, _NEWER] = row[rep.NEWEST], 0
            if row[rep.NEWEST]:
                entries[row[rep.NEWEST] - 1, _NEWER] = e + 1
            else:
                row[rep.OLDEST] = e + 1
            row[rep.NEWEST] = e + 1
            row[rep.FREE] += width(st, r)
            row[rep.CACHED] += width(st, r)
    st.slots[s, slot.SHARED] = 0
