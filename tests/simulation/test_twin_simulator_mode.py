"""llm-d-inference-sim's rules, each against a value worked out by hand from its formulas (@eec055a)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.simulation import Outcome, ReplicaSpec
from models.twin_timing import SimulatorTiming
from planner.simulation.result import Result
from planner.simulation.twin import Twin
from planner.traces.requests import RequestChunk
from tests.twins import a_fleet, a_replica, replay, requests

SMALL = {"prefill_overhead_ms": 30, "prefill_ms_per_token": 0.25, "itl_ms": 12, "time_factor_under_load": 2}
"""An LLM of 8B on H100 as the shipped profile has it, without noise."""
LARGE = {"prefill_overhead_ms": 80, "prefill_ms_per_token": 0.5, "itl_ms": 25, "time_factor_under_load": 3}
"""70B on 8 of them."""


def simulated(seats: int = 16, **fields: Any) -> ReplicaSpec:
    return a_replica(timing=SimulatorTiming(**fields), max_num_seqs=seats, kv_blocks=1024)


def together(spec: ReplicaSpec, count: int, *, tokens: tuple[int, int] = (256, 2)) -> Result:
    """So many requests at once."""
    return replay(a_fleet(spec), requests([0.0] * count, [tokens[0]] * count, [tokens[1]] * count))


def ms(seconds: np.ndarray) -> list[float]:
    return [round(float(second) * 1e3, 6) for second in seconds]


def first_ms(result: Result) -> list[float]:
    return ms(result.requests["first_token_s"] - result.requests["start_s"])


@pytest.mark.parametrize(
    ("fields", "count", "expected"),
    [
        (SMALL, 1, [94]),
        (LARGE, 1, [208]),
        # Whoever starts as the n-th finds n running: f = 1 + (n - 1)/15; 94·f, cut.
        (SMALL, 4, [94, 100, 106, 112]),
        ({"ttft_ms": 100, "time_factor_under_load": 2}, 3, [100, 106, 113]),
        # One form or the other: an empty calculator takes the constant where it is not 0.
        (SMALL | {"ttft_ms": 100}, 1, [100]),
        (SMALL | {"ttft_ms": 100, "calculator": "per-token"}, 1, [94]),
        (SMALL | {"calculator": "constant"}, 1, [0]),
        # Whole milliseconds, downwards.
        ({"prefill_ms_per_token": 0.3}, 1, [76]),
        ({"ttft_ms": 0.75}, 1, [0]),
    ],
)
def test_time_to_first_token(fields: dict[str, Any], count: int, expected: list[float]) -> None:
    assert first_ms(together(simulated(**fields), count)) == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"itl_ms": 12}, 12),
        ({"itl_ms": 2.5}, 2),
        ({"itl_ms": 0.75}, 0),
        # A deviation below 1 ms disappears.
        ({"itl_ms": 12, "itl_sd_ms": 0.9}, 12),
    ],
)
def test_time_between_tokens_alone(fields: dict[str, Any], expected: float) -> None:
    rows = together(simulated(**fields), 1, tokens=(10, 101)).requests
    assert ms(rows["end_s"] - rows["first_token_s"]) == [100 * expected]


def test_the_load_is_looked_at_for_every_token() -> None:
    """Two on two seats, factor 2: 20 ms per token while both run; the longer one makes its last 10 tokens alone."""
    spec = simulated(seats=2, ttft_ms=10, itl_ms=10, time_factor_under_load=2)
    rows = replay(a_fleet(spec), requests([0.0, 0.0], [10, 10], [11, 21])).requests
    # First tokens at 10 and 20 ms. The short one makes 10 more in 20 ms each: until 210. The other has 9 by 200 and its
    # tenth at 220, asked for under load; 10 more take 10 ms each.
    assert ms(rows["first_token_s"]) == [10, 20]
    assert ms(rows["end_s"]) == [210, 320]


def test_a_full_house_is_twice_as_slow() -> None:
    rows = together(simulated(**SMALL), 16, tokens=(256, 200)).requests
    itl = (rows["end_s"] - rows["first_token_s"]) / 199
    assert itl.max() == pytest.approx(0.024)


@pytest.mark.parametrize(("mean", "sd"), [(100.0, 20.0), (100.0, 30.0), (3.9, 1.1)])
def test_noise_is_normal_and_held_within_70_percent(mean: float, sd: float) -> None:
    """With 3.9 and 1.1 ms: mean 3, deviation 1, held in [0.9, 5.1] and cut: 0 to 5 ms."""
    spec = simulated(seats=1, ttft_ms=mean, ttft_sd_ms=sd, max_waiting=10**6)
    drawn = np.array(first_ms(together(spec, 20_000, tokens=(10, 1))))
    whole, spread = np.floor(mean), np.floor(sd)
    assert np.array_equal(drawn, np.floor(drawn))
    assert drawn.min() >= np.floor(0.3 * whole)
    assert drawn.max() <= np.floor(1.7 * whole)
    if spread < 0.3 * whole:
        assert drawn.std() == pytest.approx(spread, rel=0.02)
        # Cutting takes half a millisecond on average.
        assert drawn.mean() == pytest.approx(whole - 0.5, abs=3 * spread / np.sqrt(20_000))
    assert len(np.unique(drawn)) > 4


def test_seats_and_then_a_queue_and_then_429() -> None:
    """2 seats, 3 may wait: of 6 at once one is refused; the others start as seats become free."""
    spec = simulated(seats=2, ttft_ms=100, max_waiting=3)
    rows = together(spec, 6, tokens=(10, 1)).requests
    assert rows["outcome"].tolist() == [Outcome.DONE] * 5 + [Outcome.REJECTED_429]
    assert ms(rows["start_s"][:5]) == [0, 0, 100, 100, 200]


def test_nobody_may_wait() -> None:
    rows = together(simulated(seats=1, ttft_ms=100, max_waiting=0), 2, tokens=(10, 1)).requests
    assert rows["outcome"].tolist() == [Outcome.DONE, Outcome.REJECTED_429]


@pytest.mark.parametrize(
    ("prompts", "failed"),
    [
        # 1,024 blocks of 16: four prompts of 4,096 fill it; part of a block takes none.
        ([4096] * 4, 0),
        ([4096] * 5, 1),
        ([4096] * 4 + [15], 0),
        ([4096] * 4 + [16], 1),
        ([4111] * 4, 0),
        ([16_399], 0),
        ([16_400], 1),
    ],
)
def test_only_full_blocks_of_prompts_count_and_what_does_not_fit_fails(
    prompts: list[int], failed: int
) -> None:
    spec = simulated(ttft_ms=100, itl_ms=10, kv_cache=True)
    rows = replay(a_fleet(spec), requests([0.0] * len(prompts), prompts, [500] * len(prompts))).requests
    assert np.sum(rows["outcome"] == Outcome.FAILED_500) == failed
    assert rows["outcome"][: len(prompts) - failed].tolist() == [Outcome.DONE] * (len(prompts) - failed)
    assert np.all(rows["end_s"][len(prompts) - failed :] == 0.0)


def conversation(arrivals: list[float], names: list[list[int]], tokens: int) -> RequestChunk:
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in names])]).astype(np.int64)
    hashes = np.array([name for each in names for name in each], np.int64)
    count = len(arrivals)
    return requests(
        arrivals, [tokens] * count, [2] * count,
        prefix_offsets=offsets, prefix_hashes=hashes, prefix_block_tokens=16,
    )  # fmt: skip


def test_cached_blocks_cost_no_prefill_and_no_memory_twice() -> None:
    """64 tokens are 4 blocks. The second asks for the same: nothing is computed; the third shares two blocks."""
    spec = simulated(kv_cache=True, **SMALL)
    chunk = conversation([0.0, 1.0, 2.0], [[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 5, 6]], 64)
    result = replay(a_fleet(spec), chunk)
    assert result.requests["prefix_hit_tokens"].tolist() == [0, 64, 32]
    assert first_ms(result) == [46, 30, 38]


def test_usage_is_what_running_prompts_hold_and_ended_ones_make_room_oldest_first() -> None:
    """10 blocks: two prompts of 4 are kept after their end; a third of 4 takes two free ones and evicts the oldest two."""
    timing = SimulatorTiming(ttft_ms=100, itl_ms=900, kv_cache=True)
    spec = a_replica(timing=timing, max_num_seqs=4, kv_blocks=10)
    names = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [5, 6, 7, 8], [1, 2, 3, 4]]
    twin = Twin(a_fleet(spec), iter([conversation([0.0, 2.0, 4.0, 6.0, 8.0], names, 64)]))
    usage = {}
    for at_s in (0.5, 1.5, 4.5):
        twin.advance(at_s)
        usage[at_s] = twin.observe().replicas[0].kv_usage
    assert usage == pytest.approx({0.5: 0.4, 1.5: 0.0, 4.5: 0.4})
    twin.advance(20.0)
    # The fourth finds all of it; of the first, whose last blocks went first, two blocks are left.
    assert twin.finish().requests["prefix_hit_tokens"].tolist() == [0, 0, 0, 64, 32]


@pytest.mark.parametrize(
    ("fields", "transfer_ms"),
    [
        ({"kv_transfer_ms": 2}, 2),
        ({"kv_transfer_ms_per_token": 0.05}, 50),
        # No load factor: two on the way take as long as one.
        ({"kv_transfer_ms": 200, "kv_transfer_ms_per_token": 0.05, "time_factor_under_load": 3}, 200),
        ({"kv_transfer_ms": 2, "kv_transfer_ms_per_token": 0.05, "calculator": "per-token"}, 50),
    ],
)
def test_prefill_elsewhere_costs_the_transfer_only(fields: dict[str, Any], transfer_ms: float) -> None:
    """1,000 tokens: 280 ms there, then the transfer, then tokens of 12 ms here."""
    there = a_replica(variant="p", role="prefill", timing=SimulatorTiming(**SMALL), max_num_seqs=16)
    here = a_replica(
        variant="d", role="decode", max_num_seqs=16, timing=SimulatorTiming(**{"itl_ms": 12} | fields)
    )
    result = replay(a_fleet(there, here), requests([0.0], [1000], [3]))
    rows = result.requests
    assert rows["replica"].tolist() == [1]
    assert ms(rows["first_token_s"]) == [280 + transfer_ms]
    assert ms(rows["end_s"]) == [280 + transfer_ms + 24]
    assert [round(record.running_s, 9) for record in result.replicas] == [
        0.28,
        round((transfer_ms + 24) / 1e3, 9),
    ]
