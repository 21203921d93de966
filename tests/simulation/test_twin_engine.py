"""The engine: equal to stepping request by request, memory in bounds, the same bytes whatever the calls."""

from __future__ import annotations

import numpy as np
import pytest

from models.simulation import Outcome, RouterSpec
from models.twin_timing import LinearTiming
from planner.simulation.kernel import rep, total
from planner.simulation.twin import Twin
from tests.naive_engine import NaiveEngine, Request
from tests.twins import STEADY, a_fleet, a_replica, poisson, replay, requests


@pytest.mark.parametrize("looks_ahead", [False, True])
@pytest.mark.parametrize(
    ("kv_blocks", "seqs", "tokens", "chunked", "rate"),
    [
        (2000, 64, 512, True, 8.0),
        (60, 64, 512, True, 8.0),
        (40, 8, 64, True, 4.0),
        (2000, 4, 1024, True, 8.0),
        (60, 16, 512, False, 8.0),
        (31, 16, 100, True, 20.0),
    ],
)
def test_skipping_ahead_equals_stepping_request_by_request(
    kv_blocks: int, seqs: int, tokens: int, chunked: bool, rate: float, looks_ahead: bool
) -> None:
    chunk = poisson(150, rate)
    naive = [
        Request(i, float(chunk.arrival_s[i]), int(chunk.input_tokens[i]), int(chunk.output_tokens[i]))
        for i in range(len(chunk))
    ]
    NaiveEngine(STEADY, kv_blocks, 16, seqs, tokens, chunked, looks_ahead).run(list(naive))
    spec = a_replica(
        kv_blocks=kv_blocks,
        max_num_seqs=seqs,
        max_num_batched_tokens=tokens,
        chunked_prefill=chunked,
        async_scheduling=looks_ahead,
    )
    rows = replay(a_fleet(spec), chunk).requests
    assert np.all(rows["outcome"] == Outcome.DONE)
    assert rows["preemptions"].tolist() == [request.preemptions for request in naive]
    assert np.allclose(rows["first_token_s"], [request.first_s for request in naive], rtol=0, atol=1e-9)
    assert np.allclose(rows["end_s"], [request.last_s for request in naive], rtol=0, atol=1e-9)


def test_who_comes_during_a_step_waits_for_the_one_that_was_composed_before() -> None:
    """Steps of 1 s: the first one comes at 0, the second one at 0.5, when the step that begins at 1 is composed."""
    first = {}
    for ahead in (False, True):
        spec = a_replica(timing=LinearTiming(base_s=1.0), async_scheduling=ahead)
        rows = replay(a_fleet(spec), requests([0.0, 0.5], [10, 10], [6, 6])).requests
        first[ahead] = rows["first_token_s"].tolist()
    assert first == {False: [1.0, 2.0], True: [1.0, 3.0]}


def test_the_tight_cases_do_preempt() -> None:
    rows = replay(a_fleet(a_replica(kv_blocks=31, max_num_seqs=16)), poisson(150, 20.0)).requests
    assert rows["preemptions"].sum() > 10


def test_how_a_run_is_cut_into_calls_changes_nothing() -> None:
    spec = a_fleet(a_replica(kv_blocks=80, initial_replicas=3))
    whole, cut = (replay(spec, poisson(200, 20.0), seed=5, step_s=step) for step in (1000.0, 0.37))
    for name, column in whole.requests.items():
        assert column.tobytes() == cut.requests[name].tobytes(), name


def test_one_seed_gives_the_same_bytes_and_another_does_not() -> None:
    spec = a_fleet(a_replica(initial_replicas=4))
    first, again, other = (replay(spec, poisson(200, 20.0), seed=seed) for seed in (1, 1, 2))
    assert all(first.requests[k].tobytes() == again.requests[k].tobytes() for k in first.requests)
    assert first.requests["replica"].tobytes() != other.requests["replica"].tobytes()


def test_names_of_variants_change_nothing() -> None:
    def fleet(*names: str) -> object:
        return a_fleet(*(a_replica(variant=name, initial_replicas=2) for name in names))

    one, other = (replay(fleet(*names), poisson(200, 20.0)) for names in (("a", "b"), ("z", "c")))  # type: ignore[arg-type]
    assert one.requests["replica"].tobytes() == other.requests["replica"].tobytes()
    assert one.requests["end_s"].tobytes() == other.requests["end_s"].tobytes()


def test_blocks_are_never_negative_and_never_over() -> None:
    twin = Twin(a_fleet(a_replica(kv_blocks=40, initial_replicas=2)), iter([poisson(200, 20.0)]))
    while not twin.idle:
        twin.advance(twin.now_s + 0.05)
        rows = twin._state.replicas[:2]
        assert np.all((rows[:, rep.FREE] >= 0) & (rows[:, rep.FREE] <= rows[:, rep.BLOCKS]))
    assert np.all(rows[:, rep.FREE] == rows[:, rep.BLOCKS])
    assert twin._state.totals[total.LIVE] == 0


def prefixed(n: int, *, groups: int, blocks: int) -> object:
    """``n`` requests of ``groups`` conversations, each group with the same ``blocks`` prefix blocks of 64 tokens."""
    hashes = np.concatenate([np.arange(blocks) + 1000 * (i % groups) for i in range(n)]).astype(np.int64)
    offsets = np.arange(n + 1, dtype=np.int64) * blocks
    return requests(
        np.arange(n) * 0.5,
        np.full(n, 64 * blocks + 20),
        np.full(n, 5),
        prefix_offsets=offsets,
        prefix_hashes=hashes,
        prefix_block_tokens=64,
    )


@pytest.mark.parametrize(("kv_blocks", "hits"), [(400, 17), (70, 0)])
def test_prefixes_are_found_while_memory_lasts(kv_blocks: int, hits: int) -> None:
    """Three prompts of 16 blocks in turn: with room for all each is computed once, with room for two never kept."""
    spec = a_replica(kv_blocks=kv_blocks, block_size=16)
    rows = replay(a_fleet(spec), prefixed(20, groups=3, blocks=8)).requests  # type: ignore[arg-type]
    assert np.sum(rows["prefix_hit_tokens"] == 512) == hits


def test_what_never_fits_fails_and_the_rest_is_served() -> None:
    spec = a_fleet(a_replica(kv_blocks=10))
    rows = replay(spec, requests([0, 1, 2], [100, 500, 100], [10, 10, 200])).requests
    assert rows["outcome"].tolist() == [Outcome.DONE, Outcome.FAILED_500, Outcome.FAILED_500]


def test_decode_elsewhere_waits_for_the_transfer() -> None:
    prefill = a_replica(variant="p", role="prefill")
    decode = a_replica(variant="d", role="decode", transfer_s=2.0, transfer_per_token_s=0.01)
    rows = replay(a_fleet(prefill, decode), requests([0.0], [100], [11])).requests
    work = (STEADY.base_s + 100 * STEADY.per_prefill_token_s + 5000 * STEADY.per_pair_s) + 3.0
    assert rows["outcome"][0] == Outcome.DONE
    assert rows["first_token_s"][0] == pytest.approx(
        work + STEADY.base_s + STEADY.per_prefill_token_s + 99.5e-9
    )
    assert rows["replica"][0] == 1


def test_requests_time_out_and_are_rejected_and_every_one_is_accounted_for() -> None:
    router = RouterSpec(admission="queue", queue_requests=5, saturated_queue=2, request_timeout_s=1.0)
    result = replay(a_fleet(a_replica(max_num_seqs=2), router=router), poisson(200, 10.0), until_s=15.0)
    outcomes = result.served().outcomes
    assert sum(outcomes.values()) == result.arrivals["chat"]
    for outcome in (Outcome.DONE, Outcome.REJECTED_429, Outcome.TIMED_OUT, Outcome.UNFINISHED):
        assert outcomes[outcome] > 0, outcome
