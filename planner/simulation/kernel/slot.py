"""Columns of a live request, and the places where it can be.

A slot is a row of ``State.slots`` and ``State.slot_times``; it is used again when its request has ended.
"""

from __future__ import annotations

__all__ = [
    "ADMISSION", "ARRIVED_AT", "ATTEMPTS", "AT_ROUTER", "AT_WORKER", "BACKING_OFF", "BASE", "CHUNK",
    "COMPUTED", "DECODER", "DECODING", "FINISH", "FIRST_AT", "GENERATED", "HASHES", "HASH_AT", "HELD",
    "HELD_BY", "HIT", "INPUT", "NEXT", "OUTPUT", "PLACE", "PREEMPTIONS", "PREFILLING", "PREV",
    "PRIORITY", "REMOTE", "REPLICA", "REQUEST", "SERVICE", "SHARED", "START_AT", "TARGET", "TIMES",
    "TRANSFERRING", "UNUSED", "WAITING", "WIDTH",
]  # fmt: skip

# What it asks for.
REQUEST, INPUT, OUTPUT, SERVICE, PRIORITY, HASH_AT, HASHES = range(7)
# Where it is, and its neighbors in the list there.
PLACE, REPLICA, PREV, NEXT = range(7, 11)
# How far it is: KV tokens computed, tokens of the step that runs, tokens until the next output token, output tokens
# made when it last left a batch; while it decodes: length minus the replica's steps, and the step that ends it.
COMPUTED, CHUNK, TARGET, GENERATED, BASE, FINISH = range(11, 17)
# Counts up with each admission, so that older entries of a heap are known as stale.
ADMISSION = 17
# Prefix blocks that it shares, tokens that it found cached at first, times it was preempted, tries after the first.
SHARED, HIT, PREEMPTIONS, ATTEMPTS = range(18, 22)
# Prefill elsewhere: who decodes, whether the KV cache came from elsewhere, who still holds how many blocks of it.
DECODER, REMOTE, HELD_BY, HELD = range(22, 26)
WIDTH = 26

ARRIVED_AT, START_AT, FIRST_AT = range(3)
TIMES = 3

UNUSED, AT_ROUTER, WAITING, PREFILLING, DECODING, TRANSFERRING, BACKING_OFF, AT_WORKER = range(8)
