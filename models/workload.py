"""Services: one LLM with its traffic, its promises and its priority."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from models.ids import AcceleratorId, LlmId, Name, PoolId, ServiceId
from models.saturation import Headroom, SaturationThresholds
from models.units import Count, Integer, Percentile, PositiveCount, Ratio, Rps, Seconds, Share, TokenCount
from models.value import Value
from models.variant import Variant

__all__ = [
    "AllowedPlaces",
    "Bucket",
    "PrefillDecodeRatio",
    "Routing",
    "Service",
    "ServiceKind",
    "Slo",
    "Survive",
]


class Bucket(Value):
    """Traffic of one request shape: input length x output length at a rate."""

    id: Name = Field(description="name of the bucket, unique in its service")
    arrival_rps: Rps = Field(description="requests that arrive, req/s")
    input_tokens: TokenCount = Field(le=10**8, description="input length (prompt), tokens")
    output_tokens: TokenCount = Field(le=10**8, description="output length, tokens")
    cached_share: Share = Field(
        0.0, description="share of the input that is found in the prefix cache, for the queueing model"
    )


class Slo(Value):
    """Latency promises; a ``None`` promises nothing about that figure."""

    ttft_s: Seconds | None = Field(None, gt=0, description="time to first token, s")
    itl_s: Seconds | None = Field(None, gt=0, description="inter-token latency (time per output token), s")
    e2e_s: Seconds | None = Field(None, gt=0, description="whole request, s")
    at: Percentile | Literal["mean"] = Field(
        "mean", description="percentile at which the promise holds, or mean"
    )


class ServiceKind(StrEnum):
    """Online services keep headroom; batch services fill to tau and are shed first."""

    ONLINE = "online"
    BATCH = "batch"


class Routing(StrEnum):
    """What a replica sees: the service's own mix, or buckets sent where they are served best."""

    MIXED = "mixed"
    BY_LENGTH = "by_length"


class AllowedPlaces(Value):
    """Where a service may run. Empty allow lists allow everything; deny goes before allow."""

    allow_accelerators: tuple[AcceleratorId, ...] = Field(
        (), description="accelerator types it may use; empty: all"
    )
    deny_accelerators: tuple[AcceleratorId, ...] = Field(
        (), description="accelerator types it must not use; goes before allow"
    )
    allow_pools: tuple[PoolId, ...] = Field((), description="pools it may use; empty: all")
    deny_pools: tuple[PoolId, ...] = Field((), description="pools it must not use; goes before allow")
    allow_regions: tuple[Name, ...] = Field((), description="regions it may use; empty: all")
    deny_regions: tuple[Name, ...] = Field((), description="regions it must not use; goes before allow")
    allow_clusters: tuple[Name, ...] = Field((), description="clusters it may use; empty: all")
    deny_clusters: tuple[Name, ...] = Field((), description="clusters it must not use; goes before allow")
    residency: tuple[Name, ...] = Field((), description="jurisdictions the data may be in; empty: any")
    pin_accelerator: bool = Field(False, description="stay on the accelerator types that run now")


class Survive(Value):
    """After the loss of any one failure domain, this share of the served demand is still carried."""

    share: Share = Field(1.0, description="0: nothing is promised")
    failure_domains: Annotated[
        tuple[Name, ...], Field(description="empty: each one that the service may use")
    ] = ()


class PrefillDecodeRatio(Value):
    """Bounds on prefill : decode replicas."""

    min: Ratio | None = Field(
        None, description="prefill replicas per decode replica at least; None: no bound"
    )
    max: Ratio | None = Field(None, description="prefill replicas per decode replica at most; None: no bound")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min is None and self.max is None:
            raise ValueError("give min, max or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"min {self.min} exceeds max {self.max}")
        return self


class Service(Value):
    """One LLM with its traffic, SLO and priority; all its variants pool together."""

    id: ServiceId = Field(description="name of the service")
    llm: LlmId = Field(description="LLM that is served, by name or alias of the catalog")
    namespace: Name = Field("default", description="Kubernetes namespace, as quotas name it")
    team: Name | None = Field(None, description="who pays; None: the namespace")
    kind: ServiceKind = Field(
        ServiceKind.ONLINE, description="online: keeps headroom; batch: fills to tau and is shed first"
    )
    buckets: Annotated[tuple[Bucket, ...], Field(min_length=1)] = Field(
        description="traffic by request shape"
    )
    arrival_cv: Ratio = Field(
        1.0,
        le=20,
        description="coefficient of variation of the times between arrivals, for the queueing model; 1: Poisson",
    )
    routing: Routing = Field(
        Routing.MIXED,
        description="mixed: every replica sees the whole mix; by_length: buckets go where they are served best",
    )
    slo: Slo = Field(Slo(), description="latency promises")
    priority: Integer = Field(1, ge=-(10**6), le=10**6, description="larger is more important")
    best_effort: bool = Field(
        False, description="its demand may stay unserved without making the plan infeasible"
    )
    thresholds: SaturationThresholds = Field(
        SaturationThresholds(), description="saturation thresholds (tau and gamma)"
    )
    headroom: Headroom = Field(
        Headroom(), description="capacity kept free above the load (delta of arXiv 2603.09730)"
    )
    min_replicas: Count = Field(
        0, description="replicas of the service at least, all variants and roles together"
    )
    max_replicas: Count | None = Field(
        None, description="replicas of the service at most, all variants and roles together; None: no bound"
    )
    max_variants: PositiveCount | None = Field(
        None, description="variants of each role that may run at once; None: as many as there are"
    )
    places: AllowedPlaces = Field(AllowedPlaces(), description="where it may run")
    survive: Survive | None = Field(
        None,
        description="what must still be carried after the loss of a failure domain; None: nothing is promised",
    )
    ratio: PrefillDecodeRatio | None = Field(
        None, description="bounds on prefill : decode replicas; None: each role is sized by its load alone"
    )
    shares_replicas_of: ServiceId | None = Field(
        None, description="batch only: online service of the same LLM whose headroom this one may use"
    )
    variants: Annotated[tuple[Variant, ...], Field(description="empty: only with shares_replicas_of")] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas {self.min_replicas} exceeds max_replicas {self.max_replicas}")
        if self.shares_replicas_of is not None and self.kind is not ServiceKind.BATCH:
            raise ValueError("shares_replicas_of is for kind: batch")
        if not self.variants and self.shares_replicas_of is None:
            raise ValueError("give at least one variant")
        return self

    @property
    def arrival_rps(self) -> float:
        """Rate over all buckets, req/s."""
        return sum(bucket.arrival_rps for bucket in self.buckets)
