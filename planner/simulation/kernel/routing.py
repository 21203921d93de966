"""The router of a service: who is there, who is full, who scores best, who waits and who is refused.

Scorers as llm-d's endpoint picker has them: queue 1 - (q - min)/(max - min), KV cache 1 - usage, prefix: share of the
prompt's prefix blocks that the replica holds. The highest weighted sum wins; chance decides among equals.
"""

from __future__ import annotations

from planner.simulation.kernel import rep, slot, svc, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.ends import end, fail, leave
from planner.simulation.kernel.heaps import push_event
from planner.simulation.kernel.lists import insert_by_priority, push_back
from planner.simulation.kernel.prefixes import matched
from planner.simulation.kernel.randomness import uniform
from planner.simulation.kernel.state import State
from planner.simulation.kernel.workers import max_waiting, start_workers

__all__ = ["dispatch", "enqueue", "kv_usage", "route"]

_ANY, _ROOM = 0, 1


@compiled
def kv_usage(st: State, r: int) -> float:
    """Share of the KV blocks that running requests hold."""
    return float(1.0 - st.replicas[r, rep.FREE] / st.replicas[r, rep.BLOCKS])


@compiled
def _read(st: State, v: int, at_s: float) -> None:
    """Take the readings of a service's replicas anew where they are too old."""
    sums = st.service_sums[v]
    if sums[svc.REFRESH_S] > 0.0 and at_s < sums[svc.SEEN_AT] + sums[svc.REFRESH_S]:
        return
    sums[svc.SEEN_AT] = at_s
    for i in range(st.totals[total.ACTIVE]):
        r = st.active[i]
        row = st.replicas[r]
        if row[rep.SERVICE] == v:
            row[rep.SEEN_WAITERS], row[rep.SEEN_RUNNING] = row[rep.WAITERS], row[rep.RUNNING]
            st.replica_times[r, rep.SEEN_KV] = kv_usage(st, r)


@compiled
def _saturated(st: State, v: int, r: int) -> bool:
    row, limits = st.replicas[r], st.services[v]
    if limits[svc.MAX_IN_FLIGHT] and row[rep.RUNNING] + row[rep.WAITERS] >= limits[svc.MAX_IN_FLIGHT]:
        return True
    full = row[rep.SEEN_WAITERS] >= limits[svc.SATURATED_QUEUE] and not limits[svc.MAX_IN_FLIGHT]
    return bool(full or st.replica_times[r, rep.SEEN_KV] >= st.service_sums[v, svc.SATURATED_KV])


@compiled
def _eligible(st: State, v: int, r: int, prefill: bool, which: int) -> bool:
    row = st.replicas[r]
    if row[rep.SERVICE] != v or row[rep.STATE] != rep.READY or (row[rep.ROLE] == rep.PREFILL) != prefill:
        return False
    return which == _ANY or not _saturated(st, v, r)


@compiled
def _count_eligible(st: State, v: int, prefill: bool, which: int) -> tuple[int, int, int]:
    """How many there are, and the least and most that wait at one of them."""
    count, low, high = 0, 1 << 60, 0
    for i in range(st.totals[total.ACTIVE]):
        r = st.active[i]
        if _eligible(st, v, r, prefill, which):
            count += 1
            low, high = (
                min(low, st.replicas[r, rep.SEEN_WAITERS]),
                max(high, st.replicas[r, rep.SEEN_WAITERS]),
            )
    return count, low, high


@compiled
def _nth(st: State, v: int, prefill: bool, which: int, n: int) -> int:
    for i in range(st.totals[total.ACTIVE]):
        if _eligible(st, v, st.active[i], prefill, which):
            if n == 0:
                return int(st.active[i])
            n -= 1
    return -1


@compiled
def _score(st: State, v: int, r: int, s: int, low: int, high: int) -> float:
    sums, waiting = st.service_sums[v], st.replicas[r, rep.SEEN_WAITERS]
    score = sums[svc.W_QUEUE] * (1.0 - (waiting - low) / (high - low) if high > low else 1.0)
    score += sums[svc.W_KV] * (1.0 - st.replica_times[r, rep.SEEN_KV])
    if sums[svc.W_PREFIX] > 0.0 and st.slots[s, slot.HASHES]:
        score += sums[svc.W_PREFIX] * matched(st, r, s)[0] / st.slots[s, slot.HASHES]
    return float(score)


@compiled
def _pick(st: State, s: int, prefill: bool, which: int) -> int:
    """The replica for a request, -1 where there is none."""
    v = st.slots[s, slot.SERVICE]
    count, low, high = _count_eligible(st, v, prefill, which)
    if count == 0:
        return -1
    routing = st.services[v, svc.ROUTING]
    if routing == svc.ROUND_ROBIN:
        st.services[v, svc.TURN] += 1
        return _nth(st, v, prefill, which, (st.services[v, svc.TURN] - 1) % count)
    if routing == svc.RANDOM:
        return _nth(st, v, prefill, which, int(uniform(st.random) * count))
    best, best_score, equals = -1, -1.0, 0
    for i in range(st.totals[total.ACTIVE]):
        r = st.active[i]
        if not _eligible(st, v, r, prefill, which):
            continue
        score = _score(st, v, r, s, low, high)
        if score > best_score + 1e-12:
            best, best_score, equals = r, score, 1
        elif score >= best_score - 1e-12:
            equals += 1
            if uniform(st.random) * equals < 1.0:
                best = r
    return int(best)


@compiled
def _never_fits(st: State, r: int, s: int) -> bool:
    row, me = st.replicas[r], st.slots[s]
    if row[rep.KIND] == rep.WORKERS:
        return False
    tokens = me[slot.INPUT]
    if me[slot.DECODER] == 0 or me[slot.REMOTE]:
        tokens += me[slot.OUTPUT] - 1
    if not row[rep.CHUNKED] and tokens > row[rep.MAX_TOKENS]:
        return True
    return bool((tokens + row[rep.BLOCK_SIZE] - 1) // row[rep.BLOCK_SIZE] > row[rep.BLOCKS])


@compiled
def enqueue(st: State, s: int, r: int, at_s: float) -> None:
    """Put a request into the waiting queue of a replica; it refuses what it cannot hold or queue."""
    row, me = st.replicas[r], st.slots[s]
    me[slot.REPLICA], me[slot.PLACE] = r, slot.BACKING_OFF
    me[slot.TARGET], me[slot.COMPUTED], me[slot.CHUNK], me[slot.GENERATED] = me[slot.INPUT], 0, 0, 0
    if _never_fits(st, r, s):
        end(st, s, total.FAILED_500, at_s)
        return
    limit = row[rep.MAX_WAITING]
    if row[rep.KIND] == rep.WORKERS:
        if row[rep.RUNNING] >= row[rep.MAX_SEQS] and row[rep.WAITERS] >= max_waiting(st, r):
            fail(st, s, total.REJECTED_429, at_s)
            return
    elif limit and row[rep.WAITERS] >= limit:
        fail(st, s, total.REJECTED_429, at_s)
        return
    if row[rep.RUNNING] + row[rep.WAITERS] == 0 and not row[rep.IN_STEP]:
        st.replica_times[r, rep.START_AT] = at_s
    me[slot.PLACE] = slot.WAITING
    push_back(st.slots, row, rep.WAIT_HEAD, s)
    row[rep.WAITERS] += 1
    if row[rep.KIND] == rep.WORKERS:
        start_workers(st, r, at_s)


@compiled
def _send(st: State, s: int, r: int, at_s: float) -> None:
    """Send a request on; one that a decode replica is to serve goes to a prefill replica first, if there is one."""
    st.slots[s, slot.DECODER], st.slots[s, slot.REMOTE] = 0, 0
    if st.replicas[r, rep.ROLE] == rep.DECODE:
        first = _pick(st, s, True, _ANY)
        if first >= 0:
            st.slots[s, slot.DECODER] = r + 1
            r = first
    enqueue(st, s, r, at_s)


@compiled
def _hold(st: State, s: int, at_s: float) -> None:
    """Into the flow control queue, or 429 where it is full."""
    me = st.slots[s]
    row, sums = st.services[me[slot.SERVICE]], st.service_sums[me[slot.SERVICE]]
    crowded = row[svc.QUEUE_REQUESTS] and row[svc.QUEUED] >= row[svc.QUEUE_REQUESTS]
    heavy = row[svc.QUEUE_TOKENS] and row[svc.QUEUED_TOKENS] + me[slot.INPUT] > row[svc.QUEUE_TOKENS]
    if crowded or heavy:
        fail(st, s, total.REJECTED_429, at_s)
        return
    me[slot.PLACE] = slot.AT_ROUTER
    insert_by_priority(st.slots, row, svc.QUEUE_HEAD, s)
    row[svc.QUEUED] += 1
    row[svc.QUEUED_TOKENS] += me[slot.INPUT]
    st.totals[total.QUEUED] += 1
    if sums[svc.QUEUE_TIMEOUT_S] > 0.0:
        push_event(st, at_s + sums[svc.QUEUE_TIMEOUT_S], total.QUEUE_TIMEOUT, s)


@compiled
def route(st: State, s: int, at_s: float) -> None:
    """Decide on a request that came to the router: sent on, held, or refused."""
    me = st.slots[s]
    v = me[slot.SERVICE]
    row = st.services[v]
    me[slot.PLACE], me[slot.REPLICA], me[slot.TARGET] = slot.BACKING_OFF, -1, me[slot.INPUT]
    _read(st, v, at_s)
    there, _, _ = _count_eligible(st, v, False, _ANY)
    if there == 0:
        if row[svc.HOLD]:
            _hold(st, s, at_s)
        else:
            fail(st, s, total.REJECTED_503, at_s)
        return
    admission, which = row[svc.ADMISSION], _ANY
    if admission != svc.ADMIT_OFF:
        room, _, _ = _count_eligible(st, v, False, _ROOM)
        if admission == svc.ADMIT_QUEUE:
            which = _ROOM
            if room == 0 or row[svc.QUEUED]:
                _hold(st, s, at_s)
                return
        elif room == 0 and (admission == svc.ADMIT_REJECT or me[slot.PRIORITY] < 0):
            fail(st, s, total.REJECTED_429, at_s)
            return
    _send(st, s, _pick(st, s, False, which), at_s)


@compiled
def dispatch(st: State, at_s: float) -> None:
    """Send on who waits at routers, as far as there is room."""
    for v in range(st.services.shape[0]):
        which = _ROOM if st.services[v, svc.ADMISSION] == svc.ADMIT_QUEUE else _ANY
        while st.services[v, svc.QUEUED]:
            _read(st, v, at_s)
            s = st.services[v, svc.QUEUE_HEAD] - 1
            st.slots[s, slot.TARGET] = st.slots[s, slot.INPUT]
            r = _pick(st, s, False, which)
            if r < 0:
                break
            leave(st, s, at_s)
            _send(st, s, r, at_s)
