"""A deployment that changes size in place, against times worked out by hand: 2 ranks step in 1 s, 4 ranks in 0.5 s."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from models.elastic import ResizeMode
from models.simulation import (
    ElasticSize,
    ElasticSpec,
    NodeSpec,
    Outcome,
    ReplicaState,
    ResizeTiming,
    RetrySpec,
    RouterSpec,
    TwinSpec,
)
from models.twin_timing import LinearTiming
from planner.errors import ConfigurationError
from planner.simulation.kernel import rep
from planner.simulation.result import Result
from planner.simulation.twin import Twin
from planner.traces.requests import RequestChunk
from tests.twins import a_fleet, a_replica, requests

C, RESTART = ResizeMode.ASYNC_GRAPH_REUSE, ResizeMode.RESTART
STEP_S = {2: 1.0, 4: 0.5}


def size(ranks: int) -> ElasticSize:
    return ElasticSize(
        ranks=ranks,
        timing=LinearTiming(base_s=STEP_S[ranks]),
        kv_blocks=10 * ranks,
        max_num_seqs=8 * ranks,
        max_num_batched_tokens=1024 * ranks,
        gpus=ranks,
    )


RESIZES = (
    ResizeTiming(mode=C, grow=True, downtime_s=2.0, total_s=10.0, balance_s=3.0),
    ResizeTiming(mode=C, grow=False, downtime_s=1.0, total_s=4.0),
    ResizeTiming(mode=RESTART, grow=True, downtime_s=6.0, total_s=6.0),
)


def deployment(
    ranks: int, *, gpus: int = 4, router: RouterSpec | None = None, prefix_caching: bool = False
) -> TwinSpec:
    """Both call sizes in the order of the file, so that the first is not taken for the initial one."""
    elastic = ElasticSpec(initial_ranks=ranks, sizes=(size(4), size(2)), resizes=RESIZES)
    first = size(ranks)
    spec = a_replica(
        timing=first.timing,
        kv_blocks=first.kv_blocks,
        max_num_seqs=first.max_num_seqs,
        max_num_batched_tokens=first.max_num_batched_tokens,
        gpus=ranks,
        gpu_type="H",
        elastic=elastic,
        prefix_caching=prefix_caching,
        price_usd_per_h=3600.0,
    )
    return a_fleet(spec, router=router, nodes=(NodeSpec(name="n0", gpu_type="H", gpus=gpus),))


def resized(
    chunk: RequestChunk, ranks: tuple[int, int], mode: ResizeMode = C, *, until_s: float = 40.0, **spec: Any
) -> tuple[Twin, Result]:
    """Called for at 5 s."""
    twin = Twin(deployment(ranks[0], **spec), iter([chunk]))
    twin.advance(5.0)
    twin.resize("v-0", ranks[1], mode)
    twin.advance(until_s)
    return twin, twin.finish()


def test_it_serves_as_before_until_the_commit_and_is_fast_when_experts_have_moved() -> None:
    """Commit 13 to 15 s, old speed until 18 s: 13 tokens, 3 more, then two per second."""
    _, result = resized(requests([0.0, 0.0], [10, 10], [16, 20]), (2, 4))
    assert result.requests["end_s"].tolist() == [18.0, 20.0]
    assert result.requests["outcome"].tolist() == [Outcome.DONE] * 2
    # Those who join are held from the call on.
    assert result.replicas[0].gpu_s == 5 * 2 + 35 * 4


@pytest.mark.parametrize(
    ("router", "outcome", "start_s"),
    [
        (RouterSpec(), Outcome.REJECTED_503, None),
        (RouterSpec(hold_without_replica=True), Outcome.DONE, 15.0),
        (RouterSpec(retry=RetrySpec(attempts=2, backoff_s=0.5)), Outcome.DONE, 15.5),
    ],
)
def test_during_the_commit_a_request_finds_nobody(
    router: RouterSpec, outcome: Outcome, start_s: float | None
) -> None:
    """It comes at 14 s; tries again at 14.5 s and at 15.5 s."""
    _, result = resized(requests([14.0], [10], [2]), (2, 4), router=router)
    assert result.requests["outcome"].tolist() == [outcome]
    if start_s is not None:
        assert result.requests["start_s"].tolist() == [start_s]


def test_what_it_can_hold_changes_at_the_end_of_the_commit() -> None:
    """20 blocks of 16 tokens hold two requests of 150 tokens, 40 hold four."""
    twin = Twin(deployment(2), iter([requests([0.0] * 4, [150] * 4, [30] * 4)]))
    twin.resize("v-0", 4, C)
    seen = {}
    for at_s in (7.9, 9.5, 10.5):
        twin.advance(at_s)
        one = twin.observe().replicas[0]
        seen[at_s] = (one.state, one.ranks, one.kv_blocks, one.running)
    assert seen == {
        7.9: (ReplicaState.READY, 2, 20, 2),
        9.5: (ReplicaState.PAUSED, 2, 20, 2),
        10.5: (ReplicaState.READY, 4, 40, 4),
    }


def test_shrinking_cuts_off_what_runs_on_the_ranks_that_leave_and_gives_their_gpus_back() -> None:
    """Commit 8 to 9 s; requests 2 and 3 of four run on ranks 2 and 3. 16 tokens by then, one per second after."""
    _, result = resized(requests([0.0] * 4, [10] * 4, [20] * 4), (4, 2))
    assert result.requests["outcome"].tolist() == [Outcome.DONE] * 2 + [Outcome.ABORTED] * 2
    assert result.requests["end_s"].tolist() == [13.0, 13.0, 8.0, 8.0]
    assert result.requests["tokens_made"].tolist() == [20, 20, 16, 16]
    assert result.replicas[0].gpu_s == 9 * 4 + 31 * 2


def test_what_no_longer_fits_is_preempted_and_not_lost() -> None:
    """On ranks 0 and 1: five requests of 7 blocks in 40; 20 blocks hold two."""
    chunk = requests([0.0] * 5, [100] * 5, [30] * 5)
    _, result = resized(chunk, (4, 2), until_s=300.0)
    kept = [0, 1, 4]
    assert result.requests["outcome"][kept].tolist() == [Outcome.DONE] * 3
    assert result.requests["preemptions"][kept].tolist() == [0, 0, 1]


def test_prefixes_that_nobody_holds_go_before_anybody_is_preempted() -> None:
    """40 blocks, 32 of which hold prefixes of requests that have ended; the one that runs has 7 and needs 8 in the end."""
    names = np.arange(8, dtype=np.int64)
    chunk = requests(
        [0.0, 2.0],
        [513, 100],
        [1, 20],
        prefix_offsets=np.array([0, 8, 8], np.int64),
        prefix_hashes=names,
        prefix_block_tokens=64,
    )
    twin = Twin(deployment(4, prefix_caching=True), iter([chunk]))
    twin.advance(3.0)
    assert twin._state.replicas[0, rep.CACHED] == 32
    twin.resize("v-0", 2, C)
    twin.advance(7.5)
    row = twin._state.replicas[0]
    assert (row[rep.BLOCKS], row[rep.RUNNING], row[rep.PREEMPTIONS]) == (20, 1, 0)
    # What is left beside the 7 is three prefix blocks of 4.
    assert (row[rep.FREE], row[rep.CACHED]) == (13, 12)
    twin.advance(60.0)
    assert twin.finish().requests["outcome"].tolist() == [Outcome.DONE] * 2


def test_a_restart_drops_everything_and_starts_with_the_new_size() -> None:
    """Down from 5 to 11 s; then at once at the new speed."""
    router = RouterSpec(hold_without_replica=True)
    _, result = resized(requests([0.0, 7.0], [10, 10], [20, 4]), (2, 4), RESTART, router=router)
    assert result.requests["outcome"].tolist() == [Outcome.ABORTED, Outcome.DONE]
    assert result.requests["end_s"].tolist() == [5.0, 13.0]


@pytest.mark.parametrize(
    ("name", "ranks", "mode", "gpus", "message"),
    [
        ("v-9", 4, C, 4, "no living replica 'v-9'"),
        ("v-0", 3, C, 4, "from 2 to 3 ranks"),
        ("v-0", 2, C, 4, "from 2 to 2 ranks"),
        ("v-0", 4, ResizeMode.BLOCKING, 4, "by A"),
        ("v-0", 4, C, 3, "2 further GPUs"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    name: str, ranks: int, mode: ResizeMode, gpus: int, message: str
) -> None:
    twin = Twin(deployment(2, gpus=gpus), iter([requests([0.0], [10], [20])]))
    with pytest.raises(ConfigurationError, match=message):
        twin.resize(name, ranks, mode)
    twin.advance(40.0)
    result = twin.finish()
    assert result.requests["end_s"].tolist() == [20.0]
    assert result.replicas[0].gpu_s == 80.0


def test_one_resize_at_a_time() -> None:
    twin = Twin(deployment(2), iter([]))
    assert twin.resize("v-0", 4, C) == 10.0
    with pytest.raises(ConfigurationError, match="now"):
        twin.resize("v-0", 4, C)
    twin.advance(10.5)
    assert twin.resize("v-0", 2, C) == 4.0


def test_one_that_fails_while_it_prepares_is_started_anew_with_its_first_size() -> None:
    twin = Twin(deployment(2), iter([requests([0.0, 30.0], [10, 10], [20, 3])]))
    twin.advance(2.0)
    twin.resize("v-0", 4, C)
    twin.advance(4.0)
    twin.fail("v-0")
    twin.advance(60.0)
    assert [one.ranks for one in twin.observe().replicas] == [2]
    result = twin.finish()
    assert result.requests["outcome"].tolist() == [Outcome.ABORTED, Outcome.DONE]
    assert result.requests["end_s"].tolist() == [4.0, 33.0]
    assert [record.gpu_s for record in result.replicas] == [2 * 2 + 2 * 4, 56 * 2]
