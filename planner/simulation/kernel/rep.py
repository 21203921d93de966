"""Columns of a replica: rows of ``State.replicas`` and ``State.replica_times``."""

from __future__ import annotations

SERVICE, VARIANT, STATE, ROLE = range(4)
# The engine's limits.
BLOCKS, BLOCK_SIZE, MAX_SEQS, MAX_TOKENS, CHUNKED, WATERMARK, PREFIX, MAX_WAITING = range(4, 12)
# Form of the step time and where its parameters begin.
KIND, TIMING = 12, 13
# Blocks free (unused ones that hold a prefix are free too), and how many of them hold a prefix.
FREE, CACHED = 14, 15
# Steps done, decoding requests, their KV tokens together, whether a step runs.
STEPS, DECODING, CONTEXT, IN_STEP = range(16, 20)
# Lists (the tail is next to the head) and their lengths; requests whose KV cache is being fetched from here.
RUN_HEAD, RUN_TAIL, WAIT_HEAD, WAIT_TAIL = range(20, 24)
RUNNING, WAITERS, HOLDS = 24, 25, 26
# Whether the first one waiting cannot be admitted before something ends.
BLOCKED = 27
HEAP = 28
# Prefix table: entries in use, first unused one, least and most recently used one that nobody holds.
ENTRIES, ENTRY_FREE, OLDEST, NEWEST = range(29, 33)
# Counters.
PROMPT_TOKENS, OUTPUT_TOKENS, FINISHED, HIT_TOKENS, QUERY_TOKENS, PREEMPTIONS = range(33, 39)
# What the router last read.
SEEN_WAITERS, SEEN_RUNNING = 39, 40
RANKS = 41
WIDTH = 42

START_AT, END_AT, PAUSED_UNTIL, BUSY_S, RUNNING_S, CREATED_AT, READY_AT, REMOVED_AT, STEP_S = range(9)
SEEN_KV, TRANSFER_S, TRANSFER_PER_TOKEN_S, SAMPLED_BUSY_S, SAMPLED_RUNNING_S = range(9, 14)
TIMES = 14

LINEAR, ROOFLINE, TABLE, WORKERS = range(4)
STARTING, READY, DRAINING, PAUSED, REMOVED, FAILED = range(6)
BOTH, PREFILL, DECODE = range(3)
