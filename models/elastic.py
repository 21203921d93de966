"""Elastic expert-parallel deployments: what they run as, and what was measured of them."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from models.units import Count, PositiveCount, PositiveRps, PositiveSeconds, Seconds, Tokens, Usd
from models.value import Value

__all__ = [
    "Dialect",
    "ElasticDeployment",
    "ElasticEngine",
    "ElasticShape",
    "Joiners",
    "KernelCaches",
    "LoadBalancing",
    "MeasuredResize",
    "RankRate",
    "ResizeConditions",
    "ResizeMode",
]


class ResizeMode(StrEnum):
    """How an Elastic EP deployment changes its size."""

    BLOCKING = "A"
    ASYNC = "B"
    ASYNC_GRAPH_REUSE = "C"
    RESTART = "restart"
    REDEPLOY = "redeploy"

    @property
    def launches(self) -> bool:
        """Whether the deployment is launched anew at its other size, and not resized in place."""
        return self in (ResizeMode.RESTART, ResizeMode.REDEPLOY)


class Dialect(StrEnum):
    """Who takes the resize call, and how it is written."""

    VLLM = "vllm"
    DYNAMO = "dynamo"
    SGLANG = "sglang"


class LoadBalancing(StrEnum):
    """Who spreads requests over data-parallel ranks: one API server for all, one for each, or one for each node."""

    INTERNAL = "internal"
    EXTERNAL = "external"
    HYBRID = "hybrid"


class ElasticEngine(Value):
    """What a deployment is started as, as far as a resize depends on it."""

    dialect: Dialect = Field(Dialect.VLLM, description="who takes the resize call")
    version: str = Field(
        "0.33.0", pattern=r"^\d+\.\d+(\.\d+)?$", description="version of the engine (of vLLM under Dynamo)"
    )
    load_balancing: LoadBalancing = Field(
        LoadBalancing.INTERNAL, description="who spreads requests over data-parallel ranks"
    )
    data_parallel_backend: str = Field("ray", max_length=40, description="--data-parallel-backend: ray or mp")
    all2all_backend: str = Field(
        "nixl_ep", max_length=60, description="--all2all-backend; graphs are kept with nixl_ep alone"
    )
    elastic: bool = Field(True, description="--enable-elastic-ep")
    expert_parallel: bool = Field(True, description="--enable-expert-parallel")
    eplb: bool = Field(True, description="--enable-eplb")
    eplb_async: bool = Field(True, description="--eplb-config.use_async")
    eplb_communicator: str | None = Field(
        None, max_length=60, description="--eplb-config.communicator; None: the default"
    )
    nixl: bool = Field(True, description="the NIXL package is installed")
    pipeline_parallel: PositiveCount = Field(1, description="--pipeline-parallel-size")
    api_servers: PositiveCount = Field(1, description="--api-server-count")
    dual_batch_overlap: bool = Field(False, description="--enable-dbo")
    draft_model: bool = Field(False, description="speculative decoding with a draft model")
    drains: bool = Field(
        False, description="VLLM_ELASTIC_EP_DRAIN_REQUESTS=1: running requests end before a commit"
    )
    drain_timeout_s: PositiveSeconds = Field(120.0, le=86_400, description="drain_timeout of a call, whole s")
    memory_utilization: float = Field(0.8, gt=0, le=1, description="--gpu-memory-utilization")
    guarded: bool = Field(
        False,
        description="something other than --api-key keeps strangers from the resize call, e.g. a NetworkPolicy",
    )


class KernelCaches(StrEnum):
    """Whether kernels were compiled on the joiners' machines before."""

    WARM = "warm"
    COLD = "cold"


class Joiners(StrEnum):
    """How new ranks come up: as processes that start, or restored from a snapshot."""

    STARTED = "started"
    SNAPSHOT = "snapshot"


class ResizeConditions(Value):
    """What the time of a resize depends on beside the engine."""

    kernel_caches: KernelCaches = Field(KernelCaches.WARM, description="kernels compiled before, or not")
    joiners: Joiners = Field(Joiners.STARTED, description="how new ranks come up")
    weights_gbps: float = Field(
        1.0,
        gt=0,
        le=1e4,
        description="weights that one rank reads per second from where they are stored, GB/s",
    )
    fabric_gbps: float = Field(
        25.0, gt=0, le=1e5, description="weights that one rank gets per second from another one, GB/s"
    )


class RankRate(Value):
    """What a deployment was measured to carry at one size, all ranks together."""

    ranks: PositiveCount = Field(le=4096, description="data-parallel ranks")
    rated_rps: PositiveRps = Field(description="largest rate inside SLO and trigger, req/s")
    surge_rps: PositiveRps | None = Field(
        None, description="largest rate inside SLO up to tau, req/s; None: from rated_rps"
    )
    kv_tokens: Tokens | None = Field(None, description="KV capacity of all ranks, tokens")
    redeployed: bool = Field(
        False,
        description="launched at this size (fewer experts and more KV per rank) instead of resized to it",
    )


class MeasuredResize(Value):
    """Seconds of one resize that somebody measured; they go before the model of stages."""

    mode: ResizeMode = Field(description="how")
    from_ranks: PositiveCount = Field(le=4096, description="data-parallel ranks before")
    to_ranks: PositiveCount = Field(le=4096, description="data-parallel ranks after")
    downtime_s: Seconds = Field(description="without service, s")
    total_s: Seconds = Field(description="from the call to its end, s")
    balance_s: Seconds | None = Field(
        None, description="after that, until experts have moved, s; None: unknown"
    )
    source: str = Field("", description="who measured it, where")


class ElasticDeployment(Value):
    """A deployment that changes size in place; its TP and launch size are those of its variant's parallelism."""

    max_ranks: PositiveCount | None = Field(
        None, le=4096, description="--elastic-ep-max-dp-size; None: not set, which means the launch size"
    )
    rank_group: PositiveCount = Field(
        1, le=4096, description="ranks that come and go together, as the pods of a LeaderWorkerSet group do"
    )
    engine: ElasticEngine = Field(ElasticEngine(), description="what it is started as")
    conditions: ResizeConditions = Field(ResizeConditions(), description="what times depend on beside")
    rates: tuple[RankRate, ...] = Field(
        (), max_length=1000, description="what it carries by size; sizes between are interpolated"
    )
    measured: tuple[MeasuredResize, ...] = Field(
        (), max_length=1000, description="resizes that were measured; they go before the model of stages"
    )
    request_value_usd: Usd = Field(
        0.001, description="value of a request that is lost or delayed by a resize, $"
    )
    url: str | None = Field(None, max_length=2000, description="of its API server, or of the one of rank 0")
    allow_old_version: bool = Field(
        False, description="a version without the server's own checks of sizes (0.27 to 0.29) may be resized"
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        sizes = [(each.ranks, each.redeployed) for each in self.rates]
        if len(set(sizes)) < len(sizes):
            raise ValueError("found a size twice in rates; allowed: each size once")
        return self


class ElasticShape(Value):
    """What decides which sizes there are."""

    experts: PositiveCount = Field(le=10**6, description="routed experts of a layer (E)")
    launch_ranks: PositiveCount = Field(le=10**6, description="data-parallel ranks at launch (d)")
    redundant_experts: Count = Field(0, le=10**6, description="copies of experts beside, at launch (R)")
    tensor_parallel: PositiveCount = Field(1, le=4096, description="accelerators of one rank (TP)")
    max_ranks: PositiveCount | None = Field(None, le=10**6, description="--elastic-ep-max-dp-size (M)")
    rank_group: PositiveCount = Field(1, le=4096, description="ranks that come and go together")

    @property
    def slots_per_rank(self) -> float:
        """Physical experts of one expert-parallel rank; a whole number where the engine starts at all."""
        return (self.experts + self.redundant_experts) / (self.launch_ranks * self.tensor_parallel)
