"""The twin against queueing theory: M/M/1, M/M/c (Erlang C), M/M/c/K (Erlang's loss), Little's law."""

from __future__ import annotations

import math

import numpy as np
import pytest

from models.simulation import Outcome
from models.twin_timing import LinearTiming, SimulatorTiming
from planner.simulation.result import Result
from tests.twins import a_fleet, a_replica, replay, requests

REQUESTS, BATCHES = 60_000, 30
UNIT_S = 1e-5


def exponential(rate: float, *, seed: int = 7) -> object:
    """Poisson arrivals and one-token answers whose prompt is exponential with mean 100,000 tokens, so 1 s of work."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, REQUESTS))
    work = np.maximum(1, np.rint(rng.exponential(1 / UNIT_S, REQUESTS)))
    return requests(arrivals, work, np.ones(REQUESTS))


def close(values: np.ndarray, expected: float) -> bool:
    """Within 1 % or 3 standard errors of batch means (waiting times of neighbors go together)."""
    means = np.array([part.mean() for part in np.array_split(values, BATCHES)])
    error = means.std(ddof=1) / math.sqrt(BATCHES)
    return abs(values.mean() - expected) <= max(0.01 * expected, 3 * error)


def erlang_c(servers: int, load: float) -> float:
    """Probability of having to wait."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def with_workers(servers: int, waiting: int, rate: float) -> Result:
    timing = SimulatorTiming(
        calculator="per-token", prefill_ms_per_token=UNIT_S * 1e3, max_waiting=waiting, whole_ms=False
    )
    spec = a_replica(timing=timing, max_num_seqs=servers, kv_blocks=10)
    return replay(a_fleet(spec), exponential(rate), step_s=1e5)  # type: ignore[arg-type]


def test_an_engine_of_one_is_m_m_1() -> None:
    timing = LinearTiming(base_s=0.0, per_prefill_token_s=UNIT_S)
    spec = a_replica(
        timing=timing, max_num_seqs=1, max_num_batched_tokens=2 * 10**9, kv_blocks=10**7, prefix_caching=False
    )
    rows = replay(a_fleet(spec), exponential(0.7), step_s=1e5).requests  # type: ignore[arg-type]
    assert close(rows["end_s"] - rows["arrival_s"], 1 / (1 - 0.7))


@pytest.mark.parametrize(("servers", "rate"), [(1, 0.7), (4, 3.0), (10, 8.0)])
def test_workers_are_m_m_c(servers: int, rate: float) -> None:
    rows = with_workers(servers, 10**9, rate).requests
    waits = rows["start_s"] - rows["arrival_s"]
    assert close((waits > 1e-9).astype(float), erlang_c(servers, rate))
    assert close(waits, erlang_c(servers, rate) / (servers - rate))


@pytest.mark.parametrize(("servers", "waiting", "rate"), [(1, 4, 0.9), (3, 0, 3.0)])
def test_workers_with_a_limit_are_m_m_c_k(servers: int, waiting: int, rate: float) -> None:
    weights = [1.0]
    for n in range(1, servers + waiting + 1):
        weights.append(weights[-1] * rate / min(n, servers))
    rows = with_workers(servers, waiting, rate).requests
    assert close((rows["outcome"] == Outcome.REJECTED_429).astype(float), weights[-1] / sum(weights))


def test_little_holds_for_what_is_in_flight() -> None:
    """The mean of the samples is the arrival rate times the mean stay."""
    result = with_workers(4, 10**9, 3.0)
    rows = result.requests
    stay = (rows["end_s"] - rows["arrival_s"]).mean()
    expected = len(rows["request"]) / result.duration_s * stay
    assert result.time["chat:in_flight"].mean() == pytest.approx(expected, rel=0.01)
