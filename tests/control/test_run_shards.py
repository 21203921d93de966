"""What controllers of other shards hold: whole groups of pods, though only the node of a leader is known."""

from __future__ import annotations

from models.controller import Sharding
from planner.control.running.sharding import shard_of, share_of
from tests.observed_fleets import a_pool, a_variant, observed

OURS, THEIRS = (next(f"m{n}" for n in range(99) if shard_of(f"prod/m{n}", 2) == shard) for shard in (0, 1))


def test_all_pods_of_a_group_of_others_are_foreign() -> None:
    group = a_variant("group", model=THEIRS, ready=1, gpus=16, pods_per_replica=2, nodes=("h100-node-0",))
    mine = a_variant("mine", model=OURS, ready=1, gpus=8, nodes=("h100-node-1",))
    seen = share_of(observed([group, mine], pools=[a_pool(gpus=8, nodes=4)]), Sharding(shards=2, shard=0))
    assert [node.foreign_gpus for node in seen.pools[0].nodes] == [8, 0, 8, 0]


def test_pods_that_fit_nowhere_take_nothing() -> None:
    group = a_variant("group", model=THEIRS, ready=1, gpus=32, pods_per_replica=4, nodes=("h100-node-0",))
    seen = share_of(observed([group], pools=[a_pool(gpus=8, nodes=2)]), Sharding(shards=2, shard=0))
    assert [node.foreign_gpus for node in seen.pools[0].nodes] == [8, 8]
