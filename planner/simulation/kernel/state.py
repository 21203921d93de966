"""The whole state of a twin: arrays only, so that the compiled loop can stop and go on anywhere."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from planner.simulation.kernel import rep, slot, svc, total

__all__ = ["Floats", "Int32s", "Ints", "Sizes", "State", "Words", "grown", "new_state"]

T = TypeVar("T", bound=np.generic)
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]
Floats = NDArray[np.float64]


class State(NamedTuple):
    """Rows as the modules ``slot``, ``rep``, ``svc`` and ``total`` name their columns.

    Attributes:
        clock: float64 (CLOCK,).
        totals: int64 (WIDTH,).
        random: uint64 (1,), state of the generator.
        slots: int64 (slots, WIDTH).
        slot_times: float64 (slots, TIMES).
        spare: int64 (slots,), stack of unused slots.
        replicas: int64 (replicas, WIDTH).
        replica_times: float64 (replicas, TIMES).
        active: int64 (replicas,), indices of replicas that are not gone, oldest first.
        phases: int64 (replicas, block size), decoding requests by when they need a new block.
        heap_keys: float64 (replicas, heap), step or time at which something is due; a heap per replica.
        heap_items: int64 (replicas, heap, 2), slot and admission.
        timings: float64, parameters of step times.
        table: int64 (replicas, buckets), open addressing: entry + 1.
        entries: int64 (replicas, entries, 4), hash, holders, older, newer.
        services: int64 (services, WIDTH).
        service_sums: float64 (services, SUMS).
        hashes: int64, prefix hashes of live requests.
        event_times: float64, heap of events.
        events: int64 (events, EVENT_WIDTH).
        out: int64 (rows, OUT_WIDTH), requests that ended.
        out_times: float64 (rows, OUT_TIMES).
        variant_samples: float64 (samples, variants, VARIANT_SAMPLE).
        service_samples: float64 (samples, services, SERVICE_SAMPLE).
        ring: float64 (replicas, samples of a minute, 3), KV usage, waiting, running.
    """

    clock: Floats
    totals: Ints
    random: Words
    slots: Ints
    slot_times: Floats
    spare: Ints
    replicas: Ints
    replica_times: Floats
    active: Ints
    phases: Ints
    heap_keys: Floats
    heap_items: Ints
    timings: Floats
    table: Ints
    entries: Ints
    services: Ints
    service_sums: Floats
    hashes: Ints
    event_times: Floats
    events: Ints
    out: Ints
    out_times: Floats
    variant_samples: Floats
    service_samples: Floats
    ring: Floats


class Sizes(NamedTuple):
    """How large the arrays are that depend on the fleet."""

    variants: int
    services: int
    block_size: int
    heap: int
    entries: int
    ring: int


_SLOTS, _REPLICAS, _SAMPLES = 4096, 64, 1024


def new_state(sizes: Sizes, timings: Floats, seed: int) -> State:
    """A state at time 0 without replicas or requests."""
    buckets = 1 << max(1, (2 * sizes.entries).bit_length()) if sizes.entries else 1
    totals = np.zeros(total.WIDTH, np.int64)
    totals[total.SPARE] = _SLOTS
    totals[total.RING] = sizes.ring
    return State(
        clock=np.zeros(total.CLOCK),
        totals=totals,
        random=np.array([seed], np.uint64),
        slots=np.zeros((_SLOTS, slot.WIDTH), np.int64),
        slot_times=np.zeros((_SLOTS, slot.TIMES)),
        spare=np.arange(_SLOTS, dtype=np.int64)[::-1].copy(),
        replicas=np.zeros((_REPLICAS, rep.WIDTH), np.int64),
        replica_times=np.zeros((_REPLICAS, rep.TIMES)),
        active=np.zeros(_REPLICAS, np.int64),
        phases=np.zeros((_REPLICAS, sizes.block_size), np.int64),
        heap_keys=np.zeros((_REPLICAS, sizes.heap)),
        heap_items=np.zeros((_REPLICAS, sizes.heap, 2), np.int64),
        timings=timings,
        table=np.zeros((_REPLICAS, buckets), np.int64),
        entries=np.zeros((_REPLICAS, max(1, sizes.entries), 4), np.int64),
        services=np.zeros((sizes.services, svc.WIDTH), np.int64),
        service_sums=np.zeros((sizes.services, svc.SUMS)),
        hashes=np.zeros(1024, np.int64),
        event_times=np.zeros(4 * _SLOTS),
        events=np.zeros((4 * _SLOTS, total.EVENT_WIDTH), np.int64),
        out=np.zeros((4 * _SLOTS, total.OUT_WIDTH), np.int64),
        out_times=np.zeros((4 * _SLOTS, total.OUT_TIMES)),
        variant_samples=np.zeros((_SAMPLES, sizes.variants, total.VARIANT_SAMPLE)),
        service_samples=np.zeros((_SAMPLES, sizes.services, total.SERVICE_SAMPLE)),
        ring=np.zeros((_REPLICAS, sizes.ring, 3)),
    )


def grown(array: NDArray[T], rows: int) -> NDArray[T]:
    """The array with at least so many rows, the new ones zero."""
    if len(array) >= rows:
        return array
    larger = np.zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger
