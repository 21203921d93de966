"""The fleet as it runs now: counts, what is on order, and how close each replica is to saturation."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from models.ids import NodeId, PoolId, ServiceId, VariantId
from models.units import Count, PositiveCount, Ratio, Share
from models.value import Value

__all__ = ["Fleet", "RunningReplica", "RunningVariant"]


class RunningReplica(Value):
    """One ready replica as far as it is known."""

    nodes: tuple[NodeId, ...] = Field((), description="node of each of its pods; empty: unknown")
    kv_usage: Share | None = Field(
        None, description="KV-cache usage, 0..1; None: no metric, which is not zero"
    )
    queue: Ratio | None = Field(None, description="waiting requests; None: no metric, which is not zero")


class RunningVariant(Value):
    """Replicas of one variant in one pool."""

    service: ServiceId = Field(description="service that the replicas serve")
    variant: VariantId = Field(description="variant of that service")
    pool: PoolId = Field(description="pool the replicas run in")
    replicas: Count = Field(description="ready replicas")
    pending: Count = Field(0, description="replicas on order beside the ready ones: created, not yet ready")
    ranks: PositiveCount | None = Field(
        None,
        le=4096,
        description="data-parallel ranks that each of them has now (Elastic EP); None: as launched",
    )
    details: tuple[RunningReplica, ...] = Field((), description="ready replicas of which more is known")

    @model_validator(mode="after")
    def _no_more_details_than_replicas(self) -> Self:
        if len(self.details) > self.replicas:
            raise ValueError(f"{len(self.details)} details for {self.replicas} replicas")
        return self

    @property
    def on_order(self) -> int:
        """Ready and pending replicas: what will be there if nothing is done."""
        return self.replicas + self.pending


class Fleet(Value):
    """Everything that runs."""

    running: tuple[RunningVariant, ...] = Field(
        (), description="replicas by variant and pool; empty: nothing runs"
    )
