"""Rules of replicas and router, each against a value worked out by hand. Steps of 1 s unless said otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from models.simulation import (
    Admission,
    NodeSpec,
    Outcome,
    ReplicaSpec,
    ReplicaState,
    RetrySpec,
    RouterSpec,
    Routing,
)
from models.twin_timing import LinearTiming
from planner.simulation.kernel import rep
from planner.simulation.twin import Twin
from tests.twins import a_fleet, a_replica, replay, requests

SECOND = LinearTiming(base_s=1.0)


def slow(**changes: object) -> ReplicaSpec:
    return a_replica(**({"timing": SECOND, "prefix_caching": False} | changes))


def test_whoever_waits_for_a_start_is_served_when_it_is_over() -> None:
    router = RouterSpec(hold_without_replica=True)
    twin = Twin(
        a_fleet(slow(startup_s=30.0, initial_replicas=0), router=router), iter([requests([2.0], [10], [3])])
    )
    twin.advance(5.0)
    twin.scale("v", 1)
    twin.advance(60.0)
    rows = twin.finish().requests
    assert (rows["start_s"][0], rows["first_token_s"][0], rows["end_s"][0]) == (35.0, 36.0, 38.0)


def test_a_draining_replica_takes_nobody_and_ends_with_its_grace() -> None:
    """Removed at 3 with 5 s: the short one ends at 6, the long one is cut off at 8; who comes meanwhile goes elsewhere."""
    spec = slow(grace_s=5.0, initial_replicas=2, removal="newest")
    router = RouterSpec(routing=Routing.ROUND_ROBIN)
    arrivals = requests([0.0, 0.0, 0.0, 0.0, 4.0], [10] * 5, [4, 6, 50, 50, 3])
    twin = Twin(a_fleet(spec, router=router), iter([arrivals]))
    twin.advance(3.0)
    twin.scale("v", 1)
    twin.advance(3.5)
    assert [one.state for one in twin.observe().replicas] == [ReplicaState.READY, ReplicaState.DRAINING]
    twin.advance(60.0)
    result = twin.finish()
    rows = result.requests
    assert rows["replica"].tolist() == [0, 1, 0, 1, 0]
    assert rows["outcome"].tolist() == [Outcome.DONE] * 3 + [Outcome.ABORTED, Outcome.DONE]
    assert rows["end_s"].tolist() == [4.0, 6.0, 50.0, 8.0, 7.0]
    assert rows["tokens_made"][3] == 8
    assert [record.removed_s for record in result.replicas] == [None, 8.0]


def test_a_node_that_fails_ends_what_runs_there_at_that_moment() -> None:
    nodes = (NodeSpec(name="n0", gpu_type="H", gpus=2), NodeSpec(name="n1", gpu_type="H", gpus=1))
    spec = slow(gpu_type="H", initial_replicas=3, startup_s=4.0)
    router = RouterSpec(routing=Routing.ROUND_ROBIN)
    twin = Twin(a_fleet(spec, router=router, nodes=nodes), iter([requests([0.0] * 3, [10] * 3, [9] * 3)]))
    twin.advance(2.5)
    twin.fail("n0")
    twin.advance(30.0)
    result = twin.finish()
    assert result.requests["outcome"].tolist() == [Outcome.ABORTED, Outcome.ABORTED, Outcome.DONE]
    assert result.requests["end_s"].tolist() == [2.5, 2.5, 9.0]
    # Nobody has GPUs for what was desired: n1 is full.
    assert [record.state for record in result.replicas] == [
        ReplicaState.FAILED,
        ReplicaState.FAILED,
        ReplicaState.READY,
    ]


def pair(**decode: object) -> tuple[ReplicaSpec, ReplicaSpec]:
    first = slow(variant="p", role="prefill", timing=LinearTiming(base_s=1.0, per_prefill_token_s=0.01))
    return first, slow(variant="d", role="decode", transfer_s=2.0, transfer_per_token_s=0.01, **decode)


def test_prefill_there_and_decode_here_with_the_transfer_between() -> None:
    """100 tokens: 2 s of prefill, 3 s of transfer, then steps of 1 s; the second one waits for the first prefill."""
    rows = replay(a_fleet(*pair()), requests([0.0, 0.5], [100, 100], [4, 4])).requests
    assert rows["first_token_s"].tolist() == [6.0, 8.0]
    assert rows["end_s"].tolist() == [9.0, 11.0]
    assert rows["replica"].tolist() == [1, 1]


def test_the_kv_cache_is_held_there_until_it_was_fetched() -> None:
    twin = Twin(a_fleet(*pair()), iter([requests([0.0], [100], [4])]))
    held = {}
    for at_s in (1.5, 4.5, 5.5):
        twin.advance(at_s)
        used = twin._state.replicas[:2, rep.BLOCKS] - twin._state.replicas[:2, rep.FREE]
        held[at_s] = used.tolist()
    # 100 tokens are 7 blocks of 16.
    assert held == {1.5: [7, 0], 4.5: [7, 0], 5.5: [0, 7]}


@pytest.mark.parametrize(("at_s", "made"), [(1.0, 0), (4.0, 0), (7.5, 2)])
def test_a_decoder_that_fails_ends_what_is_on_its_way_to_it(at_s: float, made: int) -> None:
    twin = Twin(a_fleet(*pair()), iter([requests([0.0], [100], [4])]))
    twin.advance(at_s)
    twin.fail("d-0")
    twin.advance(20.0)
    state, result = twin._state, twin.finish()
    assert result.requests["outcome"].tolist() == [Outcome.ABORTED]
    assert result.requests["tokens_made"][0] == made
    assert state.replicas[0, rep.FREE] == state.replicas[0, rep.BLOCKS]


def test_variants_serve_one_service_each_at_its_own_speed() -> None:
    fast = slow(variant="fast", timing=LinearTiming(base_s=0.25), price_usd_per_h=7200.0)
    slower = slow(variant="slow", price_usd_per_h=3600.0)
    spec = a_fleet(fast, slower, router=RouterSpec(routing=Routing.ROUND_ROBIN))
    result = replay(spec, requests([0.0, 0.0], [10, 10], [8, 8]), until_s=10.0)
    assert result.requests["end_s"].tolist() == [2.0, 8.0]
    assert [record.cost_usd for record in result.replicas] == [20.0, 10.0]


@pytest.mark.parametrize(
    ("attempts", "outcome", "tries", "end_s"),
    [
        (0, Outcome.REJECTED_503, 0, 0.0),
        (2, Outcome.REJECTED_503, 2, 3.0),
        # At 0, 1, 3 and 7 s; somebody is ready at 5.
        (3, Outcome.DONE, 3, 9.0),
    ],
)
def test_a_client_tries_again_after_waits_that_double(
    attempts: int, outcome: Outcome, tries: int, end_s: float
) -> None:
    router = RouterSpec(retry=RetrySpec(attempts=attempts, backoff_s=1.0, factor=2.0))
    twin = Twin(
        a_fleet(slow(startup_s=5.0, initial_replicas=0), router=router), iter([requests([0.0], [10], [2])])
    )
    twin.scale("v", 1)
    twin.advance(30.0)
    rows = twin.finish().requests
    assert (rows["outcome"][0], rows["attempts"][0], rows["end_s"][0]) == (outcome, tries, end_s)


def busy(admission: Admission, priorities: list[int], **router: object) -> dict[str, list[float]]:
    """A replica that is saturated by one request until 10 s; others come at 1, 2, … s with their priorities."""
    count = len(priorities)
    chunk = requests(
        [0.0, *np.arange(1.0, count + 1.0)],
        [10] * (count + 1),
        [10, *[2] * count],
        priority=np.array([0, *priorities], np.int32),
    )
    fields = {"admission": admission, "max_in_flight": 1, **router}
    rows = replay(a_fleet(slow(), router=RouterSpec(**fields)), chunk).requests  # type: ignore[arg-type]
    return {"end": rows["end_s"][1:].tolist(), "outcome": rows["outcome"][1:].tolist()}


def test_more_important_requests_leave_the_router_first_and_equals_in_order() -> None:
    found = busy(Admission.QUEUE, [0, 5, -3, 5])
    assert found["end"] == [16.0, 12.0, 18.0, 14.0]


@pytest.mark.parametrize(
    ("admission", "outcomes"),
    [
        (Admission.OFF, [Outcome.DONE, Outcome.DONE]),
        (Admission.SHED, [Outcome.DONE, Outcome.REJECTED_429]),
        (Admission.REJECT, [Outcome.REJECTED_429, Outcome.REJECTED_429]),
        (Admission.QUEUE, [Outcome.DONE, Outcome.DONE]),
    ],
)
def test_what_admission_makes_of_a_saturated_fleet(admission: Admission, outcomes: list[Outcome]) -> None:
    assert busy(admission, [0, -1])["outcome"] == outcomes


@pytest.mark.parametrize(
    ("limit", "outcomes", "ends"),
    [
        ({"queue_requests": 1}, [Outcome.DONE, Outcome.REJECTED_429], [12.0, 2.0]),
        ({"queue_tokens": 15}, [Outcome.DONE, Outcome.REJECTED_429], [12.0, 2.0]),
        ({"queue_timeout_s": 5.0}, [Outcome.REJECTED_503, Outcome.REJECTED_503], [6.0, 7.0]),
        ({"request_timeout_s": 10.5}, [Outcome.TIMED_OUT, Outcome.TIMED_OUT], [11.5, 12.5]),
    ],
)
def test_limits_of_the_queue_at_the_router(
    limit: dict[str, float], outcomes: list[Outcome], ends: list[float]
) -> None:
    found = busy(Admission.QUEUE, [0, 0], **limit)
    assert (found["outcome"], found["end"]) == (outcomes, ends)


def test_the_last_one_is_preempted_and_computes_all_of_it_again() -> None:
    """Blocks of 4 tokens, 5 of them: two prompts of 8 take 4, the first token beyond them the fifth.

    At 1 s both have a token and 9 tokens each would want a third block: the second one is preempted in the step from 1
    to 2. Alone, the first one grows to 12 tokens in that block and ends at 4. Then 9 tokens are computed again.
    """
    spec = slow(kv_blocks=5, block_size=4, max_num_seqs=2)
    rows = replay(a_fleet(spec), requests([0.0, 0.0], [8, 8], [4, 4])).requests
    assert rows["preemptions"].tolist() == [0, 1]
    assert rows["first_token_s"].tolist() == [1.0, 1.0]
    assert rows["end_s"].tolist() == [4.0, 7.0]


@pytest.mark.parametrize(("watermark", "start_s"), [(0.0, 1.0), (0.2, 1.0), (0.4, 5.0)])
def test_the_watermark_keeps_blocks_for_those_who_run(watermark: float, start_s: float) -> None:
    """Of 10 blocks the first one has 5 by 1 s; the second one wants 3 and must leave 0, 2 or 4 of the others."""
    spec = slow(kv_blocks=10, block_size=4, watermark=watermark)
    rows = replay(a_fleet(spec), requests([0.0, 0.5], [16, 12], [5, 2])).requests
    assert rows["start_s"].tolist() == [0.0, start_s]


def test_nobody_waits_for_the_watermark_where_nobody_runs() -> None:
    spec = slow(kv_blocks=10, block_size=4, watermark=0.9)
    assert replay(a_fleet(spec), requests([0.0], [36], [2])).requests["end_s"].tolist() == [2.0]
