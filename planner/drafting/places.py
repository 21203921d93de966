"""Pools of a draft, where replicas run in them, and quotas."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from models.fleet import RunningReplica, RunningVariant
from models.hardware import Node, NodeGrowth, Pool, Quota
from models.ids import AcceleratorId, NodeId, PoolId, ServiceId, VariantId
from models.observation import Observation, VariantObservation
from planner.catalog import Catalog
from planner.drafting.capacity import Engines
from planner.drafting.notes import Notes

__all__ = ["Places", "Seated", "places_of"]

_NODE_GPUS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seated:
    """A variant that is in the draft, under its names there."""

    service: str
    variant: str
    accelerator: str
    seen: VariantObservation


@dataclass(frozen=True, slots=True)
class Places:
    """Where replicas may run, and where they do.

    Attributes:
        pools: of the draft.
        running: replicas by variant and pool.
        quotas: caps on accelerators.
    """

    pools: tuple[Pool, ...]
    running: tuple[RunningVariant, ...]
    quotas: tuple[Quota, ...]


def places_of(
    seen: Observation, seated: Sequence[Seated], engines: Engines, catalog: Catalog, notes: Notes
) -> Places:
    """The places of a draft.

    Args:
        seen: what was observed.
        seated: variants that are in the draft; accelerators of others are foreign to it.
        engines: of the observation.
        catalog: knows accelerators.
        notes: is told what is assumed.
    """
    pools = _told_apart(_with_others(_known_pools(seen, catalog, notes), seen, seated))
    pools += _missing_pools(pools, seated, notes)
    running = tuple(each for one in seated for each in _running(one, pools, engines, notes))
    return Places(pools, running, tuple(_quotas(seen, seated, notes)))


def _known_pools(seen: Observation, catalog: Catalog, notes: Notes) -> tuple[Pool, ...]:
    found = []
    for pool in seen.pools:
        known = catalog.find_accelerator(pool.accelerator)
        if known is None:
            notes.take("left out, since the catalog does not know its accelerator", f"pool {pool.id}")
            continue
        found.append(pool.but(accelerator=AcceleratorId(known.id)))
    if found:
        notes.take(
            "prices are those of the catalog and relative costs those of the scalers; nobody observes prices"
        )
    return tuple(found)


def _with_others(pools: tuple[Pool, ...], seen: Observation, seated: Sequence[Seated]) -> tuple[Pool, ...]:
    """Pools in which replicas of variants that are not in the draft hold their accelerators all the same."""
    ours = {one.seen.key for one in seated}
    held: dict[tuple[str | None, str], int] = defaultdict(int)
    for variant in seen.variants:
        if variant.key not in ours:
            for node in variant.nodes:
                held[variant.cluster, node] += math.ceil(variant.gpus / variant.pods_per_replica)
    return tuple(
        pool.but(
            nodes=tuple(
                node.but(foreign_gpus=min(node.gpus, node.foreign_gpus + held[pool.cluster, node.id]))
                for node in pool.nodes
            )
        )
        for pool in pools
    )


def _told_apart(pools: tuple[Pool, ...]) -> tuple[Pool, ...]:
    """Pools and nodes of several clusters can be called alike; then they bear the name of their cluster too."""
    names = Counter(pool.id for pool in pools)
    nodes = Counter(node.id for pool in pools for node in {node.id: node for node in pool.nodes}.values())
    return tuple(
        pool.but(
            id=f"{pool.cluster}:{pool.id}" if names[pool.id] > 1 and pool.cluster else pool.id,
            nodes=tuple(
                node.but(id=f"{pool.cluster}:{node.id}") if nodes[node.id] > 1 and pool.cluster else node
                for node in pool.nodes
            ),
        )
        for pool in pools
    )


def _missing_pools(pools: Sequence[Pool], seated: Sequence[Seated], notes: Notes) -> tuple[Pool, ...]:
    """A pool for every accelerator that replicas run on and no pool has."""
    there = {(pool.cluster, pool.accelerator) for pool in pools}
    needed: dict[tuple[str | None, str], list[VariantObservation]] = defaultdict(list)
    for one in seated:
        if (one.seen.cluster, one.accelerator) not in there:
            needed[one.seen.cluster, one.accelerator].append(one.seen)
    return tuple(
        _made(cluster, accelerator, variants, notes) for (cluster, accelerator), variants in sorted(
            needed.items(), key=lambda item: (item[0][0] or "", item[0][1])
        )
    )  # fmt: skip


def _made(
    cluster: str | None, accelerator: str, variants: Sequence[VariantObservation], notes: Notes
) -> Pool:
    """Nodes enough for what runs, and as many more as a plan wants."""
    per_node = max(_NODE_GPUS, *(math.ceil(each.gpus / each.pods_per_replica) for each in variants))
    gpus = sum((each.ready + each.pending) * _rounded_up(each, per_node) for each in variants)
    notes.take("no accelerators were seen: nodes for what runs, and as many more as wanted", accelerator)
    name = f"{accelerator}-{cluster}" if cluster else accelerator
    node = Node(id=NodeId(f"{name}-assumed"), gpus=per_node, count=max(1, math.ceil(gpus / per_node)))
    return Pool(
        id=PoolId(f"assumed-{name}"),
        accelerator=AcceleratorId(accelerator),
        nodes=(node,),
        growth=NodeGrowth(gpus_per_node=per_node),
        cluster=cluster,
    )


def _rounded_up(variant: VariantObservation, per_node: int) -> int:
    """Accelerators that a replica takes of whole nodes where its pods do not share them well."""
    of_pod = math.ceil(variant.gpus / variant.pods_per_replica)
    return variant.pods_per_replica * max(of_pod, per_node // max(1, per_node // of_pod))


@dataclass(slots=True)
class _Row:
    details: list[RunningReplica] = field(default_factory=list)
    replicas: int = 0
    pending: int = 0


def _running(one: Seated, pools: Sequence[Pool], engines: Engines, notes: Notes) -> Iterable[RunningVariant]:
    """Ready replicas in the pools of their nodes; those whose node is not known, and pending ones, in the first."""
    mine = [
        pool for pool in pools if pool.accelerator == one.accelerator and pool.cluster == one.seen.cluster
    ]
    if not mine:
        return
    pool_of = {node.id: pool.id for pool in mine for node in pool.nodes if node.count == 1}
    rows: dict[PoolId, _Row] = defaultdict(_Row)
    alone = one.seen.pods_per_replica == 1
    for place in range(one.seen.ready):
        node = one.seen.nodes[place] if place < len(one.seen.nodes) else ""
        pod = one.seen.pods[place] if place < len(one.seen.pods) else ""
        node = node if node in pool_of else f"{one.seen.cluster}:{node}"
        known = pool_of.get(NodeId(node))
        if known is None:
            notes.take(
                "in the first pool of its accelerator, since its node is not known",
                f"{one.service}/{one.variant}",
            )
        row = rows[known or mine[0].id]
        row.replicas += 1
        row.details.append(_detail(one, pod, (NodeId(node),) if known and alone else (), engines))
    if one.seen.pending:
        rows[next(iter(rows), mine[0].id)].pending = one.seen.pending
    for pool, row in rows.items():
        yield RunningVariant(
            service=ServiceId(one.service),
            variant=VariantId(one.variant),
            pool=pool,
            replicas=row.replicas,
            pending=row.pending,
            details=tuple(row.details),
        )


def _detail(one: Seated, pod: str, nodes: tuple[NodeId, ...], engines: Engines) -> RunningReplica:
    """How full one replica is: the fullest of its ranks."""
    ranks = engines.of_pod(one.seen, pod) if pod else ()
    usages = [rank.kv_usage for rank in ranks if rank.kv_usage is not None]
    queues = [rank.waiting for rank in ranks if rank.waiting is not None]
    return RunningReplica(nodes=nodes, kv_usage=max(usages, default=None), queue=max(queues, default=None))


def _quotas(seen: Observation, seated: Sequence[Seated], notes: Notes) -> Iterable[Quota]:
    """What of each quota is left to us: the whole, less what pods of others hold of it."""
    ours: Mapping[tuple[str | None, str], int] = _held(seated)
    for each in seen.quotas:
        own = min(each.used, ours.get((each.cluster, each.namespace), 0))
        foreign = each.used - own
        if foreign:
            notes.take(
                "less than the quota, by what pods of others hold of it", f"{each.namespace}/{each.resource}"
            )
        yield Quota(
            id="/".join(part for part in (each.cluster or "", each.namespace, each.resource) if part),
            gpus=max(0, each.hard - foreign),
            namespace=each.namespace,
            cluster=each.cluster,
        )


def _held(seated: Sequence[Seated]) -> Mapping[tuple[str | None, str], int]:
    held: dict[tuple[str | None, str], int] = defaultdict(int)
    for one in seated:
        held[one.seen.cluster, one.seen.namespace] += (one.seen.ready + one.seen.pending) * one.seen.gpus
    return held
