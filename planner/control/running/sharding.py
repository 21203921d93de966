"""Which services are ours, and what those of others leave of the accelerators."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from models.controller import Sharding
from models.hardware import Node, Pool
from models.observation import Observation, VariantObservation
from planner.control.protocols import ClusterReading

__all__ = ["is_ours", "ours_of", "shard_of", "share_of"]


def shard_of(service: str, shards: int) -> int:
    """Which of so many controllers looks after a service; the same everywhere and in every version.

    Args:
        service: ``namespace/model``.
        shards: controllers.
    """
    return int.from_bytes(hashlib.sha256(service.encode("utf-8", "replace")).digest()[:8], "big") % shards


def is_ours(variant: VariantObservation, sharding: Sharding) -> bool:
    """Whether a variant is one of ours; all variants of a service are with one controller, in every cluster."""
    return sharding.shards == 1 or shard_of(variant.service, sharding.shards) == sharding.shard


def ours_of(reading: ClusterReading, sharding: Sharding) -> ClusterReading:
    """What clusters say, with our variants alone."""
    return replace(reading, variants=tuple(each for each in reading.variants if is_ours(each, sharding)))


def share_of(observation: Observation, sharding: Sharding) -> Observation:
    """What concerns us: our variants with their engines and traffic; accelerators that others' replicas hold are foreign.

    Replicas of others that have no node yet hold nothing that could be seen; quotas count them.
    """
    if sharding.shards == 1:
        return observation
    ours = tuple(each for each in observation.variants if is_ours(each, sharding))
    others = [each for each in observation.variants if not is_ours(each, sharding)]
    names = {(each.cluster, each.namespace, each.name) for each in others}
    services = {(each.cluster, each.namespace, each.model) for each in ours}
    return observation.model_copy(
        update={
            "variants": ours,
            "engines": tuple(
                each
                for each in observation.engines
                if (each.cluster, each.namespace, each.variant) not in names
            ),
            "traffic": tuple(
                each for each in observation.traffic if (each.cluster, each.namespace, each.model) in services
            ),
            "pools": _left_by(others, ours, observation.pools),
        }
    )


_Place = tuple[str | None, str, str]
"""Cluster, type of accelerator, node."""


def _held(variants: Iterable[VariantObservation]) -> Counter[_Place]:
    """Accelerators in use by place, of pods whose node is known."""
    held: Counter[_Place] = Counter()
    for variant in variants:
        for node in variant.nodes:
            held[variant.cluster, variant.accelerator, node] += _pod(variant)
    return held


def _pod(variant: VariantObservation) -> int:
    return max(1, variant.gpus // variant.pods_per_replica)


def _left_by(
    others: Sequence[VariantObservation], ours: Iterable[VariantObservation], pools: Iterable[Pool]
) -> tuple[Pool, ...]:
    """Pools with what others hold as foreign: their pods where they are, and the other pods of their groups where room is."""
    there, mine = _held(others), _held(ours)
    left = [_less(pool, there) for pool in pools]
    for variant in others:
        pods = len(variant.nodes) * (variant.pods_per_replica - 1)
        for place, pool in enumerate(left):
            if pods > 0 and (pool.cluster, pool.accelerator) == (variant.cluster, variant.accelerator):
                left[place], pods = _seated(pool, _pod(variant), pods, mine=mine)
    return tuple(left)


def _seated(pool: Pool, gpus: int, pods: int, *, mine: Mapping[_Place, int]) -> tuple[Pool, int]:
    """The pool with so many pods on nodes that have room beside ours, and those that found none."""
    found: list[Node] = []
    for node in pool.nodes:
        free = node.gpus - node.foreign_gpus - mine.get((pool.cluster, pool.accelerator, node.id), 0)
        here = max(0, min(pods, free // gpus)) if node.count == 1 else 0
        found.append(_used(node, here * gpus))
        pods -= here
    return pool.model_copy(update={"nodes": tuple(found)}), pods


def _less(pool: Pool, held: Mapping[_Place, int]) -> Pool:
    nodes = tuple(_used(node, held.get((pool.cluster, pool.accelerator, node.id), 0)) for node in pool.nodes)
    return pool if nodes == pool.nodes else pool.model_copy(update={"nodes": nodes})


def _used(node: Node, more: int) -> Node:
    if not more:
        return node
    return node.model_copy(update={"foreign_gpus": min(node.gpus, node.foreign_gpus + more)})
