"""What is seen of running fleets at one moment: engines, variants, traffic, accelerators, and what could not be seen."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from models.engine import EngineArguments
from models.hardware import Pool
from models.ids import Name
from models.resize_operation import OperationPhase
from models.units import Count, EpochSeconds, PositiveCount, Ratio, Rps, Seconds
from models.value import Value
from models.variant import KubernetesObject, Role

__all__ = [
    "Condition",
    "EngineObservation",
    "Finding",
    "Freshness",
    "FreshnessLimits",
    "Observation",
    "QuotaObservation",
    "ResizeObservation",
    "TrafficObservation",
    "VariantObservation",
]


# What programs measure is never written with a unit in words, and looking for one takes longer than all other checks.
def _figure(unit: str, most: float) -> Any:  # noqa: ANN401 - pydantic's Field is untyped in its keywords
    return Field(ge=0, le=most, allow_inf_nan=False, json_schema_extra={"unit": unit})


_Seconds = Annotated[float, _figure("s", 1e9)]
_Number = Annotated[float, _figure("1", 1e15)]
_Share = Annotated[float, _figure("1", 1)]
_Tokens = Annotated[float, _figure("token", 1e15)]
_Rps = Annotated[float, _figure("req/s", 1e7)]


class Freshness(StrEnum):
    """How old what is known is. Missing is not zero: nothing may be concluded from it."""

    FRESH = "fresh"
    STALE = "stale"
    UNAVAILABLE = "unavailable"
    MISSING = "missing"


class FreshnessLimits(Value):
    """Ages of the newest sample; the defaults are those of llm-d's autoscaler."""

    fresh_s: Seconds = Field(60.0, description="younger than this: fresh")
    stale_s: Seconds = Field(300.0, description="younger than this: stale; older: unavailable")

    def of(self, age_s: float | None) -> Freshness:
        """The freshness of a sample of this age; None: there is no sample."""
        if age_s is None:
            return Freshness.MISSING
        if age_s < self.fresh_s:
            return Freshness.FRESH
        return Freshness.STALE if age_s < self.stale_s else Freshness.UNAVAILABLE


class Finding(Value):
    """Something that was expected and not seen, or seen and not usable."""

    subject: str = Field(description="what it is about: a series, an object, a pod, a node")
    problem: str = Field(description="one sentence")
    remedy: str = Field("", description="the likeliest reason, and what to do")

    @property
    def sentence(self) -> str:
        """All of it in one line."""
        return f"{self.subject}: {self.problem}{f' ({self.remedy})' if self.remedy else ''}"


class EngineObservation(Value):
    """One engine instance (a rank of a data-parallel pod is one). ``None``: no metric, which is not zero."""

    instance: str = Field(description="pod:port, or host:port where no pod is known; unique in its cluster")
    cluster: Name | None = Field(None, description="None: the only one there is")
    namespace: str = Field("", description="namespace of the pod; empty: unknown")
    pod: str = Field("", description="name of the pod; empty: unknown")
    variant: str = Field("", description="name of its variant (the scaler's name); empty: not attributed")
    model: str = Field("", description="served model name, as the engine says it")
    age_s: _Seconds | None = Field(None, description="age of its newest sample; None: no sample at all")
    started_s: EpochSeconds | None = Field(None, description="start of the process, seconds of the epoch")
    running: _Number | None = Field(None, description="requests in the batch now")
    waiting: _Number | None = Field(None, description="waiting requests, maximum of the last minute")
    waiting_now: _Number | None = Field(None, description="waiting requests now")
    kv_usage: _Share | None = Field(None, description="KV-cache usage, maximum of the last minute, 0..1")
    kv_now: _Share | None = Field(None, description="KV-cache usage now, 0..1")
    kv_tokens: _Tokens | None = Field(None, description="size of its KV cache, tokens")
    input_tokens: _Number | None = Field(
        None, description="mean input length of the last five minutes, tokens"
    )
    output_tokens: _Number | None = Field(
        None, description="mean output length of the last five minutes, tokens"
    )
    hit_share: _Share | None = Field(None, description="share of input tokens found in the prefix cache")
    ttft_s: _Seconds | None = Field(None, description="mean time to first token of the last minute, s")
    itl_s: _Seconds | None = Field(None, description="mean inter-token latency of the last minute, s")
    token_rate: _Number | None = Field(None, description="output tokens per second over the last minute")
    request_rps: _Rps | None = Field(None, description="requests per second over the last minute")
    power_w: _Number | None = Field(None, description="draw of its accelerators, W")

    @property
    def rank(self) -> int:
        """Data-parallel rank behind its address, as its name tells: ``pod:port/rank``; 0 where it has none."""
        _, slash, last = self.instance.rpartition("/")
        return int(last) if slash and last.isdecimal() else 0


class ResizeObservation(Value):
    """The last resize of an elastic deployment, as its record tells."""

    phase: OperationPhase | None = Field(None, description="where it is; None: the record cannot be read")
    since_s: EpochSeconds = Field(0.0, description="when it came there, seconds of the epoch")
    from_ranks: PositiveCount | None = Field(None, description="data-parallel ranks before")
    to_ranks: PositiveCount | None = Field(None, description="ranks that were asked for")
    ranks: PositiveCount | None = Field(
        None, description="ranks that serve; None: it is not over, or not known"
    )
    resizing_until_s: EpochSeconds | None = Field(
        None,
        description="from when on all its capacity is there, seconds of the epoch; None: it runs, or people must look",
    )


class Condition(Value):
    """A readiness gate of a variant, as Kubernetes conditions are."""

    type: str = Field(description="TargetResolved, MetricsAvailable, OptimizationReady")
    status: bool = Field(description="whether it holds")
    reason: str = Field(description="one word, e.g. TargetNotFound")
    message: str = Field("", description="one sentence")


class VariantObservation(Value):
    """One variant as the cluster states it: its scaler, its workload, its bounds and its counts."""

    name: str = Field(description="name of its scaler (HPA, ScaledObject) or VariantAutoscaling")
    namespace: str = Field(description="namespace of scaler and workload")
    cluster: Name | None = Field(None, description="None: the only one there is")
    model: str = Field(description="model identifier; variants of one model and namespace are one service")
    target: KubernetesObject = Field(description="whose replica count is scaled, and by which scaler")
    accelerator: str = Field("", description="accelerator type, normalized; empty: unknown")
    gpus: PositiveCount = Field(1, description="accelerators of one replica")
    pods_per_replica: PositiveCount = Field(1, description="pods of one replica (group size of a LWS)")
    role: Role = Field(Role.BOTH, description="phase of a request that its replicas serve")
    cost: Ratio = Field(10.0, description="relative cost of one replica (variantCost)")
    engine: str = Field("vllm", description="vllm or sglang")
    engine_arguments: EngineArguments = Field(EngineArguments(), description="as its pod template starts it")
    min_replicas: Count = Field(1, description="replicas at least")
    max_replicas: Count | None = Field(None, description="replicas at most; None: no bound")
    wanted: Count | None = Field(None, description="spec.replicas; None: target not found")
    ready: Count = Field(0, description="ready replicas")
    pending: Count = Field(0, description="replicas that are created, or still to be, and not ready")
    pods: tuple[str, ...] = Field((), description="names of its ready pods (leaders of groups)")
    nodes: tuple[str, ...] = Field((), description="node of each of these pods; empty where unknown")
    paused: bool = Field(False, description="people asked that nothing is changed")
    held: str = Field("", description="who set replicas by hand, as our annotation says; empty: nobody")
    written_by: str = Field("", description="field manager that wrote spec.replicas last; empty: unknown")
    written_at: str = Field("", description="when, as the API says it (ISO 8601); empty: unknown")
    conditions: tuple[Condition, ...] = Field((), description="readiness gates")
    resize: ResizeObservation | None = Field(None, description="its last resize; None: it never had one")

    @property
    def service(self) -> str:
        """Variants of one model in one namespace pool together: ``namespace/model``."""
        return f"{self.namespace}/{self.model}"

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes it one variant: cluster (empty: the only one), namespace and name."""
        return (self.cluster or "", self.namespace, self.name)


class TrafficObservation(Value):
    """Traffic of one model in one namespace, as its router (EPP) tells. ``None``: no metric."""

    model: str = Field(description="model identifier")
    namespace: str = Field(description="namespace")
    cluster: Name | None = Field(None, description="None: the only one there is")
    arrival_rps: Rps | None = Field(None, description="requests that arrive, req/s over the last minute")
    queued: Ratio | None = Field(None, description="requests held by flow control")
    queued_bytes: Ratio | None = Field(None, description="bytes of these requests")
    arrived: Ratio | None = Field(None, description="requests that arrived in the retention period")
    completed: Ratio | None = Field(None, description="requests completed in the retention period")
    in_flight: Ratio | None = Field(None, description="requests in engines, running or waiting")


class QuotaObservation(Value):
    """A ResourceQuota on accelerators."""

    namespace: str = Field(description="namespace it counts in")
    cluster: Name | None = Field(None, description="None: the only one there is")
    resource: str = Field(description="e.g. requests.nvidia.com/gpu")
    hard: Count = Field(description="accelerators allowed")
    used: Count = Field(description="accelerators in use, foreign pods among them")


class Observation(Value):
    """Everything that was seen at one moment, and what was not."""

    at_s: EpochSeconds = Field(description="when, seconds of the epoch")
    engines: tuple[EngineObservation, ...] = Field((), description="engine instances")
    variants: tuple[VariantObservation, ...] = Field((), description="what is scaled")
    traffic: tuple[TrafficObservation, ...] = Field((), description="traffic by model and namespace")
    pools: tuple[Pool, ...] = Field((), description="accelerators, with foreign use by node")
    quotas: tuple[QuotaObservation, ...] = Field((), description="namespace quotas")
    findings: tuple[Finding, ...] = Field((), description="what could not be seen, and why")
    complete: bool = Field(True, description="False: a source did not answer; nothing may be scaled in")
