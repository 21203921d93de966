"""A second deployment takes over from the first: worked out by hand, 2 ranks step in 1 s, 4 ranks in 0.5 s."""

from __future__ import annotations

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
    TwinSpec,
)
from models.twin_timing import LinearTiming
from planner.errors import ConfigurationError
from planner.simulation.twin import Twin
from tests.twins import a_fleet, a_replica, requests

REDEPLOY = ResizeMode.REDEPLOY
STEP_S = {2: 1.0, 4: 0.5}
TAKES_S = 10.0


def size(ranks: int) -> ElasticSize:
    return ElasticSize(
        ranks=ranks,
        timing=LinearTiming(base_s=STEP_S[ranks]),
        kv_blocks=10 * ranks,
        max_num_seqs=8,
        max_num_batched_tokens=1024,
        gpus=ranks,
    )


def deployment(*, gpus: tuple[int, ...] = (2, 4), grace_s: float = 30.0) -> TwinSpec:
    timing = ResizeTiming(mode=REDEPLOY, grow=True, downtime_s=0.0, total_s=TAKES_S)
    first = size(2)
    spec = a_replica(
        timing=first.timing,
        kv_blocks=first.kv_blocks,
        max_num_seqs=8,
        max_num_batched_tokens=1024,
        gpus=2,
        gpu_type="H",
        grace_s=grace_s,
        elastic=ElasticSpec(initial_ranks=2, sizes=(size(2), size(4)), resizes=(timing,)),
    )
    nodes = tuple(NodeSpec(name=f"n{k}", gpu_type="H", gpus=count) for k, count in enumerate(gpus))
    return a_fleet(spec, nodes=nodes)


def redeployed(arrivals: list[float], outputs: list[int], **changes: float) -> Twin:
    """Called for at 5 s, so that the second deployment takes over at 15 s."""
    chunk = requests(arrivals, [10] * len(arrivals), outputs)
    twin = Twin(deployment(**changes), iter([chunk]))
    twin.advance(5.0)
    assert twin.resize("v-0", 4, REDEPLOY) == TAKES_S
    return twin


def test_the_first_serves_until_the_second_takes_what_comes() -> None:
    twin = redeployed([0.0, 14.0, 16.0], [3, 4, 4])
    twin.advance(40.0)
    rows = twin.finish().requests
    assert rows["replica"].tolist() == [0, 0, 1]
    assert rows["end_s"].tolist() == [3.0, 18.0, 18.0]


def test_gpus_of_both_are_held_until_the_first_has_drained() -> None:
    twin = redeployed([14.0], [4])
    twin.advance(40.0)
    old, new = twin.finish().replicas
    assert (old.removed_s, old.gpu_s) == (18.0, 36.0)
    assert (new.created_s, new.ready_s, new.gpu_s) == (5.0, 15.0, 140.0)
    assert (old.node, new.node) == ("n0", "n1")


def test_a_request_that_outlasts_the_grace_period_is_cut_off() -> None:
    twin = redeployed([14.0], [20], grace_s=4.0)
    twin.advance(40.0)
    rows = twin.finish().requests
    assert rows["outcome"][0] == Outcome.ABORTED
    assert rows["end_s"][0] == 19.0


def test_the_second_is_no_surplus_while_it_starts_and_counts_afterwards() -> None:
    twin = redeployed([], [])
    twin.scale("v", 1)
    states = [(one.name, one.state) for one in twin.observe().replicas]
    assert states == [("v-0", ReplicaState.READY), ("v-1", ReplicaState.STARTING)]
    twin.advance(20.0)
    twin.scale("v", 1)
    (left,) = twin.observe().replicas
    assert (left.name, left.ranks, left.kv_blocks) == ("v-1", 4, 40)


def test_it_follows_at_once_where_the_first_is_lost() -> None:
    twin = redeployed([], [])
    twin.advance(8.0)
    twin.fail("v-0")
    assert [one.name for one in twin.observe().replicas] == ["v-1"]
    twin.advance(20.0)
    assert [(one.name, one.state) for one in twin.observe().replicas] == [("v-1", ReplicaState.READY)]


def test_the_first_stays_where_the_second_is_lost() -> None:
    twin = redeployed([20.0], [3])
    twin.advance(8.0)
    twin.fail("v-1")
    twin.advance(40.0)
    rows = twin.finish().requests
    assert rows["replica"].tolist() == [0]
    assert np.all(rows["outcome"] == Outcome.DONE)


def test_it_needs_gpus_of_its_own() -> None:
    twin = Twin(deployment(gpus=(4,)), iter([requests([], [], [])]))
    with pytest.raises(ConfigurationError, match="4 GPUs for a second deployment"):
        twin.resize("v-0", 4, REDEPLOY)


def test_none_is_resized_while_one_follows() -> None:
    twin = redeployed([], [])
    for name in ("v-0", "v-1"):
        with pytest.raises(ConfigurationError, match="cannot go"):
            twin.resize(name, 4, REDEPLOY)
