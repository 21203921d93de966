"""Pools as the cluster shows them become pools as a plan may use them: node by node, foreign pods taken off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from models.hardware import Accelerator, Node, Pool
from models.ids import DomainId, NodeId
from models.problem import NodeState, PoolState
from models.scenario import PowerBasis

__all__ = ["MOST_NODES", "fabric_domains", "node_ids", "node_sizes", "pool_state"]

MOST_NODES: Final = 100_000
"""Nodes that one pool may have; more is taken for a slip of the pen."""


def node_ids(node: Node) -> tuple[NodeId, ...]:
    """Names of the nodes that one entry stands for: ``id`` alone, or ``id-0``, ``id-1``, ... where there are several."""
    return (node.id,) if node.count == 1 else tuple(NodeId(f"{node.id}-{i}") for i in range(node.count))


def pool_state(pool: Pool, accelerator: Accelerator, basis: PowerBasis) -> PoolState:
    """The pool with its nodes expanded and sorted by name.

    What foreign pods use is never free. A node that is cordoned or tainted keeps the pods that run on it; one
    that is not ready keeps none. On the expected power basis an idle accelerator draws its measured
    ``idle_w``; where nobody measured it the figure is 0, and a power cap on such a pool is refused earlier.
    """
    idle_w = accelerator.idle_w if basis is PowerBasis.EXPECTED else None
    nodes = [state for node in pool.nodes for state in _node_states(node)]
    return PoolState(
        id=pool.id,
        accelerator=accelerator.id,
        region=pool.region,
        cluster=pool.cluster,
        failure_domain=pool.failure_domain or DomainId(pool.id),
        power_domain=pool.power_domain,
        nodes=tuple(sorted(nodes, key=lambda node: node.id)),
        growth=pool.growth,
        idle_gpu_w=idle_w or 0.0,
        node_overhead_w=pool.node_overhead_w,
    )


def fabric_domains(pool: PoolState, pods_per_replica: int) -> tuple[DomainId | None, ...]:
    """The domains a replica may span: those that nodes name, or one (None) where no node names any.

    A replica of a single pod spans nothing. Where some nodes name a domain, a node that names none is no
    place for a replica that spans nodes: nobody said that its network reaches the others.
    """
    if pods_per_replica == 1:
        return (None,)
    return tuple(sorted({node.fabric_domain for node in pool.nodes if node.fabric_domain})) or (None,)


def node_sizes(pool: PoolState, domain: DomainId | None) -> Iterator[int]:
    """Accelerators of each node that exists, and of one that may be added.

    Every node counts with all its accelerators, whoever uses them now: a pod that is larger than this will
    never find a place, one that merely finds none today is a matter for the solver.
    """
    growth = pool.growth
    if domain is None and growth is not None and growth.max_nodes != 0:
        yield growth.gpus_per_node
    yield from (node.gpus for node in pool.nodes if domain is None or node.fabric_domain == domain)


def _node_states(node: Node) -> Iterator[NodeState]:
    for identity in node_ids(node):
        yield NodeState(
            id=identity,
            gpus=node.gpus,
            free_gpus=node.gpus - node.foreign_gpus,
            accepts_pods=node.ready and not node.cordoned and not node.tainted,
            holds_pods=node.ready,
            fabric_domain=node.fabric_domain,
        )
