"""Accelerators, the nodes that hold them, and the pools that nodes form."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from models.ids import AcceleratorId, DomainId, Name, NodeId, PoolId
from models.units import Bytes, BytesPerSecond, Count, Flops, PositiveCount, UsdPerHour, Watts
from models.value import Value

__all__ = [
    "Accelerator",
    "Market",
    "Node",
    "NodeGrowth",
    "Offering",
    "Pool",
    "PowerDomain",
    "Quota",
]


class Accelerator(Value):
    """One accelerator type. A figure that no source states stays ``None``: unknown is not zero."""

    id: AcceleratorId = Field(description="name of the type, as pools and variants name it")
    vendor: Name = Field(description="who makes it, e.g. nvidia, amd, google")
    architecture: str | None = Field(None, description="generation, e.g. hopper, cdna3; None: unknown")
    memory_bytes: Bytes = Field(gt=0, description="device memory per accelerator, bytes; vendor page")
    memory_bandwidth: BytesPerSecond | None = Field(None, description="peak device memory bandwidth, bytes/s")
    bf16_flops: Flops | None = Field(None, description="dense peak at 16 bit, FLOP/s")
    fp8_flops: Flops | None = Field(None, description="dense peak at 8-bit float, FLOP/s")
    fp4_flops: Flops | None = Field(None, description="dense peak at 4-bit float, FLOP/s")
    scale_up_bandwidth: BytesPerSecond | None = Field(
        None,
        description="scale-up link (NVLink, Infinity Fabric, ...) per accelerator, one direction, bytes/s",
    )
    tdp_w: Watts | None = Field(None, description="thermal design power per accelerator, W")
    idle_w: Watts | None = Field(None, description="measured draw of an idle accelerator, W")
    usd_per_h: UsdPerHour | None = Field(None, description="list price of one accelerator on demand, $/h")
    aliases: tuple[str, ...] = Field((), description="other names: node label values, cloud product names")


class Market(StrEnum):
    """How capacity is paid for."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"


class Offering(Value):
    """What one accelerator of a pool costs, and on which terms."""

    market: Market = Field(Market.ON_DEMAND, description="terms on which the capacity is paid for")
    usd_per_h: UsdPerHour | None = Field(
        None, description="price of one accelerator, $/h; None: the catalog's"
    )


class Node(Value):
    """One machine, or ``count`` machines that are alike, as the cluster shows it now.

    Foreign GPUs are used by pods that fleetplan does not manage; they are never free for it.
    """

    id: NodeId = Field(description="name of the node in the cluster")
    gpus: PositiveCount = Field(description="accelerators on the node")
    count: Count = Field(
        1, description="how many nodes are alike; more than one are named id-0, id-1, ...; 0: none now"
    )
    foreign_gpus: Count = Field(0, description="accelerators per node in use by pods that are not ours")
    cordoned: bool = Field(False, description="no new pods; those that run may stay")
    ready: bool = Field(True, description="False: pods on it are lost and nothing can start")
    tainted: bool = Field(False, description="a taint that our pods do not tolerate; as cordoned")
    fabric_domain: DomainId | None = Field(None, description="nodes that one multi-node replica may span")

    @model_validator(mode="after")
    def _foreign_fits(self) -> Self:
        if self.foreign_gpus > self.gpus:
            raise ValueError(f"foreign_gpus {self.foreign_gpus} exceeds the {self.gpus} gpus of the node")
        return self


class NodeGrowth(Value):
    """How a pool grows: whole nodes, each paid for."""

    gpus_per_node: PositiveCount = Field(description="accelerators on each added node")
    max_nodes: Count | None = Field(None, description="nodes that can be added; None: no limit")
    usd_per_node_h: UsdPerHour = Field(
        0.0, description="price of one added node, $/h, beside what replicas cost"
    )
    overhead_w: Watts = Field(0.0, description="draw of an added node without its accelerators, W")


class Pool(Value):
    """Accelerators of one type in one failure domain, made of nodes with known free accelerators."""

    id: PoolId = Field(description="name of the pool, as placements name it")
    accelerator: AcceleratorId = Field(description="type of all its accelerators")
    nodes: tuple[Node, ...] = Field((), description="nodes that are there now")
    growth: NodeGrowth | None = Field(None, description="None: the pool does not grow")
    offering: Offering = Field(Offering(), description="price and terms of its accelerators")
    region: Name | None = Field(
        None, description="cloud region or site, as allow and deny lists name it; None: unknown"
    )
    cluster: Name | None = Field(
        None, description="Kubernetes cluster it belongs to, as quotas and allow lists name it; None: unknown"
    )
    residency: Name | None = Field(None, description="jurisdiction that data in this pool is under, e.g. eu")
    failure_domain: DomainId | None = Field(None, description="None: the pool is a failure domain of its own")
    power_domain: DomainId | None = Field(
        None, description="power domain whose cap it counts toward; None: only caps that name the pool"
    )
    node_overhead_w: Watts = Field(0.0, description="draw of a present node without its accelerators, W")


class PowerDomain(Value):
    """A cap on the electric power of all pools that name this domain (or of the whole fleet)."""

    id: DomainId = Field(description="name of the domain, as pools name it")
    cap_w: Watts = Field(description="largest power drawn at once, W")
    pools: Annotated[
        tuple[PoolId, ...], Field(description="empty: every pool that names this power domain")
    ] = ()


class Quota(Value):
    """At most so many accelerators, of one type or of all, in one namespace or in the whole cluster."""

    id: Name = Field(description="name of the quota, for reports")
    gpus: Count = Field(description="accelerators that may be held at once")
    accelerator: AcceleratorId | None = Field(None, description="None: accelerators of every type together")
    namespace: Name | None = Field(None, description="None: the whole cluster")
    cluster: Name | None = Field(None, description="None: every cluster of the scenario")
