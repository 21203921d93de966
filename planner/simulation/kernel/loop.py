"""The event loop: ends of steps, then events, arrivals and samples, each in order of time and sequence.

While nothing ties replicas together, each runs on alone until something comes from outside. Where something does (a
queue at a router, prefill elsewhere, a replica that waits for GPUs), they run in common order, one end or beginning
of a step at a time.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.simulation.kernel import rep, slot, svc, total
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.ends import end, fail, leave, release_held, retire_if_empty
from planner.simulation.kernel.heaps import next_key, pop_event, push_event
from planner.simulation.kernel.prefixes import reclaim
from planner.simulation.kernel.routing import dispatch, enqueue, kv_usage, route
from planner.simulation.kernel.state import Floats, Int32s, Ints, State
from planner.simulation.kernel.steps import begins_at, preempt_last, run_engine
from planner.simulation.kernel.workers import account, run_workers, start_workers

__all__ = ["Arrivals", "kill", "run", "shed_ranks", "stop_all"]


_END, _SAMPLE, _ARRIVAL, _EVENT = range(4)


class Arrivals(NamedTuple):
    """Requests still to come: the columns of a chunk; ``hash_at`` are places in ``State.hashes``."""

    arrival_s: Floats
    input_tokens: Int32s
    output_tokens: Int32s
    service: Int32s
    priority: Int32s
    hash_at: Ints


@compiled
def _run_one(st: State, r: int, until_s: float, once: bool) -> bool:
    if st.replicas[r, rep.KIND] == rep.WORKERS:
        return run_workers(st, r, until_s, once)
    return run_engine(st, r, until_s, once)


@compiled
def _next_at(st: State, r: int) -> tuple[float, bool]:
    """When a replica does something next, and whether that is the beginning of a step."""
    row, times = st.replicas[r], st.replica_times[r]
    if row[rep.KIND] == rep.WORKERS:
        return next_key(st, r), False
    if row[rep.IN_STEP]:
        return float(times[rep.END_AT]), False
    return begins_at(row, times), True


@compiled
def _run_first(st: State, until_s: float) -> bool:
    """Let the replica whose turn is first do one thing; False where nobody has a turn up to ``until_s``."""
    first, first_at, first_begins = -1, until_s, True
    for i in range(st.totals[total.ACTIVE]):
        r = st.active[i]
        at_s, begins = _next_at(st, r)
        if at_s < first_at or (at_s == first_at and first_begins and not begins):
            first, first_at, first_begins = r, at_s, begins
    if first < 0:
        return False
    # A step that has room for nobody leaves no trace in time; the loop goes on all the same.
    _run_one(st, first, until_s, True)
    st.clock[total.NOW] = first_at
    return True


@compiled
def _arrive(st: State, arrivals: Arrivals) -> None:
    i = st.totals[total.POSITION]
    st.totals[total.POSITION] = i + 1
    st.totals[total.SPARE] -= 1
    st.totals[total.LIVE] += 1
    s = st.spare[st.totals[total.SPARE]]
    me, at_s = st.slots[s], arrivals.arrival_s[i]
    admission = me[slot.ADMISSION]
    me[:] = 0
    me[slot.ADMISSION] = admission + 1
    me[slot.REQUEST], me[slot.REPLICA], me[slot.PLACE] = st.totals[total.NEXT_REQUEST], -1, slot.BACKING_OFF
    me[slot.INPUT], me[slot.OUTPUT] = arrivals.input_tokens[i], arrivals.output_tokens[i]
    me[slot.TARGET] = me[slot.INPUT]
    me[slot.SERVICE], me[slot.PRIORITY] = arrivals.service[i], arrivals.priority[i]
    me[slot.HASH_AT], me[slot.HASHES] = arrivals.hash_at[i], arrivals.hash_at[i + 1] - arrivals.hash_at[i]
    st.totals[total.NEXT_REQUEST] += 1
    st.slot_times[s, slot.ARRIVED_AT] = at_s
    st.slot_times[s, slot.START_AT], st.slot_times[s, slot.FIRST_AT] = float("nan"), float("nan")
    v = me[slot.SERVICE]
    st.services[v, svc.ARRIVALS] += 1
    st.services[v, svc.IN_FLIGHT] += 1
    if st.service_sums[v, svc.REQUEST_TIMEOUT_S] > 0.0:
        push_event(st, at_s + st.service_sums[v, svc.REQUEST_TIMEOUT_S], total.TIMEOUT, s)
    route(st, s, at_s)


@compiled
def _fetched(st: State, s: int, at_s: float) -> None:
    """The KV cache has arrived where decoding happens."""
    r = st.slots[s, slot.DECODER] - 1
    st.replicas[r, rep.HOLDS] += 1
    release_held(st, s, at_s)
    st.slots[s, slot.PLACE] = slot.BACKING_OFF
    if st.replicas[r, rep.STATE] >= rep.REMOVED:
        fail(st, s, total.ABORTED, at_s)
    else:
        st.slots[s, slot.REMOTE] = 1
        enqueue(st, s, r, at_s)
    st.replicas[r, rep.HOLDS] -= 1
    retire_if_empty(st, r, at_s)


@compiled
def _happen(st: State) -> None:
    """The first event, unless its request has gone on meanwhile."""
    at_s = st.event_times[0]
    kind, s, request, attempt = pop_event(st)
    me = st.slots[s]
    if me[slot.REQUEST] != request or me[slot.PLACE] == slot.UNUSED:
        return
    place, same = me[slot.PLACE], me[slot.ATTEMPTS] == attempt
    if kind == total.TIMEOUT:
        r = me[slot.REPLICA]
        if place == slot.AT_WORKER:
            account(st, r, at_s)
        leave(st, s, at_s)
        end(st, s, total.TIMED_OUT, at_s)
        if place == slot.AT_WORKER:
            start_workers(st, r, at_s)
    elif kind == total.RETRY and place == slot.BACKING_OFF and same:
        route(st, s, at_s)
    elif kind == total.TRANSFER and place == slot.TRANSFERRING and same:
        _fetched(st, s, at_s)
    elif kind == total.QUEUE_TIMEOUT and place == slot.AT_ROUTER and same:
        leave(st, s, at_s)
        fail(st, s, total.REJECTED_503, at_s)


@compiled
def _sample_replica(st: State, r: int, place: int, row: Floats) -> None:
    state, rows, times = st.replicas[r, rep.STATE], st.replicas[r], st.replica_times[r]
    row[total.M_STARTING] += state == rep.STARTING
    row[total.M_READY] += state == rep.READY
    row[total.M_DRAINING] += state == rep.DRAINING
    row[total.M_PAUSED] += state == rep.PAUSED
    row[total.M_RUNNING] += rows[rep.RUNNING]
    row[total.M_WAITING] += rows[rep.WAITERS]
    if rows[rep.KIND] == rep.WORKERS:
        account(st, r, st.clock[total.NEXT_SAMPLE])
    row[total.M_BUSY] += times[rep.BUSY_S] - times[rep.SAMPLED_BUSY_S]
    row[total.M_RUN] += times[rep.RUNNING_S] - times[rep.SAMPLED_RUNNING_S]
    times[rep.SAMPLED_BUSY_S], times[rep.SAMPLED_RUNNING_S] = times[rep.BUSY_S], times[rep.RUNNING_S]
    if rep.READY <= state <= rep.PAUSED:
        row[total.M_USED] += rows[rep.BLOCKS] - rows[rep.FREE]
        row[total.M_BLOCKS] += rows[rep.BLOCKS]
    ring = st.ring[r, place]
    ring[0], ring[1], ring[2] = kv_usage(st, r), rows[rep.WAITERS], rows[rep.RUNNING]


@compiled
def _sample(st: State) -> None:
    """One row of the table over time, and of the last minute of every replica."""
    k = st.totals[total.SAMPLES]
    st.totals[total.SAMPLES] = k + 1
    count = int(st.clock[total.NEXT_SAMPLE] / st.clock[total.SAMPLE_S] + 0.5)
    place = count % st.totals[total.RING]
    variants, services = st.variant_samples[k], st.service_samples[k]
    variants[:] = 0.0
    for i in range(st.totals[total.ACTIVE]):
        r = st.active[i]
        _sample_replica(st, r, place, variants[st.replicas[r, rep.VARIANT]])
    for v in range(st.services.shape[0]):
        row, counts = services[v], st.services[v]
        row[total.M_ARRIVALS], row[total.M_DONE] = counts[svc.ARRIVALS], counts[svc.DONE]
        row[total.M_FAILURES], row[total.M_QUEUED] = counts[svc.FAILURES], counts[svc.QUEUED]
        row[total.M_IN_FLIGHT], row[total.M_OUTPUT_TOKENS] = counts[svc.IN_FLIGHT], counts[svc.OUTPUT_TOKENS]
    st.clock[total.NEXT_SAMPLE] = (count + 1) * st.clock[total.SAMPLE_S]


@compiled
def _lacks_room(st: State) -> bool:
    """Whether what may happen before the next look might not fit."""
    totals, live = st.totals, st.totals[total.LIVE] + 1
    return bool(
        totals[total.SPARE] == 0
        or totals[total.OUT] + live > st.out.shape[0]
        or totals[total.EVENTS] + 2 * live > st.event_times.shape[0]
        or totals[total.SAMPLES] == st.variant_samples.shape[0]
    )


@compiled
def _tied(st: State) -> bool:
    totals = st.totals
    return bool(totals[total.QUEUED] or totals[total.SPLIT] or totals[total.PENDING])


@compiled
def _rests(row: Ints, times: Floats, until_s: float) -> bool:
    """Whether a replica has certainly nothing to do up to ``until_s``."""
    if row[rep.KIND] == rep.WORKERS:
        return bool(row[rep.RUNNING] == 0)
    if row[rep.IN_STEP]:
        return bool(times[rep.END_AT] > until_s)
    return bool(row[rep.RUNNING] + row[rep.WAITERS] == 0)


@compiled
def _run_all(st: State, until_s: float) -> None:
    """Each replica on its own up to ``until_s``."""
    for i in range(st.totals[total.ACTIVE]):
        r = st.active[i]
        if not _rests(st.replicas[r], st.replica_times[r], until_s):
            _run_one(st, r, until_s, False)


@compiled
def _outside(st: State, arrivals: Arrivals, until_s: float) -> tuple[float, int]:
    """When something comes from outside next, and what: event, arrival, sample or the end of this call."""
    totals = st.totals
    at_s, what = until_s, _END
    if st.clock[total.NEXT_SAMPLE] <= at_s:
        at_s, what = st.clock[total.NEXT_SAMPLE], _SAMPLE
    if (
        totals[total.POSITION] < len(arrivals.arrival_s)
        and arrivals.arrival_s[totals[total.POSITION]] <= at_s
    ):
        at_s, what = arrivals.arrival_s[totals[total.POSITION]], _ARRIVAL
    if totals[total.EVENTS] and st.event_times[0] <= at_s:
        at_s, what = st.event_times[0], _EVENT
    return float(at_s), what


@compiled
def _come(st: State, arrivals: Arrivals, what: int) -> None:
    if what == _EVENT:
        _happen(st)
    elif what == _ARRIVAL:
        _arrive(st, arrivals)
    else:
        _sample(st)


@compiled
def run(st: State, arrivals: Arrivals, until_s: float) -> int:
    """Go on until ``until_s``, or until the caller has to do something first.

    Args:
        st: the twin; changed in place.
        arrivals: requests still to come, from ``POSITION`` on.
        until_s: where to stop; what is due at that very time is done, but no step begins.

    Returns:
        ``REACHED``, ``WANTS_ARRIVALS``, ``WANTS_ROOM``, or ``FREED_GPUS``: a replica is gone that others wait for.
    """
    totals = st.totals
    while True:
        if _lacks_room(st):
            return total.WANTS_ROOM
        if totals[total.POSITION] == len(arrivals.arrival_s) and not totals[total.ENDED]:
            return total.WANTS_ARRIVALS
        if totals[total.QUEUED]:
            dispatch(st, st.clock[total.NOW])
        next_s, what = _outside(st, arrivals, until_s)
        removals = totals[total.REMOVALS]
        if not _tied(st):
            _run_all(st, next_s)
        elif _run_first(st, next_s):
            if totals[total.PENDING] and totals[total.REMOVALS] != removals:
                return total.FREED_GPUS
            continue
        st.clock[total.NOW] = next_s
        if what == _END:
            return total.REACHED
        _come(st, arrivals, what)


@compiled
def _abort(st: State, s: int, at_s: float) -> None:
    leave(st, s, at_s)
    fail(st, s, total.ABORTED, at_s)


@compiled
def kill(st: State, r: int, state: int, at_s: float) -> None:
    """End a replica now, with all that it holds; ``state`` says as what it is gone."""
    row = st.replicas[r]
    row[rep.STATE] = state
    st.replica_times[r, rep.REMOVED_AT] = at_s
    for s in range(st.slots.shape[0]):
        place = st.slots[s, slot.PLACE]
        at_it = place in (slot.WAITING, slot.PREFILLING, slot.DECODING, slot.AT_WORKER)
        if (at_it and st.slots[s, slot.REPLICA] == r) or (
            place == slot.TRANSFERRING and st.slots[s, slot.HELD_BY] == r + 1
        ):
            _abort(st, s, at_s)
    row[rep.IN_STEP] = 0


@compiled
def shed_ranks(st: State, r: int, ranks: int, kept: int, at_s: float) -> None:
    """Abort what runs on ranks that go (requests are spread evenly); forget prefixes, and preempt until the rest fits."""
    for s in range(st.slots.shape[0]):
        place = st.slots[s, slot.PLACE]
        running = place in (slot.PREFILLING, slot.DECODING, slot.AT_WORKER)
        if running and st.slots[s, slot.REPLICA] == r and st.slots[s, slot.REQUEST] % ranks >= kept:
            _abort(st, s, at_s)
    row = st.replicas[r]
    while row[rep.RUNNING] and (row[rep.FREE] < 0 or row[rep.RUNNING] > row[rep.MAX_SEQS]):
        preempt_last(st, r)
    reclaim(st, r)


@compiled
def stop_all(st: State) -> None:
    """Write the rows of requests that are still somewhere when the run ends."""
    for s in range(st.slots.shape[0]):
        if st.slots[s, slot.PLACE] != slot.UNUSED:
            place, r = st.slots[s, slot.PLACE], st.slots[s, slot.REPLICA]
            if place == slot.DECODING:
                left = st.slots[s, slot.FINISH] - st.replicas[r, rep.STEPS]
                st.slots[s, slot.GENERATED] = st.slots[s, slot.OUTPUT] - left
            end(st, s, total.UNFINISHED, st.clock[total.NOW])
