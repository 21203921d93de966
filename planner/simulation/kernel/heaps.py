"""Binary heaps in arrays: one per replica (what is due at which step or time), and one of events."""

from __future__ import annotations

from planner.simulation.kernel import rep, slot, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.state import State

__all__ = ["drop", "next_key", "pop_event", "push", "push_event"]


@compiled
def _sink(st: State, r: int, i: int, count: int) -> None:
    keys, items = st.heap_keys[r], st.heap_items[r]
    key, s, admission = keys[i], items[i, 0], items[i, 1]
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and (
            keys[child + 1] < keys[child]
            or (keys[child + 1] == keys[child] and items[child + 1, 1] < items[child, 1])
        ):
            child += 1
        if keys[child] > key or (keys[child] == key and items[child, 1] >= admission):
            break
        keys[i], items[i, 0], items[i, 1] = keys[child], items[child, 0], items[child, 1]
        i = child
    keys[i], items[i, 0], items[i, 1] = key, s, admission


@compiled
def _stale(st: State, r: int, i: int) -> bool:
    return bool(st.slots[st.heap_items[r, i, 0], slot.ADMISSION] != st.heap_items[r, i, 1])


@compiled
def _clean(st: State, r: int) -> None:
    """Throw stale entries away: their requests have left the batch."""
    keys, items, kept = st.heap_keys[r], st.heap_items[r], 0
    for i in range(st.replicas[r, rep.HEAP]):
        if not _stale(st, r, i):
            keys[kept], items[kept, 0], items[kept, 1] = keys[i], items[i, 0], items[i, 1]
            kept += 1
    st.replicas[r, rep.HEAP] = kept
    for i in range(kept // 2 - 1, -1, -1):
        _sink(st, r, i, kept)


@compiled
def push(st: State, r: int, key: float, s: int) -> None:
    """Slot ``s`` of replica ``r`` is due at ``key``."""
    if st.replicas[r, rep.HEAP] == st.heap_keys.shape[1]:
        _clean(st, r)
    keys, items, admission = st.heap_keys[r], st.heap_items[r], st.slots[s, slot.ADMISSION]
    i = st.replicas[r, rep.HEAP]
    st.replicas[r, rep.HEAP] = i + 1
    while i > 0:
        above = (i - 1) // 2
        if keys[above] < key or (keys[above] == key and items[above, 1] < admission):
            break
        keys[i], items[i, 0], items[i, 1] = keys[above], items[above, 0], items[above, 1]
        i = above
    keys[i], items[i, 0], items[i, 1] = key, s, admission


@compiled
def drop(st: State, r: int) -> int:
    """Take the first one out; its slot."""
    first, count = st.heap_items[r, 0, 0], st.replicas[r, rep.HEAP] - 1
    st.replicas[r, rep.HEAP] = count
    if count > 0:
        st.heap_keys[r, 0] = st.heap_keys[r, count]
        st.heap_items[r, 0, 0], st.heap_items[r, 0, 1] = (
            st.heap_items[r, count, 0],
            st.heap_items[r, count, 1],
        )
        _sink(st, r, 0, count)
    return int(first)


@compiled
def next_key(st: State, r: int) -> float:
    """The first key, infinity where nothing is due."""
    while st.replicas[r, rep.HEAP] > 0 and _stale(st, r, 0):
        drop(st, r)
    return float(st.heap_keys[r, 0]) if st.replicas[r, rep.HEAP] > 0 else float("inf")


@compiled
def _before(st: State, i: int, j: int) -> bool:
    if st.event_times[i] != st.event_times[j]:
        return bool(st.event_times[i] < st.event_times[j])
    return bool(st.events[i, total.E_SEQ] < st.events[j, total.E_SEQ])


@compiled
def _swap(st: State, i: int, j: int) -> None:
    st.event_times[i], st.event_times[j] = st.event_times[j], st.event_times[i]
    for k in range(total.EVENT_WIDTH):
        st.events[i, k], st.events[j, k] = st.events[j, k], st.events[i, k]


@compiled
def push_event(st: State, at_s: float, kind: int, s: int) -> None:
    """Something happens to the request in slot ``s``."""
    i = st.totals[total.EVENTS]
    st.totals[total.EVENTS] = i + 1
    st.totals[total.EVENT_SEQ] += 1
    st.event_times[i] = at_s
    st.events[i, total.E_KIND], st.events[i, total.E_SLOT] = kind, s
    st.events[i, total.E_REQUEST] = st.slots[s, slot.REQUEST]
    st.events[i, total.E_TRY], st.events[i, total.E_SEQ] = (
        st.slots[s, slot.ATTEMPTS],
        st.totals[total.EVENT_SEQ],
    )
    while i > 0 and _before(st, i, (i - 1) // 2):
        _swap(st, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def pop_event(st: State) -> tuple[int, int, int, int]:
    """Take the first event out: kind, slot, request, try."""
    first = st.events[0]
    taken = (first[total.E_KIND], first[total.E_SLOT], first[total.E_REQUEST], first[total.E_TRY])
    count = st.totals[total.EVENTS] - 1
    st.totals[total.EVENTS] = count
    _swap(st, 0, count)
    i = 0
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _before(st, child + 1, child):
            child += 1
        if not _before(st, child, i):
            break
        _swap(st, i, child)
        i = child
    return taken
