"""The benchmark of discovery still runs; asserts no time."""

from __future__ import annotations

import pytest

from tests.benchmarks.discovery_speed import a_cluster, read


@pytest.mark.benchmark
def test_a_cluster_is_read_in_full() -> None:
    reading = read(a_cluster(20, 3))
    assert len(reading.variants) == 20
    assert all((each.ready, each.pending, each.accelerator) == (3, 0, "H100") for each in reading.variants)
    (pool,) = reading.inventory.pools
    assert sum(node.gpus for node in pool.nodes) == 64
    assert not any(node.tainted or node.foreign_gpus for node in pool.nodes)
