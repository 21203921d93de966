"""Variants: ⟨accelerator, parallelism, quantization⟩ of a service, with a role."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from models.elastic import ElasticDeployment
from models.engine import EngineArguments
from models.ids import AcceleratorId, Name, PoolId, VariantId
from models.llm import Precision
from models.queueing import QueueingParameters, Speculation
from models.shape_rate import ShapeRate
from models.units import (
    Bytes,
    Count,
    PositiveCount,
    PositiveRps,
    PositiveSeconds,
    Ratio,
    Seconds,
    Share,
    Tokens,
    Usd,
    UsdPerHour,
    Watts,
)
from models.value import Value

__all__ = ["Capacity", "Cost", "KubernetesObject", "Parallelism", "Quantization", "Role", "Variant"]


class Role(StrEnum):
    """Which phase of a request a replica serves."""

    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"


class Parallelism(Value):
    """How one replica spreads over accelerators: tp x pp x dp of them; ep says how experts are split."""

    tp: PositiveCount = Field(1, le=4096, description="tensor parallel")
    pp: PositiveCount = Field(1, le=4096, description="pipeline parallel")
    dp: PositiveCount = Field(1, le=4096, description="data parallel ranks inside one replica (attention DP)")
    ep: PositiveCount = Field(1, le=4096, description="expert parallel; uses the accelerators of tp x dp")

    @property
    def gpus(self) -> int:
        """Accelerators of one replica."""
        return self.tp * self.pp * self.dp

    @property
    def label(self) -> str:
        """As people write it: ``TP8``, ``TP4·PP2``, ``DP8·EP8``."""
        parts = [
            f"{name}{degree}"
            for name, degree in (("TP", self.tp), ("PP", self.pp), ("DP", self.dp), ("EP", self.ep))
            if degree > 1
        ]
        return "·".join(parts) or "TP1"


class Quantization(Value):
    """Precision of the weights and of the KV cache; ``None`` weights: as published."""

    weights: Precision | None = Field(None, description="precision of the weights; None: as published")
    kv_cache: Precision = Field(
        Precision.BF16, description="precision of the KV cache (kv_cache_dtype of vLLM)"
    )


class Cost(Value):
    """What one replica costs: relative (as ``variantCost`` is) or in $/h; the two never meet in one sum."""

    relative: Ratio | None = Field(
        None, description="cost of one replica as a bare number (variantCost of llm-d's autoscaler)"
    )
    usd_per_h: UsdPerHour | None = Field(None, description="cost of one replica, $/h")

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.relative is None) == (self.usd_per_h is None):
            raise ValueError("give exactly one of relative and usd_per_h")
        return self


class Capacity(Value):
    """Figures of one replica that the user measured; they go before profiles and formulas."""

    rated_rps: PositiveRps | None = Field(
        None, le=1e7, description="largest rate inside SLO and trigger (tau - gamma), req/s"
    )
    surge_rps: PositiveRps | None = Field(
        None,
        le=1e7,
        description="largest rate inside SLO up to tau, req/s, at least rated_rps; None: from rated_rps",
    )
    by_shape: tuple[ShapeRate, ...] = Field(
        (),
        max_length=100_000,
        description="rates by request shape instead of one rate; a request counts as a shape at least as large",
    )
    kv_tokens: Tokens | None = Field(None, gt=0, description="KV capacity of one replica, tokens")
    residence_s: PositiveSeconds | None = Field(
        None, description="time a request holds its KV cache at the rated load, s"
    )
    power_w: Watts | None = Field(None, description="draw of one replica at its rated load, W")

    @model_validator(mode="after")
    def _one_kind_of_rate(self) -> Self:
        if self.by_shape and (self.rated_rps is not None or self.surge_rps is not None):
            raise ValueError("give rated_rps or by_shape, not both")
        if len({(each.input_tokens, each.output_tokens) for each in self.by_shape}) < len(self.by_shape):
            raise ValueError("found a shape twice in by_shape; allowed: each shape once")
        return self

    @model_validator(mode="after")
    def _surge_not_below_rated(self) -> Self:
        if self.rated_rps is not None and self.surge_rps is not None and self.rated_rps > self.surge_rps:
            raise ValueError(
                f"found rated {self.rated_rps:g} req/s above surge {self.surge_rps:g} req/s; "
                "allowed: a surge of at least the rated rate"
            )
        return self


class KubernetesObject(Value):
    """The object whose replica count is scaled."""

    namespace: Name | None = Field(None, description="None: the namespace of the service")
    kind: Literal["Deployment", "LeaderWorkerSet", "StatefulSet"] = Field(
        "Deployment", description="kind of the object"
    )
    name: Name = Field(description="name of the object")
    api_version: str | None = Field(None, description="None: the usual one of the kind")
    scaler: Literal["scale", "hpa", "keda", "variantautoscaling"] = Field(
        "scale",
        description="who owns the replica count: nobody (scale subresource), an HPA, a ScaledObject, a VariantAutoscaling",
    )
    scaler_name: Name | None = Field(None, description="name of that scaler; None: the name of the object")


class Variant(Value):
    """One way to serve a service: accelerator, parallelism, quantization, role."""

    id: VariantId = Field(description="name of the variant, unique in its service")
    accelerator: AcceleratorId = Field(description="accelerator type it runs on")
    parallelism: Parallelism = Field(Parallelism(), description="how one replica spreads over accelerators")
    quantization: Quantization = Field(Quantization(), description="precision of weights and KV cache")
    role: Role = Field(Role.BOTH, description="phase of a request that its replicas serve")
    engine: Name | None = Field(None, description="e.g. vllm, sglang, trtllm; None: any measured engine")
    pods_per_replica: PositiveCount = Field(
        1, le=4096, description="pods that share the accelerators of one replica evenly"
    )
    min_replicas: Count = Field(0, description="replicas at least, over all pools")
    max_replicas: Count | None = Field(None, description="replicas at most, over all pools; None: no bound")
    cost: Cost | None = Field(None, description="None: accelerators x price of the pool")
    capacity: Capacity = Field(
        Capacity(),
        description="figures of one replica that were measured; they go before profiles and formulas",
    )
    profile: Name | None = Field(None, description="name of a profile table; None: every table is searched")
    memory_utilization: Share = Field(
        0.90, gt=0, description="share of device memory the engine may use (gpu_memory_utilization)"
    )
    activation_reserve_bytes: Bytes | None = Field(
        None, description="memory for activations and graphs per accelerator; None: default of the formula"
    )
    engine_arguments: EngineArguments = Field(
        EngineArguments(), description="what the engine is started with, as far as it decides memory"
    )
    queueing: QueueingParameters | None = Field(
        None,
        description="parameters of the queueing model of one replica; they go before profiles; None: none are stated",
    )
    speculation: Speculation | None = Field(
        None, description="speculative decoding, for the queueing model; None: no drafts"
    )
    startup_s: Seconds = Field(
        120.0, description="time from request to ready, s (measured 65-130 s for 0.6B-32B, llm-d benchmarks)"
    )
    startup_cost_usd: Usd = Field(0.0, description="cost of one start beyond the accelerators it holds, $")
    max_step_up: Count | None = Field(None, description="replicas that may be added per plan")
    max_step_down: Count | None = Field(None, description="replicas that may be removed per plan")
    pools: tuple[PoolId, ...] = Field(
        (), description="pools it may use; empty: every pool with its accelerator"
    )
    object: KubernetesObject | None = Field(
        None, description="whose replica count is scaled; None: nobody said"
    )
    elastic: ElasticDeployment | None = Field(
        None, description="its replicas change size in place (Elastic EP); None: they do not"
    )

    @model_validator(mode="after")
    def _counts_fit(self) -> Self:
        if self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(f"min_replicas {self.min_replicas} exceeds max_replicas {self.max_replicas}")
        if self.parallelism.gpus % self.pods_per_replica:
            raise ValueError(
                f"{self.parallelism.gpus} accelerators do not divide evenly over {self.pods_per_replica} pods"
            )
        return self

    @property
    def gpus_per_pod(self) -> int:
        """Accelerators that one pod needs on one node."""
        return self.parallelism.gpus // self.pods_per_replica
