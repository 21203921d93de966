"""Replicas of llm-d-inference-sim (@eec055a): a worker per request, no steps, the KV cache of full prompt blocks only.

Packed parameters: constant prefill (1 or 0), TTFT, its deviation, prefill overhead, per token, deviation, ITL, its
deviation, time factor under load, limit of waiting requests, KV cache (1 or 0), whole milliseconds (1 or 0), KV transfer:
constant (1 or 0), time, deviation, time per token, deviation; all ms.
"""

from __future__ import annotations

import math

from planner.simulation.kernel import rep, slot, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.ends import end, finish, hand_over, note_first, retire_if_empty
from planner.simulation.kernel.heaps import drop, next_key, push
from planner.simulation.kernel.lists import push_back, unlink
from planner.simulation.kernel.prefixes import matched, publish, reclaim, take, width
from planner.simulation.kernel.randomness import normal
from planner.simulation.kernel.state import State

__all__ = ["account", "max_waiting", "run_workers", "start_workers"]

_CONSTANT, _TTFT, _TTFT_SD, _OVERHEAD, _PER_TOKEN, _PREFILL_SD, _ITL, _ITL_SD, _FACTOR = range(9)
_MAX_WAITING, _KV, _WHOLE = range(9, 12)
_FETCH_CONSTANT, _FETCH, _FETCH_SD, _FETCH_PER_TOKEN, _FETCH_TOKENS_SD = range(12, 17)


@compiled
def max_waiting(st: State, r: int) -> int:
    """How many may wait before the next one is refused."""
    return int(st.timings[st.replicas[r, rep.TIMING] + _MAX_WAITING])


@compiled
def _drawn_s(st: State, r: int, mean_ms: float, sd_ms: float) -> float:
    """A delay: mean and deviation cut to whole ms, the draw held in [0.3, 1.7]·mean and cut."""
    if st.timings[st.replicas[r, rep.TIMING] + _WHOLE] == 0.0:
        return mean_ms * 1e-3
    # The hair keeps 100·0.29 at 29 where floats say 28.999….
    mean, sd = math.floor(mean_ms + 1e-9), math.floor(sd_ms + 1e-9)
    if sd > 0.0:
        drawn = mean + sd * normal(st.random)
        mean = math.floor(min(max(drawn, 0.3 * mean), 1.7 * mean))
    return float(mean * 1e-3)


@compiled
def _load_factor(st: State, r: int) -> float:
    row = st.replicas[r]
    if row[rep.MAX_SEQS] <= 1:
        return 1.0
    factor = st.timings[row[rep.TIMING] + _FACTOR]
    return float(1.0 + (factor - 1.0) * (row[rep.RUNNING] - 1.0) / (row[rep.MAX_SEQS] - 1.0))


@compiled
def _prefill_s(st: State, r: int, s: int) -> float:
    at, load = st.replicas[r, rep.TIMING], _load_factor(st, r)
    if st.slots[s, slot.REMOTE]:
        if st.timings[at + _FETCH_CONSTANT] != 0.0:
            return _drawn_s(st, r, st.timings[at + _FETCH], st.timings[at + _FETCH_SD])
        fetched = st.slots[s, slot.INPUT] * st.timings[at + _FETCH_PER_TOKEN]
        return _drawn_s(st, r, fetched, st.timings[at + _FETCH_TOKENS_SD])
    if st.timings[at + _CONSTANT] != 0.0:
        return _drawn_s(st, r, load * st.timings[at + _TTFT], st.timings[at + _TTFT_SD])
    tokens = st.slots[s, slot.INPUT] - st.slots[s, slot.HIT]
    mean = load * st.timings[at + _OVERHEAD] + tokens * load * st.timings[at + _PER_TOKEN]
    return _drawn_s(st, r, mean, st.timings[at + _PREFILL_SD])


@compiled
def _occupy(st: State, r: int, s: int) -> bool:
    """Hold the full blocks of the prompt; False where they do not fit."""
    row, me = st.replicas[r], st.slots[s]
    me[slot.HELD] = 0
    if st.timings[row[rep.TIMING] + _KV] == 0.0:
        return True
    found, unheld = matched(st, r, s)
    wide = width(st, r) if found else 0
    fresh = me[slot.INPUT] // row[rep.BLOCK_SIZE] - found * wide
    if fresh + unheld * wide > row[rep.FREE]:
        return False
    take(st, r, s, found)
    row[rep.FREE] -= fresh
    reclaim(st, r)
    publish(st, r, s, me[slot.INPUT])
    shared = me[slot.SHARED] - found
    me[slot.HELD] = fresh - (shared * width(st, r) if shared else 0)
    me[slot.HIT] = found * st.totals[total.HASH_BLOCK]
    return True


@compiled
def start_workers(st: State, r: int, at_s: float) -> None:
    """Idle workers pull the requests that wait, first come first; one whose blocks do not fit fails with 500."""
    row, times = st.replicas[r], st.replica_times[r]
    while row[rep.WAITERS] and row[rep.RUNNING] < row[rep.MAX_SEQS]:
        s = row[rep.WAIT_HEAD] - 1
        me = st.slots[s]
        unlink(st.slots, row, rep.WAIT_HEAD, s)
        row[rep.WAITERS] -= 1
        me[slot.HIT], me[slot.SHARED] = 0, 0
        if not _occupy(st, r, s):
            me[slot.PLACE] = slot.BACKING_OFF
            end(st, s, total.FAILED_500, at_s)
            continue
        account(st, r, at_s)
        me[slot.PLACE] = slot.AT_WORKER
        me[slot.ADMISSION] += 1
        push_back(st.slots, row, rep.RUN_HEAD, s)
        row[rep.RUNNING] += 1
        st.slot_times[s, slot.START_AT] = at_s
        row[rep.QUERY_TOKENS] += me[slot.INPUT]
        row[rep.HIT_TOKENS] += me[slot.HIT]
        push(st, r, max(at_s, times[rep.PAUSED_UNTIL]) + _prefill_s(st, r, s), s)


@compiled
def account(st: State, r: int, at_s: float) -> None:
    """Bring busy time up to now; ``START_AT`` is when it was last brought up."""
    row, times = st.replicas[r], st.replica_times[r]
    if row[rep.RUNNING]:
        times[rep.BUSY_S] += at_s - times[rep.START_AT]
        times[rep.RUNNING_S] += (at_s - times[rep.START_AT]) * row[rep.RUNNING]
    times[rep.START_AT] = at_s


@compiled
def _token(st: State, r: int, s: int, at_s: float) -> None:
    """A request makes a token; the next one follows, or it is done and its worker pulls another."""
    row, me = st.replicas[r], st.slots[s]
    if me[slot.DECODER] and me[slot.DECODER] != r + 1:
        account(st, r, at_s)
        row[rep.PROMPT_TOKENS] += me[slot.INPUT]
        hand_over(st, s, at_s)
        start_workers(st, r, at_s)
        return
    me[slot.GENERATED] += 1
    if me[slot.GENERATED] == 1:
        note_first(st, s, at_s)
    if me[slot.GENERATED] < me[slot.OUTPUT]:
        at, load = row[rep.TIMING], _load_factor(st, r)
        push(st, r, at_s + _drawn_s(st, r, load * st.timings[at + _ITL], st.timings[at + _ITL_SD]), s)
        return
    account(st, r, at_s)
    row[rep.PROMPT_TOKENS] += me[slot.INPUT]
    row[rep.OUTPUT_TOKENS] += me[slot.OUTPUT]
    finish(st, s, at_s)
    start_workers(st, r, at_s)
    retire_if_empty(st, r, at_s)


@compiled
def run_workers(st: State, r: int, until_s: float, once: bool) -> bool:
    """Let the workers of a replica make the tokens that are due up to ``until_s``; whether any was due."""
    acted = False
    while next_key(st, r) <= until_s:
        at_s = st.heap_keys[r, 0]
        _token(st, r, drop(st, r), at_s)
        acted = True
        if once:
            break
    return acted
