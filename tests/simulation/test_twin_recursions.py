"""The twin against recursions that give every single request exactly, and against processor sharing on average."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from models.simulation import Outcome, RouterSpec, TwinSpec
from models.twin_timing import LinearTiming, SimulatorTiming
from planner.traces.requests import RequestChunk
from tests.twins import a_fleet, a_replica, replay, requests

UNIT_S = 1e-5
SERVERS = pytest.mark.parametrize("servers", [1, 3, 8])


def bursty(n: int, load: float, *, seed: int = 3) -> RequestChunk:
    """Gamma gaps (CV 2) and one-token answers whose prompts are lognormal work with a mean near 1 s."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.gamma(0.25, 4 / load, n))
    work = np.maximum(1, np.rint(rng.lognormal(-0.5, 1.0, n) / UNIT_S))
    return requests(arrivals, work, np.ones(n))


def first_come_first_served(chunk: RequestChunk, servers: int) -> tuple[np.ndarray, np.ndarray]:
    """When each request starts and ends with so many servers (Kiefer and Wolfowitz, 1955; one server: Lindley, 1952)."""
    free = [0.0] * servers
    starts, ends = [], []
    for at_s, tokens in zip(chunk.arrival_s.tolist(), chunk.input_tokens.tolist(), strict=True):
        starts.append(max(at_s, heapq.heappop(free)))
        ends.append(starts[-1] + tokens * UNIT_S)
        heapq.heappush(free, ends[-1])
    return np.array(starts), np.array(ends)


def workers(servers: int) -> TwinSpec:
    timing = SimulatorTiming(
        calculator="per-token", prefill_ms_per_token=UNIT_S * 1e3, max_waiting=10**9, whole_ms=False
    )
    return a_fleet(a_replica(timing=timing, max_num_seqs=servers, kv_blocks=10))


def behind_a_router(servers: int) -> TwinSpec:
    """Replicas that serve one request at a time; the others wait at the router."""
    one = a_replica(
        timing=LinearTiming(base_s=0.0, per_prefill_token_s=UNIT_S),
        max_num_seqs=1,
        max_num_batched_tokens=2 * 10**9,
        kv_blocks=10**7,
        initial_replicas=servers,
    )
    return a_fleet(one, router=RouterSpec(admission="queue", max_in_flight=1, saturated_kv=1.0))


@SERVERS
@pytest.mark.parametrize("fleet", [workers, behind_a_router])
def test_every_request_starts_and_ends_as_by_the_recursion(fleet: object, servers: int) -> None:
    chunk = bursty(3000, 0.85 * servers)
    rows = replay(fleet(servers), chunk, step_s=1e4).requests  # type: ignore[operator]
    starts, ends = first_come_first_served(chunk, servers)
    assert np.mean(starts > chunk.arrival_s) > 0.3
    assert np.allclose(rows["start_s"], starts, rtol=0, atol=1e-6)
    assert np.allclose(rows["end_s"], ends, rtol=0, atol=1e-6)


@pytest.mark.parametrize("spread", ["constant", "geometric", "two kinds"])
def test_a_batch_shares_the_processor(spread: str) -> None:
    """M/G/1 processor sharing: the mean stay is work/(1 - load) whatever the distribution of work (Kleinrock, 1976).

    A step of n requests takes n units, each gets one token: a request of m tokens needs m units alone.
    """
    n, unit_s, mean, load = 40_000, 1e-3, 200, 0.6
    rng = np.random.default_rng(11)
    lengths = {
        "constant": np.full(n, mean),
        "geometric": rng.geometric(1 / mean, n),
        "two kinds": np.where(rng.random(n) < 0.5, 20, 380),
    }[spread]
    arrivals = np.cumsum(rng.exponential(mean * unit_s / load, n))
    timing = LinearTiming(base_s=0.0, per_request_s=unit_s, per_prefill_token_s=unit_s)
    spec = a_replica(timing=timing, kv_blocks=10**6, max_num_seqs=4096, max_num_batched_tokens=4096)
    rows = replay(a_fleet(spec), requests(arrivals, np.ones(n), lengths), step_s=1e5).requests
    stay, work = rows["end_s"] - rows["arrival_s"], lengths * unit_s
    slowdowns = [
        part.sum() / own.sum()
        for part, own in zip(np.array_split(stay, 20), np.array_split(work, 20), strict=True)
    ]
    error = np.std(slowdowns, ddof=1) / math.sqrt(20)
    expected = 1 / (1 - work.sum() / rows["arrival_s"][-1])
    assert np.mean(slowdowns) == pytest.approx(expected, rel=max(0.01, 3 * error / expected))
    assert error / expected < 0.025
    assert np.all(rows["outcome"] == Outcome.DONE)
