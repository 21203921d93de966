"""Columns of a replica: rows of ``State.replicas`` and ``State.replica_times``."""

from __future__ import annotations

__all__ = [
    "ASYNC", "BLOCKED", "BLOCKS", "BLOCK_SIZE", "BOTH", "BUSY_S", "CACHED", "CHUNKED", "CONTEXT", "CREATED_AT",
    "DECODE", "DECODING", "DRAINING", "END_AT", "ENTRIES", "ENTRY_FREE", "FAILED", "FINISHED", "FREE",
    "HEAP", "HIT_TOKENS", "HOLDS", "IN_STEP", "KIND", "LINEAR", "MAX_SEQS", "MAX_TOKENS", "MAX_WAITING",
    "NEWEST", "OLDEST", "OUTPUT_TOKENS", "PAUSED", "PAUSED_UNTIL", "PREEMPTIONS", "PREFILL", "PREFIX",
    "PROMPT_TOKENS", "QUERY_TOKENS", "RANKS", "READY", "READY_AT", "REMOVED", "REMOVED_AT", "ROLE",
    "ROOFLINE", "RUNNING", "RUNNING_S", "RUN_HEAD", "RUN_TAIL", "SAMPLED_BUSY_S", "SAMPLED_RUNNING_S", "SEATS",
    "SEEN", "SEEN_KV", "SEEN_RUNNING", "SEEN_WAITERS", "SERVICE", "STARTING", "START_AT", "STATE", "STEPS",
    "STEP_S", "TABLE", "TIMES", "TIMING", "TRANSFER_PER_TOKEN_S", "TRANSFER_S", "VARIANT", "WAITERS",
    "WAIT_HEAD", "WAIT_TAIL", "WATERMARK", "WIDTH", "WORKERS",
]  # fmt: skip

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
# Whether a step is composed while the one before it runs; who waited and which seats were free when that one began.
ASYNC, SEEN, SEATS = 42, 43, 44
WIDTH = 45

START_AT, END_AT, PAUSED_UNTIL, BUSY_S, RUNNING_S, CREATED_AT, READY_AT, REMOVED_AT, STEP_S = range(9)
SEEN_KV, TRANSFER_S, TRANSFER_PER_TOKEN_S, SAMPLED_BUSY_S, SAMPLED_RUNNING_S = range(9, 14)
TIMES = 14

LINEAR, ROOFLINE, TABLE, WORKERS = range(4)
STARTING, READY, DRAINING, PAUSED, REMOVED, FAILED = range(6)
BOTH, PREFILL, DECODE = range(3)
