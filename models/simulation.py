"""What the digital twin is made of and what it shows: replicas, router, fleet, observations, outcomes.

Specs are values. What a running twin shows is made thousands of times per run, so observations are plain frozen
records. Times are seconds of simulated time from the start of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Literal, Self

from pydantic import Field, model_validator

from models.elastic import ResizeMode
from models.ids import Name
from models.twin_timing import SimulatorTiming, Timing
from models.units import Count, PositiveCount, Ratio, Seconds, Share, UsdPerHour, Watts
from models.value import Value
from models.variant import Role

__all__ = [
    "Admission",
    "ElasticSize",
    "ElasticSpec",
    "NodeSpec",
    "Observation",
    "Outcome",
    "ReplicaObservation",
    "ReplicaSpec",
    "ReplicaState",
    "ResizeTiming",
    "RetrySpec",
    "RouterSpec",
    "Routing",
    "ScorerWeights",
    "ServiceObservation",
    "ServiceSpec",
    "TwinSpec",
]


class Outcome(IntEnum):
    """How a request ended, and because of what."""

    UNFINISHED = 0
    """Still somewhere in the fleet when the run ended."""
    DONE = 1
    REJECTED_429 = 2
    """Refused: the flow control queue or the engine's own queue was full, or every replica was saturated."""
    REJECTED_503 = 3
    """Refused: nobody there to serve it, or it waited in the router longer than allowed."""
    ABORTED = 4
    """Its replica was ended (scale-in past the grace period, failure, resize) while it was there."""
    TIMED_OUT = 5
    """The client gave up."""
    FAILED_500 = 6
    """The engine could not hold it: longer than the whole KV cache, or the simulator's rule of KV blocks."""


class ReplicaState(IntEnum):
    """Where in its life a replica is."""

    STARTING = 0
    READY = 1
    DRAINING = 2
    """Takes no new request, finishes what it has within its grace period."""
    PAUSED = 3
    """Commit of a resize: no step runs, new requests are refused."""
    REMOVED = 4
    FAILED = 5


class ResizeTiming(Value):
    """Seconds of one kind of resize: everything before the commit serves as before.

    Redeploy: the new deployment starts beside the old one, which serves until then; no downtime, double GPUs.
    """

    mode: ResizeMode
    grow: bool
    downtime_s: Seconds
    total_s: Seconds
    balance_s: Seconds = Field(
        0.0, description="after the commit, until experts have moved: old speed, new KV cache"
    )


class ElasticSize(Value):
    """What the deployment can do at one number of data-parallel ranks (all ranks together)."""

    ranks: PositiveCount
    timing: Timing
    kv_blocks: PositiveCount
    max_num_seqs: PositiveCount
    max_num_batched_tokens: PositiveCount
    gpus: PositiveCount


class ElasticSpec(Value):
    """Sizes that a deployment can reach in place and what changing takes."""

    initial_ranks: PositiveCount
    sizes: tuple[ElasticSize, ...] = Field(min_length=1)
    resizes: tuple[ResizeTiming, ...] = ()

    @model_validator(mode="after")
    def _known(self) -> Self:
        ranks = [size.ranks for size in self.sizes]
        if len(set(ranks)) != len(ranks) or self.initial_ranks not in ranks:
            raise ValueError("give each size once, the initial one among them")
        return self


class ReplicaSpec(Value):
    """One replica of a variant, as the twin replays it.

    ``max_num_batched_tokens`` is at least ``max_num_seqs``, as vLLM demands, so that every running request gets its
    token in every step.
    """

    variant: Name
    service: Name
    timing: Timing
    kv_blocks: PositiveCount = Field(description="blocks of the KV cache of one replica")
    block_size: PositiveCount = Field(16, le=8192, description="tokens of a KV block")
    max_num_seqs: PositiveCount = Field(256, le=10**6)
    max_num_batched_tokens: PositiveCount = Field(8192, le=2 * 10**9)
    chunked_prefill: bool = True
    async_scheduling: bool = Field(
        False,
        description="a step is composed while the one before it runs: whoever comes waits a step longer",
    )
    watermark: Share = Field(0.0, lt=1, description="share of the blocks that admission leaves free")
    prefix_caching: bool = True
    startup_s: Seconds = 0.0
    grace_s: Seconds = Field(30.0, description="what a removed replica may take to finish its requests")
    role: Role = Role.BOTH
    transfer_s: Seconds = Field(0.0, description="KV transfer from prefill to this replica: constant part")
    transfer_per_token_s: Seconds = 0.0
    max_waiting: Count = Field(0, description="the engine refuses with 429 beyond so many waiting; 0: never")
    gpus: PositiveCount = 1
    gpu_type: str = ""
    price_usd_per_h: UsdPerHour = 0.0
    power_idle_w: Watts = 0.0
    power_busy_w: Watts = Field(0.0, description="on top of idle while a step runs")
    power_per_running_w: Watts = Field(0.0, description="on top for every running request")
    removal: Literal["newest", "least-loaded"] = Field(
        "newest", description="which replica scale-in takes first"
    )
    min_replicas: Count = 0
    max_replicas: Count | None = None
    initial_replicas: Count = Field(1, description="ready when the run starts")
    elastic: ElasticSpec | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not isinstance(self.timing, SimulatorTiming) and self.max_num_batched_tokens < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens {self.max_num_batched_tokens} must be at least max_num_seqs {self.max_num_seqs}"
            )
        if self.max_replicas is not None and not self.min_replicas <= self.max_replicas:
            raise ValueError(
                f"min_replicas {self.min_replicas} must not exceed max_replicas {self.max_replicas}"
            )
        return self


class Routing(StrEnum):
    """How the router picks a replica."""

    SCORERS = "scorers"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


class ScorerWeights(Value):
    """Weights of the endpoint picker's scorers (llm-d: queue, kv-cache-utilization, prefix-cache)."""

    queue: Ratio = 1.0
    kv_cache: Ratio = 1.0
    prefix: Ratio = 1.0


class Admission(StrEnum):
    """What the router does with a request while every replica is saturated."""

    OFF = "off"
    """Sends it on all the same."""
    SHED = "shed"
    """Refuses requests of negative priority with 429, sends the others on."""
    REJECT = "reject"
    """Refuses every request with 429."""
    QUEUE = "queue"
    """Holds it in the flow control queue, higher priority first, first come first."""


class RetrySpec(Value):
    """What clients do after 429, 503 or an abort."""

    attempts: Count = Field(0, le=1000, description="further tries")
    backoff_s: Seconds = Field(1.0, description="before the first further try")
    factor: Ratio = Field(2.0, ge=1, description="each wait is so many times the one before")


class RouterSpec(Value):
    """Router and admission of one service."""

    routing: Routing = Routing.SCORERS
    weights: ScorerWeights = ScorerWeights()
    refresh_s: Seconds = Field(
        0.0, description="readings of queue and KV are taken anew when older than this"
    )
    admission: Admission = Admission.OFF
    saturated_queue: Count = Field(5, description="waiting requests at which a replica is saturated")
    saturated_kv: Share = Field(0.8, description="KV usage at which a replica is saturated")
    max_in_flight: Count = Field(
        0, description="requests on a replica at which it is saturated; 0: not looked at"
    )
    queue_requests: Count = Field(0, description="requests the flow control queue holds; 0: any number")
    queue_tokens: Count = Field(0, description="input tokens the flow control queue holds; 0: any number")
    queue_timeout_s: Seconds = Field(0.0, description="longest wait in that queue, then 503; 0: any")
    hold_without_replica: bool = Field(
        False, description="hold requests while nobody is ready, instead of 503"
    )
    request_timeout_s: Seconds = Field(0.0, description="the client gives up after this; 0: never")
    retry: RetrySpec = RetrySpec()


class ServiceSpec(Value):
    """One service: its name, router and promises."""

    name: Name
    router: RouterSpec = RouterSpec()
    priority: int = Field(0, ge=-1000, le=1000, description="of requests that bring none")
    ttft_slo_s: Seconds | None = None
    itl_slo_s: Seconds | None = Field(None, description="mean time per output token of a request")
    e2e_slo_s: Seconds | None = None


class NodeSpec(Value):
    """A node: replicas of its GPU type are placed on it while it has room, and fail with it."""

    name: Name
    gpu_type: str = Field(min_length=1)
    gpus: PositiveCount


class TwinSpec(Value):
    """A fleet to replay traffic against.

    A replica whose type of GPU has nodes needs all its GPUs on one of them; else ``gpus`` bounds how many of the type
    there are, and types that neither names are there in any number. What finds no room starts when there is some.
    """

    services: tuple[ServiceSpec, ...] = Field(min_length=1)
    replicas: tuple[ReplicaSpec, ...] = Field(min_length=1)
    gpus: Mapping[str, int] = Field(default_factory=dict, description="GPUs there are, by type")
    nodes: tuple[NodeSpec, ...] = ()
    sample_s: Seconds = Field(1.0, gt=0, description="interval of the table over time")

    @model_validator(mode="after")
    def _known(self) -> Self:
        names = [service.name for service in self.services]
        variants = [replica.variant for replica in self.replicas]
        if len(set(names)) != len(names) or len(set(variants)) != len(variants):
            raise ValueError("names of services and of variants must differ")
        unknown = sorted({replica.service for replica in self.replicas} - set(names))
        if unknown:
            raise ValueError(f"variants name unknown services: {', '.join(unknown)}")
        return self


@dataclass(frozen=True, slots=True)
class ReplicaObservation:
    """What can be scraped of one replica. Counters run from its start."""

    name: str
    variant: str
    service: str
    state: ReplicaState
    created_s: float
    ready_s: float | None
    running: int
    waiting: int
    kv_usage: float
    running_max_1m: int
    waiting_max_1m: int
    kv_usage_max_1m: float
    kv_blocks: int
    block_size: int
    max_num_seqs: int
    prompt_tokens_total: int
    generation_tokens_total: int
    finished_total: int
    prefix_hit_tokens_total: int
    prefix_query_tokens_total: int
    preemptions_total: int
    ranks: int = 1


@dataclass(frozen=True, slots=True)
class ServiceObservation:
    """What router and clients of one service have counted since the start of the run; averages are sum over count."""

    name: str
    arrivals_total: int
    completions_total: int
    failures_total: int
    rejected_total: int
    in_flight: int
    router_queue: int
    router_queue_tokens: int
    input_tokens_total: int
    output_tokens_total: int
    first_tokens_total: int
    ttft_s_sum: float
    itl_s_sum: float
    itl_total: int


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that an autoscaler may look at, at one moment.

    Attributes:
        at_s: when it was read.
        replicas: in order of creation; removed and failed ones are gone.
        services: in the order of the spec.
        desired: what was last asked for, by variant.
    """

    at_s: float
    replicas: tuple[ReplicaObservation, ...]
    services: tuple[ServiceObservation, ...]
    desired: Mapping[str, int]
