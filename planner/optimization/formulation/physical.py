"""Rows of accelerators in sum: what a pool has, and the nodes that it may grow by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from models.ids import NodeId
from models.problem import PoolState
from planner.optimization.formulation.index import Index, added, kept, replicas
from planner.optimization.program import Key, Row

__all__ = ["gpus_rows", "held_terms", "nodes_rows", "pods_on"]


def gpus_rows(index: Index) -> Iterator[Row]:
    """Σ g[c]·n[c] ≤ usable[p] + G[p]·m[p];  kept pods on nodes that take no new ones count as usable."""
    for pool in index.problem.pools:
        if index.bounded(pool):
            terms, usable = held_terms(index, pool)
            yield Row(("gpus", pool.id), terms, upper=usable)


def held_terms(index: Index, pool: PoolState) -> tuple[dict[Key, int], int]:
    """Accelerators that a pool's replicas hold, less what added nodes and closed ones bring, and those that are usable."""
    terms: dict[Key, int] = {replicas(c): c.gpus for c in index.by_pool[pool.id]}
    if pool.growth is not None:
        terms[added(pool)] = -pool.growth.gpus_per_node
    for key, gpus in _kept_on_closed_nodes(index, pool).items():
        terms[key] = terms.get(key, 0) - gpus
    usable = sum(node.free_gpus for node in pool.nodes if node.accepts_pods and node.holds_pods)
    return terms, usable


def _kept_on_closed_nodes(index: Index, pool: PoolState) -> dict[Key, int]:
    """Accelerators that one kept replica holds on nodes that only hold pods, by its column."""
    closed = {node.id for node in pool.nodes if node.holds_pods and not node.accepts_pods}
    found: dict[Key, int] = {}
    for candidate in index.by_pool[pool.id]:
        if candidate.id not in index.tracked:
            continue
        for incumbent in index.incumbents_of[candidate.id]:
            pods = sum(count for node, count in pods_on(incumbent.nodes).items() if node in closed)
            if pods:
                found[kept(incumbent)] = pods * candidate.gpus_per_pod
    return found


def pods_on(nodes: tuple[NodeId, ...]) -> dict[NodeId, int]:
    """How many pods of one replica sit on each node."""
    found: dict[NodeId, int] = defaultdict(int)
    for node in nodes:
        found[node] += 1
    return dict(found)


def nodes_rows(index: Index) -> Iterator[Row]:
    """0 ≤ m[p] ≤ max[p]."""
    for pool in index.problem.pools:
        most = index.most_nodes(pool)
        if pool.growth is not None and most is not None:
            yield Row(("nodes", pool.id), {added(pool): 1}, upper=most)
