"""The engine step by step as vLLM V1 batches: running requests first, then waiting ones, within a token budget.

Every decoding request advances by one token per step, so its length is ``BASE`` plus the steps of its replica, which
step ends it is known when it starts, and how many need a new block is read from ``phases`` (requests by their length
modulo the block size, turned back by the steps done). A step in which nobody comes or goes therefore costs the same
for one request as for a thousand, and is exactly the step that walking through all requests would have made.
"""

from __future__ import annotations

from planner.simulation.kernel import rep, slot, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.duration import step_s
from planner.simulation.kernel.ends import finish, hand_over, leave_batch, note_first, retire_if_empty
from planner.simulation.kernel.heaps import drop, next_key, push
from planner.simulation.kernel.lists import push_back, push_front, unlink
from planner.simulation.kernel.prefixes import matched, publish, reclaim, take, width
from planner.simulation.kernel.state import Floats, Ints, State

__all__ = ["begins_at", "preempt_last", "run_engine"]


@compiled
def _new_blocks(st: State, r: int) -> int:
    """Blocks that decoding requests need in the next step: those whose length is a multiple of the block size."""
    return int(st.phases[r, (-st.replicas[r, rep.STEPS]) % st.replicas[r, rep.BLOCK_SIZE]])


@compiled
def preempt_last(st: State, r: int) -> None:
    """Preempt the request that was admitted last: its KV cache is dropped, later all of it is computed again."""
    row = st.replicas[r]
    s = row[rep.RUN_TAIL] - 1
    own = leave_batch(st, s)
    row[rep.FREE] += own
    me = st.slots[s]
    me[slot.PLACE], me[slot.COMPUTED], me[slot.CHUNK], me[slot.REMOTE] = slot.WAITING, 0, 0, 0
    me[slot.TARGET] = me[slot.INPUT] + me[slot.GENERATED]
    me[slot.PREEMPTIONS] += 1
    row[rep.PREEMPTIONS] += 1
    push_front(st.slots, row, rep.WAIT_HEAD, s)
    row[rep.WAITERS] += 1


@compiled
def _chunk_of_last(st: State, r: int) -> int:
    """Tokens that the request whose prefill goes on gets in this step; 0 where there is none."""
    row = st.replicas[r]
    s = row[rep.RUN_TAIL] - 1
    if s < 0 or st.slots[s, slot.PLACE] != slot.PREFILLING:
        return 0
    left = st.slots[s, slot.TARGET] - st.slots[s, slot.COMPUTED]
    return int(min(left, row[rep.MAX_TOKENS] - row[rep.DECODING]))


@compiled
def _blocks_for_last(st: State, r: int, chunk: int) -> int:
    if chunk == 0:
        return 0
    s, size = st.replicas[r, rep.RUN_TAIL] - 1, st.replicas[r, rep.BLOCK_SIZE]
    done = st.slots[s, slot.COMPUTED]
    return int((done + chunk + size - 1) // size - (done + size - 1) // size)


@compiled
def _continue_running(st: State, r: int) -> tuple[int, bool]:
    """Give running requests their blocks, preempting from the last where memory is short.

    Returns:
        Tokens of the prefill that goes on, and whether somebody was preempted.
    """
    row, preempted = st.replicas[r], False
    chunk = _chunk_of_last(st, r)
    while _new_blocks(st, r) + _blocks_for_last(st, r, chunk) > row[rep.FREE]:
        preempt_last(st, r)
        preempted, chunk = True, _chunk_of_last(st, r)
    row[rep.FREE] -= _new_blocks(st, r) + _blocks_for_last(st, r, chunk)
    reclaim(st, r)
    if chunk:
        s = row[rep.RUN_TAIL] - 1
        st.slots[s, slot.CHUNK] = chunk
        publish(st, r, s, st.slots[s, slot.COMPUTED] + chunk)
    return chunk, preempted


@compiled
def _admit(st: State, r: int, budget: int, at_s: float) -> int:
    """Start the first one waiting if tokens and blocks allow; tokens that it gets, 0 where it has to wait."""
    row = st.replicas[r]
    s = row[rep.WAIT_HEAD] - 1
    me, size = st.slots[s], row[rep.BLOCK_SIZE]
    found, unheld = (0, 0) if me[slot.REMOTE] else matched(st, r, s)
    cached = me[slot.TARGET] - 1 if me[slot.REMOTE] else found * st.totals[total.HASH_BLOCK]
    missing = me[slot.TARGET] - cached
    if missing > budget and not row[rep.CHUNKED]:
        return 0
    chunk = min(missing, budget)
    wide = width(st, r) if found else 0
    whole = (me[slot.TARGET] + size - 1) // size - found * wide
    kept = row[rep.WATERMARK] if row[rep.RUNNING] else 0
    if whole + unheld * wide > row[rep.FREE] - kept:
        row[rep.BLOCKED] = 1
        return 0
    unlink(st.slots, row, rep.WAIT_HEAD, s)
    row[rep.WAITERS] -= 1
    take(st, r, s, found)
    row[rep.FREE] -= (cached + chunk + size - 1) // size - found * wide
    reclaim(st, r)
    _start(st, s, cached, chunk, at_s)
    return int(chunk)


@compiled
def _start(st: State, s: int, cached: int, chunk: int, at_s: float) -> None:
    r = st.slots[s, slot.REPLICA]
    row, me = st.replicas[r], st.slots[s]
    me[slot.PLACE], me[slot.COMPUTED], me[slot.CHUNK] = slot.PREFILLING, cached, chunk
    me[slot.ADMISSION] += 1
    if st.slot_times[s, slot.START_AT] != st.slot_times[s, slot.START_AT]:
        st.slot_times[s, slot.START_AT] = at_s
        me[slot.HIT] = 0 if me[slot.REMOTE] else cached
        row[rep.QUERY_TOKENS] += me[slot.INPUT]
        row[rep.HIT_TOKENS] += me[slot.HIT]
        row[rep.PROMPT_TOKENS] += me[slot.INPUT]
    push_back(st.slots, row, rep.RUN_HEAD, s)
    row[rep.RUNNING] += 1
    publish(st, r, s, cached + chunk)


@compiled
def _look_ahead(row: Ints) -> None:
    """A step begins: who waits now, and which seats are free now, is all that the next one is composed of."""
    row[rep.SEEN], row[rep.SEATS] = row[rep.WAITERS], row[rep.MAX_SEQS] - row[rep.RUNNING]


@compiled
def _admissible(row: Ints) -> int:
    """How many of those waiting the step that begins may admit; an engine that idled composes it on the spot."""
    if row[rep.ASYNC] and row[rep.RUNNING]:
        return int(min(row[rep.SEEN], row[rep.SEATS]))
    return int(row[rep.WAITERS])


@compiled
def _begin_step(st: State, r: int, at_s: float) -> None:
    """Compose the step that begins now."""
    row = st.replicas[r]
    admissible = _admissible(row)
    chunk, preempted = _continue_running(st, r)
    budget = row[rep.MAX_TOKENS] - row[rep.DECODING] - chunk
    while (
        not preempted
        and admissible > 0
        and row[rep.WAITERS]
        and not row[rep.BLOCKED]
        and budget > 0
        and row[rep.RUNNING] < row[rep.MAX_SEQS]
    ):
        tokens = _admit(st, r, budget, at_s)
        if tokens == 0:
            break
        budget -= tokens
        admissible -= 1
    _look_ahead(row)
    # Nobody runs where the only one was preempted, or memory is held for somebody elsewhere: there is no step.
    if row[rep.RUNNING]:
        _time_step(st, r, at_s)


@compiled
def _time_step(st: State, r: int, at_s: float) -> None:
    row = st.replicas[r]
    prefill, pairs, ends, yielding, before, chunks = 0, 0.0, 0, row[rep.DECODING], 0, 0
    s = row[rep.RUN_TAIL] - 1
    while s >= 0 and st.slots[s, slot.PLACE] == slot.PREFILLING:
        done, chunk = st.slots[s, slot.COMPUTED], st.slots[s, slot.CHUNK]
        prefill += chunk
        pairs += chunk * (done + 0.5 * chunk)
        ends += done + chunk
        before += done
        chunks += 1
        yielding += done + chunk == st.slots[s, slot.TARGET]
        s = st.slots[s, slot.PREV] - 1
    work = (
        float(row[rep.DECODING]), float(prefill), float(row[rep.CONTEXT] + row[rep.DECODING]), float(pairs),
        float(ends), float(yielding), before / chunks if chunks else 0.0,
    )  # fmt: skip
    seconds = step_s(st.timings, row[rep.KIND], row[rep.TIMING], work)
    row[rep.IN_STEP] = 1
    st.replica_times[r, rep.STEP_S] = seconds
    st.replica_times[r, rep.END_AT] = at_s + seconds


@compiled
def _yield_first(st: State, s: int, at_s: float) -> None:
    """A prefill is complete: its step makes a token, and decoding begins."""
    me = st.slots[s]
    r = me[slot.REPLICA]
    row = st.replicas[r]
    if me[slot.DECODER] and me[slot.DECODER] != r + 1:
        hand_over(st, s, at_s)
        return
    me[slot.COMPUTED], me[slot.CHUNK] = me[slot.COMPUTED] + me[slot.CHUNK], 0
    me[slot.GENERATED] += 1
    row[rep.OUTPUT_TOKENS] += 1
    if st.slot_times[s, slot.FIRST_AT] != st.slot_times[s, slot.FIRST_AT]:
        note_first(st, s, at_s)
    if me[slot.GENERATED] == me[slot.OUTPUT]:
        finish(st, s, at_s)
        return
    me[slot.PLACE] = slot.DECODING
    me[slot.BASE] = me[slot.COMPUTED] - row[rep.STEPS]
    me[slot.FINISH] = row[rep.STEPS] + me[slot.OUTPUT] - me[slot.GENERATED]
    row[rep.DECODING] += 1
    row[rep.CONTEXT] += me[slot.COMPUTED]
    st.phases[r, me[slot.BASE] % row[rep.BLOCK_SIZE]] += 1
    push(st, r, float(me[slot.FINISH]), s)


@compiled
def _end_step(st: State, r: int) -> None:
    """What the step that ends has done."""
    row, times = st.replicas[r], st.replica_times[r]
    at_s = times[rep.END_AT]
    row[rep.STEPS] += 1
    row[rep.CONTEXT] += row[rep.DECODING]
    row[rep.OUTPUT_TOKENS] += row[rep.DECODING]
    row[rep.IN_STEP] = 0
    times[rep.START_AT] = at_s
    times[rep.BUSY_S] += times[rep.STEP_S]
    times[rep.RUNNING_S] += times[rep.STEP_S] * row[rep.RUNNING]
    s = row[rep.RUN_TAIL] - 1
    while next_key(st, r) <= row[rep.STEPS]:
        done = drop(st, r)
        if done == s:
            s = st.slots[s, slot.PREV] - 1
        finish(st, done, at_s)
    while s >= 0 and st.slots[s, slot.PLACE] == slot.PREFILLING:
        previous = st.slots[s, slot.PREV] - 1
        if st.slots[s, slot.COMPUTED] + st.slots[s, slot.CHUNK] == st.slots[s, slot.TARGET]:
            _yield_first(st, s, at_s)
        else:
            st.slots[s, slot.COMPUTED] += st.slots[s, slot.CHUNK]
            st.slots[s, slot.CHUNK] = 0
        s = previous
    retire_if_empty(st, r, at_s)


@compiled
def _decode_ahead(row: Ints, times: Floats, phases: Ints, timings: Floats, span: tuple[float, float]) -> None:
    """Steps in which everybody who runs gets a token and nobody comes or goes; the last one may be under way.

    Args:
        row: the replica, and so on for its times and phases; ``timings``: of all.
        times: see there.
        phases: see there.
        timings: see there.
        span: step that ends somebody, and time at which something comes from outside.
    """
    due, until_s = span
    decoding, size, kind, timing = row[rep.DECODING], row[rep.BLOCK_SIZE], row[rep.KIND], row[rep.TIMING]
    count = float(decoding)
    at_s = times[rep.START_AT]
    while at_s < until_s:
        need = phases[(-row[rep.STEPS]) % size]
        if row[rep.FREE] - need < row[rep.CACHED]:
            break
        row[rep.FREE] -= need
        _look_ahead(row)
        work = (count, 0.0, float(row[rep.CONTEXT] + decoding), 0.0, 0.0, count, 0.0)
        seconds = step_s(timings, kind, timing, work)
        if at_s + seconds > until_s or row[rep.STEPS] + 1 >= due:
            row[rep.IN_STEP] = 1
            times[rep.STEP_S], times[rep.END_AT] = seconds, at_s + seconds
            break
        row[rep.STEPS] += 1
        row[rep.CONTEXT] += decoding
        row[rep.OUTPUT_TOKENS] += decoding
        at_s += seconds
        times[rep.BUSY_S] += seconds
        times[rep.RUNNING_S] += seconds * decoding
    times[rep.START_AT] = at_s


@compiled
def _goes_on(st: State, r: int) -> bool:
    """Whether the next step is one for those who decode only, without anything to be preempted or forgotten."""
    row = st.replicas[r]
    if row[rep.RUNNING] != row[rep.DECODING] or row[rep.FREE] - _new_blocks(st, r) < row[rep.CACHED]:
        return False
    return bool(row[rep.WAITERS] == 0 or row[rep.BLOCKED] or row[rep.RUNNING] >= row[rep.MAX_SEQS])


@compiled
def begins_at(row: Ints, times: Floats) -> float:
    """When the next step of a replica that is in none begins; infinity where there is nothing to do."""
    idle = row[rep.RUNNING] + row[rep.WAITERS] == 0 or row[rep.STATE] >= rep.REMOVED
    if idle or (row[rep.RUNNING] == 0 and row[rep.BLOCKED]):
        return float("inf")
    return float(max(times[rep.START_AT], times[rep.PAUSED_UNTIL]))


@compiled
def run_engine(st: State, r: int, until_s: float, once: bool) -> bool:
    """Let a replica do its steps: ends up to ``until_s``, beginnings before it.

    Args:
        st: the twin.
        r: the replica.
        until_s: when something comes from outside.
        once: one beginning or one end only, so that others can answer to it.

    Returns:
        Whether anything was done.
    """
    row, times = st.replicas[r], st.replica_times[r]
    acted = False
    while not (acted and once):
        if row[rep.IN_STEP]:
            if times[rep.END_AT] > until_s:
                break
            _end_step(st, r)
        else:
            begins_s = begins_at(row, times)
            if begins_s >= until_s:
                break
            times[rep.START_AT] = begins_s
            if _goes_on(st, r) and not once:
                span = (next_key(st, r), until_s)
                _decode_ahead(row, times, st.phases[r], st.timings, span)
            else:
                _begin_step(st, r, begins_s)
        acted = True
    return acted
