"""What instances are made of: accelerator types as the catalog prices them, pools of them, nodes with and without fragments."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from models.problem import Candidate, NodeState, PoolState

__all__ = [
    "DOMAINS",
    "KINDS",
    "NODE_GPUS",
    "Kind",
    "Site",
    "fabric",
    "fragmented",
    "seated",
    "sites",
    "stocked",
]

NODE_GPUS: Final = 8
DOMAINS: Final = 2
"""Fabric domains of a pool, in turn over its nodes."""


_LEFT: Final = (1, 1, 2, 3, 3, 5, 6)
"""GPUs that pods of others leave on a node, as often as they stand here."""


@dataclass(frozen=True, slots=True)
class Kind:
    """An accelerator type: memory in GiB, tokens/s beside an H100, list price and draw of one, weight of input tokens."""

    name: str
    memory_gib: float
    speed: float
    usd_per_h: float
    watts: float
    prefill_weight: float


# Prices, memory and draw as in data/catalog; speeds between the ratios of bandwidth and of peak FLOP/s.
KINDS: Final = (
    Kind("H100", 80, 1.0, 3.85, 700, 0.10),
    Kind("A100-80GB", 80, 0.55, 2.80, 400, 0.18),
    Kind("L40S", 45, 0.27, 1.90, 350, 0.14),
    Kind("H200", 141, 1.35, 4.74, 700, 0.14),
    Kind("L4", 24, 0.10, 0.71, 72, 0.16),
    Kind("B200", 180, 2.2, 6.84, 1000, 0.09),
    Kind("RTX-PRO-6000", 96, 0.50, 2.09, 600, 0.12),
    Kind("MI300X", 192, 1.1, 3.40, 750, 0.16),
)


@dataclass(frozen=True, slots=True)
class Site:
    """A pool before it has nodes: its type, where it is, and its price beside the list."""

    pool: str
    kind: Kind
    region: str
    cluster: str
    price: float


def sites(rng: random.Random, count: int) -> tuple[Site, ...]:
    """Pools of all types in turn; the second and later ones of a type are in other regions at other prices."""
    found = []
    for number in range(count):
        kind, region = KINDS[number % len(KINDS)], f"region-{number // len(KINDS)}"
        price = 1.0 if number < len(KINDS) else round(rng.uniform(0.85, 1.2), 3)
        found.append(Site(f"pool-{number:02}", kind, region, f"cluster-{number % 2}", price))
    return tuple(found)


def stocked(places: Sequence[Site], gpus: Mapping[str, float]) -> tuple[PoolState, ...]:
    """Pools of empty nodes with so many GPUs, rounded up; of the last node others may use a part."""
    pools = []
    for site in places:
        whole, rest = divmod(ceil(gpus.get(site.pool, 0)), NODE_GPUS)
        free = [NODE_GPUS] * whole + ([rest] if rest else [])
        pools.append(_pool(site, [_node(site, number, left) for number, left in enumerate(free)]))
    return tuple(pools)


def fragmented(
    rng: random.Random, places: Sequence[Site], gpus: Mapping[str, float], *, whole: float
) -> tuple[PoolState, ...]:
    """Pools with at least so many free GPUs, of which about the share ``whole`` is on empty nodes.

    On the other nodes pods of others leave one to six GPUs.
    """
    mean = sum(_LEFT) / len(_LEFT)
    share = whole * mean / (whole * mean + (1 - whole) * NODE_GPUS)
    pools = []
    for site in places:
        free, nodes = 0, list[NodeState]()
        while free < gpus.get(site.pool, 0):
            left = NODE_GPUS if rng.random() < share else rng.choice(_LEFT)
            nodes.append(_node(site, len(nodes), left))
            free += left
        pools.append(_pool(site, nodes))
    return tuple(pools)


def seated(candidates: Sequence[Candidate], pools: Sequence[PoolState]) -> list[Candidate]:
    """What runs now runs somewhere: replicas that find no node any more, large pods first, are not running."""
    free = {pool.id: Counter(node.free_gpus for node in pool.nodes) for pool in pools}
    running = dict.fromkeys((c.id for c in candidates), 0)
    for one in sorted(candidates, key=lambda c: (-c.gpus_per_pod, c.id)):
        while running[one.id] < one.current and _seat(free[one.pool], one):
            running[one.id] += 1
    return [
        c if c.current == running[c.id] else c.model_copy(update={"current": running[c.id]})
        for c in candidates
    ]


def _seat(nodes: Counter[int], candidate: Candidate) -> bool:
    """Take seats for the pods of one replica, each on the node with the least room that is enough; False: there are none.

    Args:
        nodes: how many nodes have so many free GPUs; changed.
        candidate: whose replica it is.
    """
    taken = list[int]()
    for _ in range(candidate.pods_per_replica):
        room = min(
            (left for left, count in nodes.items() if count and left >= candidate.gpus_per_pod), default=None
        )
        if room is None:
            break
        taken.append(room)
        nodes[room] -= 1
    enough = len(taken) == candidate.pods_per_replica
    nodes.update(room - candidate.gpus_per_pod if enough else room for room in taken)
    return enough


def _node(site: Site, number: int, free: int) -> NodeState:
    return NodeState(
        id=f"{site.pool}-{number}",
        gpus=NODE_GPUS,
        free_gpus=free,
        fabric_domain=fabric(site, number % DOMAINS),
    )


def fabric(site: Site, number: int) -> str:
    """The name of a fabric domain of a pool."""
    return f"{site.pool}-fabric-{number}"


def _pool(site: Site, nodes: Sequence[NodeState]) -> PoolState:
    return PoolState(
        id=site.pool,
        accelerator=site.kind.name,
        region=site.region,
        cluster=site.cluster,
        failure_domain=site.pool,
        power_domain="hall",
        nodes=tuple(nodes),
    )
