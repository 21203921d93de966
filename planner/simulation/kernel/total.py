"""Columns of what there is once: ``State.totals`` and ``State.clock``, of rows that leave, of events and samples."""

from __future__ import annotations

ACTIVE, SPARE, EVENTS, EVENT_SEQ, OUT, SAMPLES, POSITION, ENDED = range(8)
QUEUED, SPLIT, PENDING, REMOVALS, LIVE, HASHES, HASH_BLOCK, RING = range(8, 16)
NEXT_REQUEST = 16
WIDTH = 17

NOW, NEXT_SAMPLE, SAMPLE_S = range(3)
CLOCK = 3

# How a call of the event loop ends.
REACHED, WANTS_ARRIVALS, WANTS_ROOM, FREED_GPUS = range(4)

# Rows of ended requests.
O_REQUEST, O_SERVICE, O_INPUT, O_OUTPUT, O_REPLICA, O_OUTCOME, O_PREEMPTIONS, O_ATTEMPTS, O_HIT, O_MADE = (
    range(10)
)
OUT_WIDTH = 10
O_ARRIVED, O_START, O_FIRST, O_END = range(4)
OUT_TIMES = 4

UNFINISHED, DONE, REJECTED_429, REJECTED_503, ABORTED, TIMED_OUT, FAILED_500 = range(7)

# Events: what, of which slot, which request, at which try.
E_KIND, E_SLOT, E_REQUEST, E_TRY, E_SEQ = range(5)
EVENT_WIDTH = 5
RETRY, TRANSFER, TIMEOUT, QUEUE_TIMEOUT = range(4)

# Samples of a variant and of a service.
M_STARTING, M_READY, M_DRAINING, M_PAUSED, M_RUNNING, M_WAITING, M_USED, M_BLOCKS, M_BUSY, M_RUN = range(10)
VARIANT_SAMPLE = 10
M_ARRIVALS, M_DONE, M_FAILURES, M_QUEUED, M_IN_FLIGHT, M_OUTPUT_TOKENS = range(6)
SERVICE_SAMPLE = 6
