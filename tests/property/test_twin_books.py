"""The twin's books under anything that may happen: blocks, holders and requests are counted anew from what is there."""

from __future__ import annotations

import numpy as np
import pytest

from models.simulation import (
    Admission,
    NodeSpec,
    ReplicaSpec,
    RetrySpec,
    RouterSpec,
    TwinSpec,
)
from models.twin_timing import SimulatorTiming
from planner.simulation.kernel import rep, slot, total
from planner.simulation.twin import Twin
from planner.traces.requests import RequestChunk
from tests.twins import STEADY, a_fleet, a_replica, requests

BLOCK, PREFIX = 16, 64


def traffic(rng: np.random.Generator, n: int = 250) -> RequestChunk:
    """Bursts of conversations that share prefixes, some longer than what a replica can hold."""
    arrivals = np.cumsum(rng.gamma(0.4, 0.15, n))
    blocks = rng.integers(0, 9, n)
    hashes = [np.arange(count) + 100 * rng.integers(0, 12) for count in blocks]
    inputs = np.maximum(1, PREFIX * blocks + rng.integers(0, 60, n))
    return requests(
        arrivals,
        inputs,
        rng.integers(1, 90, n),
        priority=rng.integers(-2, 3, n).astype(np.int32),
        prefix_offsets=np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64),
        prefix_hashes=np.concatenate([*hashes, []]).astype(np.int64),
        prefix_block_tokens=PREFIX,
    )


def a_random_replica(rng: np.random.Generator, **fields: object) -> ReplicaSpec:
    seats = int(rng.integers(2, 20))
    timing = STEADY
    if rng.random() < 0.25:
        timing = SimulatorTiming(ttft_ms=50, itl_ms=10, time_factor_under_load=2, kv_cache=True)  # type: ignore[assignment]
    return a_replica(
        timing=timing,
        kv_blocks=int(rng.integers(30, 90)),
        max_num_seqs=seats,
        max_num_batched_tokens=int(rng.integers(max(seats, 64), 600)),
        chunked_prefill=bool(rng.random() < 0.8),
        async_scheduling=bool(rng.random() < 0.5),
        prefix_caching=bool(rng.random() < 0.8),
        watermark=float(rng.choice([0.0, 0.05])),
        startup_s=float(rng.choice([0.0, 1.5])),
        grace_s=float(rng.choice([0.0, 2.0])),
        max_waiting=int(rng.choice([0, 4])),
        initial_replicas=int(rng.integers(1, 3)),
        removal=str(rng.choice(["newest", "least-loaded"])),
        gpu_type="H",
        **fields,
    )


def a_random_fleet(rng: np.random.Generator) -> TwinSpec:
    router = RouterSpec(
        admission=Admission(str(rng.choice([each.value for each in Admission]))),
        queue_requests=int(rng.choice([0, 10])),
        queue_timeout_s=float(rng.choice([0.0, 1.0])),
        request_timeout_s=float(rng.choice([0.0, 4.0])),
        hold_without_replica=bool(rng.random() < 0.5),
        saturated_queue=int(rng.integers(1, 6)),
        retry=RetrySpec(attempts=int(rng.integers(0, 3)), backoff_s=0.3),
    )
    nodes = tuple(NodeSpec(name=f"n{k}", gpu_type="H", gpus=2) for k in range(3))
    if rng.random() < 0.4:
        split = (
            a_random_replica(rng, variant="p", role="prefill"),
            a_random_replica(rng, variant="d", role="decode", transfer_s=0.2),
        )
        return a_fleet(*split, router=router, nodes=nodes)
    return a_fleet(*(a_random_replica(rng, variant=name) for name in "pd"), router=router, nodes=nodes)


def disturb(twin: Twin, rng: np.random.Generator) -> None:
    """Scale, lose a replica or a node, or let it be."""
    what = rng.random()
    if what < 0.06:
        twin.scale(str(rng.choice(["p", "d"])), int(rng.integers(0, 4)))
    elif what < 0.07:
        alive = [one.name for one in twin.observe().replicas]
        if alive:
            twin.fail(str(rng.choice(alive)))
    elif what < 0.073:
        twin.fail("n1")


def check_books(twin: Twin) -> None:
    """Count everything again from requests and prefix entries alone."""
    st = twin._state
    live = st.slots[st.slots[:, slot.PLACE] != slot.UNUSED]
    assert len(live) == st.totals[total.LIVE]
    for r in st.active[: st.totals[total.ACTIVE]].tolist():
        row = st.replicas[r]
        if row[rep.STATE] >= rep.REMOVED:
            continue
        here = live[live[:, slot.REPLICA] == r]
        at = {place: here[here[:, slot.PLACE] == place] for place in range(8)}
        running = np.concatenate([at[slot.PREFILLING], at[slot.DECODING], at[slot.AT_WORKER]])
        assert len(running) == row[rep.RUNNING] <= row[rep.MAX_SEQS]
        assert len(at[slot.WAITING]) == row[rep.WAITERS]
        assert len(at[slot.DECODING]) == row[rep.DECODING]
        lengths = at[slot.DECODING][:, slot.BASE] + row[rep.STEPS]
        assert lengths.sum() == row[rep.CONTEXT]
        held = [
            *(-(-(at[slot.PREFILLING][:, slot.COMPUTED] + at[slot.PREFILLING][:, slot.CHUNK]) // BLOCK)),
            *(-(-(lengths + row[rep.IN_STEP]) // BLOCK)),
        ]
        shared = [*at[slot.PREFILLING][:, slot.SHARED], *at[slot.DECODING][:, slot.SHARED]]
        own = sum(held) - sum(shared) * (PREFIX // BLOCK) + at[slot.AT_WORKER][:, slot.HELD].sum()
        own += live[live[:, slot.HELD_BY] == r + 1][:, slot.HELD].sum()
        entries = st.entries[r, st.table[r][st.table[r] > 0] - 1]
        assert entries[:, 1].sum() == running[:, slot.SHARED].sum()
        unheld = np.sum(entries[:, 1] == 0) * (PREFIX // BLOCK)
        used = own + np.sum(entries[:, 1] > 0) * (PREFIX // BLOCK)
        assert unheld == row[rep.CACHED]
        assert used == row[rep.BLOCKS] - row[rep.FREE]
        assert row[rep.CACHED] <= row[rep.FREE] <= row[rep.BLOCKS]


@pytest.mark.parametrize("seed", range(24))
def test_blocks_holders_and_requests_always_balance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    twin = Twin(a_random_fleet(rng), iter([traffic(rng)]), seed=seed)
    while not twin.idle and twin.now_s < 60.0:
        twin.advance(twin.now_s + 0.1)
        check_books(twin)
        disturb(twin, rng)
        check_books(twin)
    result = twin.finish()
    result.check_conservation()
    assert sum(result.served().outcomes.values()) == result.arrivals["chat"] == 250


def test_together_they_see_every_outcome_but_two() -> None:
    """Else the cases above would not try what they are there for."""
    seen: set[int] = set()
    preempted = hits = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        twin = Twin(a_random_fleet(rng), iter([traffic(rng)]), seed=seed)
        while not twin.idle and twin.now_s < 60.0:
            twin.advance(twin.now_s + 0.1)
            disturb(twin, rng)
        rows = twin.finish().requests
        seen |= set(rows["outcome"].tolist())
        preempted += int(rows["preemptions"].sum())
        hits += int(np.sum(rows["prefix_hit_tokens"] > 0))
    assert len(seen) >= 6
    assert preempted > 20
    assert hits > 100
