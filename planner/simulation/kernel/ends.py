"""How requests leave: a place, a replica, the twin. Every request that arrived is in one place or has one row."""

from __future__ import annotations

from planner.simulation.kernel import rep, slot, svc, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.heaps import push_event
from planner.simulation.kernel.lists import unlink
from planner.simulation.kernel.prefixes import let_go, width
from planner.simulation.kernel.state import State

__all__ = [
    "end",
    "fail",
    "finish",
    "free_blocks",
    "hand_over",
    "leave",
    "leave_batch",
    "note_first",
    "release_held",
    "retire_if_empty",
]


@compiled
def free_blocks(st: State, s: int, tokens: int) -> int:
    """Blocks of its own that a request with so many KV tokens has (the shared ones are the prefix cache's)."""
    r = st.slots[s, slot.REPLICA]
    size = st.replicas[r, rep.BLOCK_SIZE]
    own = (tokens + size - 1) // size
    if st.slots[s, slot.SHARED]:
        own -= st.slots[s, slot.SHARED] * width(st, r)
    return int(own)


@compiled
def leave_batch(st: State, s: int) -> int:
    """Take a running request out of its batch: its blocks of its own, which the caller frees or holds."""
    r = st.slots[s, slot.REPLICA]
    row, me = st.replicas[r], st.slots[s]
    unlink(st.slots, row, rep.RUN_HEAD, s)
    row[rep.RUNNING] -= 1
    row[rep.BLOCKED] = 0
    if me[slot.PLACE] == slot.DECODING:
        length = me[slot.BASE] + row[rep.STEPS]
        row[rep.DECODING] -= 1
        row[rep.CONTEXT] -= length
        st.phases[r, me[slot.BASE] % row[rep.BLOCK_SIZE]] -= 1
        me[slot.GENERATED] = me[slot.OUTPUT] - (me[slot.FINISH] - row[rep.STEPS])
        own = free_blocks(st, s, length + row[rep.IN_STEP])
    elif me[slot.PLACE] == slot.PREFILLING:
        own = free_blocks(st, s, me[slot.COMPUTED] + me[slot.CHUNK])
    else:
        own = me[slot.HELD]
        me[slot.HELD] = 0
    me[slot.ADMISSION] += 1
    let_go(st, r, s)
    return int(own)


@compiled
def retire_if_empty(st: State, r: int, at_s: float) -> None:
    """A draining replica that has nothing left is gone."""
    row = st.replicas[r]
    if row[rep.STATE] == rep.DRAINING and row[rep.RUNNING] + row[rep.WAITERS] + row[rep.HOLDS] == 0:
        row[rep.STATE] = rep.REMOVED
        st.replica_times[r, rep.REMOVED_AT] = at_s
        st.totals[total.REMOVALS] += 1


@compiled
def _unblock(st: State, r: int, at_s: float) -> None:
    """Whoever waits first may try again, from now on."""
    st.replicas[r, rep.BLOCKED] = 0
    if st.replicas[r, rep.KIND] != rep.WORKERS:
        st.replica_times[r, rep.START_AT] = max(st.replica_times[r, rep.START_AT], at_s)


@compiled
def release_held(st: State, s: int, at_s: float) -> None:
    """The KV cache of a request was fetched, or is not wanted any more: its first replica frees it."""
    r, decoder = st.slots[s, slot.HELD_BY] - 1, st.slots[s, slot.DECODER] - 1
    if r < 0:
        return
    st.replicas[r, rep.FREE] += st.slots[s, slot.HELD]
    st.replicas[r, rep.HOLDS] -= 1
    _unblock(st, r, at_s)
    st.replicas[decoder, rep.HOLDS] -= 1
    st.slots[s, slot.HELD_BY], st.slots[s, slot.HELD] = 0, 0
    retire_if_empty(st, r, at_s)
    retire_if_empty(st, decoder, at_s)


@compiled
def leave(st: State, s: int, at_s: float) -> None:
    """Take a request out of wherever it is."""
    place, me = st.slots[s, slot.PLACE], st.slots[s]
    if place == slot.AT_ROUTER:
        row = st.services[me[slot.SERVICE]]
        unlink(st.slots, row, svc.QUEUE_HEAD, s)
        row[svc.QUEUED] -= 1
        row[svc.QUEUED_TOKENS] -= me[slot.INPUT]
        st.totals[total.QUEUED] -= 1
    elif place == slot.WAITING:
        r = me[slot.REPLICA]
        unlink(st.slots, st.replicas[r], rep.WAIT_HEAD, s)
        st.replicas[r, rep.WAITERS] -= 1
        _unblock(st, r, at_s)
        retire_if_empty(st, r, at_s)
    elif place == slot.TRANSFERRING:
        release_held(st, s, at_s)
    elif place != slot.BACKING_OFF:
        r = me[slot.REPLICA]
        own = leave_batch(st, s)
        st.replicas[r, rep.FREE] += own
        _unblock(st, r, at_s)
        retire_if_empty(st, r, at_s)


@compiled
def _count(st: State, s: int, outcome: int, at_s: float) -> None:
    me, times = st.slots[s], st.slot_times[s]
    row, sums = st.services[me[slot.SERVICE]], st.service_sums[me[slot.SERVICE]]
    row[svc.IN_FLIGHT] -= 1
    if outcome != total.DONE:
        row[svc.FAILURES] += 1
        return
    row[svc.DONE] += 1
    row[svc.INPUT_TOKENS] += me[slot.INPUT]
    row[svc.OUTPUT_TOKENS] += me[slot.OUTPUT]
    st.replicas[me[slot.REPLICA], rep.FINISHED] += 1
    if me[slot.OUTPUT] > 1:
        row[svc.ITL_COUNT] += me[slot.OUTPUT] - 1
        sums[svc.ITL_SUM_S] += at_s - times[slot.FIRST_AT]


@compiled
def end(st: State, s: int, outcome: int, at_s: float) -> None:
    """Write the row of a request that is in no list any more, and free its slot."""
    me, times = st.slots[s], st.slot_times[s]
    if me[slot.PLACE] != slot.UNUSED and outcome != total.UNFINISHED:
        _count(st, s, outcome, at_s)
    i = st.totals[total.OUT]
    st.totals[total.OUT] = i + 1
    row, row_times = st.out[i], st.out_times[i]
    row[total.O_REQUEST], row[total.O_SERVICE] = me[slot.REQUEST], me[slot.SERVICE]
    row[total.O_INPUT], row[total.O_OUTPUT], row[total.O_OUTCOME] = me[slot.INPUT], me[slot.OUTPUT], outcome
    row[total.O_REPLICA], row[total.O_PREEMPTIONS] = me[slot.REPLICA], me[slot.PREEMPTIONS]
    row[total.O_ATTEMPTS], row[total.O_HIT] = me[slot.ATTEMPTS], me[slot.HIT]
    row[total.O_MADE] = me[slot.OUTPUT] if outcome == total.DONE else me[slot.GENERATED]
    row_times[total.O_ARRIVED], row_times[total.O_START] = times[slot.ARRIVED_AT], times[slot.START_AT]
    row_times[total.O_FIRST], row_times[total.O_END] = times[slot.FIRST_AT], at_s
    me[slot.PLACE] = slot.UNUSED
    me[slot.REQUEST] = -1
    st.spare[st.totals[total.SPARE]] = s
    st.totals[total.SPARE] += 1
    st.totals[total.LIVE] -= 1


@compiled
def note_first(st: State, s: int, at_s: float) -> None:
    """A request has its first token."""
    me, times = st.slots[s], st.slot_times[s]
    times[slot.FIRST_AT] = at_s
    st.services[me[slot.SERVICE], svc.FIRST_TOKENS] += 1
    st.service_sums[me[slot.SERVICE], svc.TTFT_SUM_S] += at_s - times[slot.ARRIVED_AT]


@compiled
def finish(st: State, s: int, at_s: float) -> None:
    """A running request has its last token: its blocks are free, its row is written."""
    r = st.slots[s, slot.REPLICA]
    own = leave_batch(st, s)
    st.replicas[r, rep.FREE] += own
    end(st, s, total.DONE, at_s)


@compiled
def hand_over(st: State, s: int, at_s: float) -> None:
    """Prefill is done and decoding happens elsewhere: the KV cache stays held until it was fetched."""
    me = st.slots[s]
    r, decoder = me[slot.REPLICA], me[slot.DECODER] - 1
    me[slot.COMPUTED], me[slot.CHUNK] = me[slot.COMPUTED] + me[slot.CHUNK], 0
    me[slot.HELD] = leave_batch(st, s)
    me[slot.HELD_BY] = r + 1
    st.replicas[r, rep.HOLDS] += 1
    st.replicas[decoder, rep.HOLDS] += 1
    me[slot.PLACE] = slot.TRANSFERRING
    times = st.replica_times[decoder]
    wait_s = times[rep.TRANSFER_S] + times[rep.TRANSFER_PER_TOKEN_S] * me[slot.INPUT]
    push_event(st, at_s + wait_s, total.TRANSFER, s)


@compiled
def fail(st: State, s: int, outcome: int, at_s: float) -> None:
    """A request that is in no list any more was refused or aborted: its client tries again, or gives up."""
    me, times = st.slots[s], st.slot_times[s]
    row, sums = st.services[me[slot.SERVICE]], st.service_sums[me[slot.SERVICE]]
    if outcome in (total.REJECTED_429, total.REJECTED_503):
        row[svc.REJECTED] += 1
    again = outcome in (total.REJECTED_429, total.REJECTED_503, total.ABORTED)
    if not again or me[slot.ATTEMPTS] >= row[svc.ATTEMPTS]:
        end(st, s, outcome, at_s)
        return
    wait_s = sums[svc.BACKOFF_S] * sums[svc.FACTOR] ** me[slot.ATTEMPTS]
    me[slot.ATTEMPTS] += 1
    me[slot.PLACE] = slot.BACKING_OFF
    me[slot.COMPUTED], me[slot.CHUNK], me[slot.GENERATED], me[slot.REMOTE] = 0, 0, 0, 0
    times[slot.START_AT], times[slot.FIRST_AT] = float("nan"), float("nan")
    push_event(st, at_s + wait_s, total.RETRY, s)
