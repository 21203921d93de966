"""A problem: what sizing hands to the solvers and the referee. Every number is resolved, nothing is looked up."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Final

from pydantic import Field

from models.elastic import ElasticEngine, ResizeMode
from models.explanation import Rejection
from models.hardware import NodeGrowth, PowerDomain, Quota
from models.ids import (
    AcceleratorId,
    CandidateId,
    DomainId,
    LlmId,
    Name,
    NodeId,
    PoolId,
    ServiceId,
    VariantId,
)
from models.performance import Origin
from models.saturation import Headroom
from models.scenario import Incumbents, Mode, Objective, PowerBasis
from models.units import (
    Count,
    Integer,
    PositiveCount,
    PositiveRps,
    Ratio,
    Rps,
    Seconds,
    TokenCount,
    Tokens,
    Usd,
    UsdPerHour,
    Watts,
)
from models.value import Value
from models.variant import KubernetesObject, Role
from models.workload import PrefillDecodeRatio, Routing, ServiceKind, Survive

__all__ = [
    "PATHS",
    "BucketRating",
    "Candidate",
    "CostUnit",
    "Demand",
    "DemandBucket",
    "Incumbent",
    "NodeState",
    "PoolState",
    "Problem",
    "Resize",
    "ServingPath",
    "VariantBounds",
    "candidate_id",
]


class ServingPath(StrEnum):
    """How a request is served: by one replica, or prefilled and decoded by two."""

    AGGREGATED = "aggregated"
    DISAGGREGATED = "disaggregated"


PATHS: Final[dict[ServingPath, tuple[Role, ...]]] = {
    ServingPath.AGGREGATED: (Role.BOTH,),
    ServingPath.DISAGGREGATED: (Role.PREFILL, Role.DECODE),
}
"""Roles that a request needs on each path; every role of a path carries all requests of that path."""


class CostUnit(StrEnum):
    """Unit of every cost of one problem."""

    USD_PER_H = "usd_per_h"
    RELATIVE = "relative"


class DemandBucket(Value):
    """Requests of one shape that arrive at a rate."""

    id: Name = Field(description="name of the bucket")
    arrival_rps: Rps = Field(description="requests that arrive, req/s")
    input_tokens: TokenCount = Field(description="input length, tokens")
    output_tokens: TokenCount = Field(description="output length, tokens")


class VariantBounds(Value):
    """Bounds on the replicas of one variant over all pools."""

    variant: VariantId = Field(description="the variant")
    min_replicas: Count = Field(0, description="replicas it has at least, over all pools")
    max_replicas: Count | None = Field(
        None, description="replicas it has at most, over all pools; None: no bound"
    )


class Demand(Value):
    """What one service needs."""

    service: ServiceId = Field(description="name of the service")
    llm: LlmId = Field(description="LLM that is served")
    namespace: Name = Field("default", description="Kubernetes namespace, as quotas name it")
    team: Name | None = Field(None, description="who pays; None: the namespace")
    kind: ServiceKind = Field(
        ServiceKind.ONLINE, description="online: keeps headroom; batch: fills to tau and is shed first"
    )
    priority: Integer = Field(1, description="larger is more important")
    best_effort: bool = Field(False, description="it may stay unserved without making the plan infeasible")
    routing: Routing = Field(
        Routing.MIXED,
        description="mixed: every replica sees the whole mix; by_length: buckets go where they are served best",
    )
    buckets: tuple[DemandBucket, ...] = Field(min_length=1, description="traffic by request shape")
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
    variants: tuple[VariantBounds, ...] = Field((), description="bounds of single variants over all pools")
    survive: Survive | None = Field(None, description="failure domains are resolved: never empty")
    ratio: PrefillDecodeRatio | None = Field(
        None, description="bounds on prefill : decode replicas; None: each role is sized by its load alone"
    )
    shares_replicas_of: ServiceId | None = Field(
        None,
        description="online service whose headroom this batch service may use; None: it has replicas of its own only",
    )

    @property
    def arrival_rps(self) -> float:
        """Rate over all buckets, req/s."""
        return sum(bucket.arrival_rps for bucket in self.buckets)


class BucketRating(Value):
    """What one replica carries of one bucket alone (routing by length)."""

    rated_rps: PositiveRps = Field(description="largest rate inside SLO and trigger (tau - gamma), req/s")
    surge_rps: PositiveRps = Field(
        description="largest rate inside SLO up to tau, req/s; never below rated_rps"
    )
    kv_tokens_per_rps: Tokens | None = Field(
        None,
        description="resident KV tokens per req/s (Little); None: unknown",
        json_schema_extra={"unit": "token/(req/s)"},
    )


class Resize(Value):
    """One way for a running elastic deployment to another size, with what it takes."""

    of: CandidateId = Field(description="candidate that these replicas are now")
    mode: ResizeMode = Field(description="how the size changes")
    from_ranks: PositiveCount = Field(description="data-parallel ranks now")
    to_ranks: PositiveCount = Field(description="data-parallel ranks then")
    downtime_s: Seconds = Field(description="nobody is served, expected, s")
    lead_s: Seconds = Field(description="from the call until the whole capacity is there, expected, s")
    idle_gpu_seconds: float = Field(
        ge=0,
        le=1e15,
        description="accelerator-seconds that serve nobody, expected",
        json_schema_extra={"unit": "GPU s"},
    )
    hindered_requests: float = Field(
        ge=0, le=1e15, description="requests that are lost or delayed by it, expected"
    )
    moving_gpus: PositiveCount = Field(description="accelerators of one replica that are held while it runs")
    engine: ElasticEngine | None = Field(None, description="what it is started as; None: nobody said")
    url: str | None = Field(None, max_length=2000, description="of its API server; None: nobody said")


class Candidate(Value):
    """A variant placed in a pool: what one replica carries, holds and costs.

    Rates are req/s of the service's own traffic mix. ``rated_rps`` keeps the SLO and the trigger
    (tau - gamma); ``surge_rps`` keeps the SLO up to tau and is never below it.
    """

    id: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
    service: ServiceId = Field(description="service that it serves")
    variant: VariantId = Field(description="variant of that service")
    role: Role = Field(Role.BOTH, description="phase of a request that its replicas serve")
    pool: PoolId = Field(description="pool its replicas run in")
    accelerator: AcceleratorId = Field(description="accelerator type of that pool")
    fabric_domain: DomainId | None = Field(
        None, description="nodes a multi-pod replica stays within; None: anywhere in the pool"
    )
    parallelism: str = Field("TP1", description="as people write it")
    pods_per_replica: PositiveCount = Field(1, description="pods that share one replica evenly")
    gpus_per_pod: PositiveCount = Field(1, description="accelerators that one pod needs on one node")
    rated_rps: PositiveRps = Field(
        description="largest rate of the service's mix inside SLO and trigger (tau - gamma), req/s"
    )
    surge_rps: PositiveRps = Field(
        description="largest rate of the service's mix inside SLO up to tau, req/s"
    )
    by_bucket: dict[Name, BucketRating] = Field({}, description="routing by length: buckets it can serve")
    guest_surge_rps: dict[ServiceId, PositiveRps] = Field(
        {}, description="req/s of a batch service's traffic that one replica carries up to tau"
    )
    kv_capacity_tokens: Tokens | None = Field(
        None, description="KV capacity of one replica times tau_kv, tokens; None: unknown"
    )
    kv_tokens_per_rps: Tokens | None = Field(
        None,
        description="resident KV tokens per req/s of the service's mix (Little); None: unknown",
        json_schema_extra={"unit": "token/(req/s)"},
    )
    cost: Ratio = Field(description="of one replica, in the cost unit of the problem")
    startup_cost: Usd = Field(0.0, description="of one start, in the money of the cost unit")
    startup_s: Seconds = Field(0.0, description="time from request to ready, s")
    power_w: Watts | None = Field(
        None, description="of one replica, on the power basis of the problem; None: unknown"
    )
    min_replicas: Count = Field(0, description="replicas of this candidate at least")
    max_replicas: Count | None = Field(None, description="replicas of this candidate at most; None: no bound")
    current: Count = Field(0, description="ready replicas")
    pending: Count = Field(0, description="replicas on order beside the ready ones")
    resize: Resize | None = Field(
        None, description="the way by which its replicas come to be; None: they stay as they are, or start"
    )
    unrated: bool = Field(
        False, description="nothing says what it carries: it holds what it runs on and serves nothing"
    )
    scale_in_permitted: bool = Field(True, description="False: no fewer replicas than now")
    max_step_up: Count | None = Field(None, description="replicas that may be added; None: no bound")
    max_step_down: Count | None = Field(None, description="replicas that may be removed; None: no bound")
    object: KubernetesObject | None = Field(
        None, description="whose replica count this is, its namespace resolved; None: nobody said"
    )
    origin: Origin = Field(Origin.GIVEN, description="whether its rates were given, measured or modeled")
    source: str = Field("", description="row, formula or field the rates come from")

    @property
    def gpus(self) -> int:
        """Accelerators of one replica."""
        return self.pods_per_replica * self.gpus_per_pod

    @property
    def on_order(self) -> int:
        """Replicas that will be there if nothing is done: ready and pending."""
        return self.current + self.pending


class NodeState(Value):
    """One node: what is left for us, and whether pods can start or stay."""

    id: NodeId = Field(description="name of the node")
    gpus: PositiveCount = Field(description="accelerators on the node")
    free_gpus: Count = Field(description="accelerators that foreign pods leave to us, ours included")
    accepts_pods: bool = Field(True, description="False: cordoned or tainted; pods that run may stay")
    holds_pods: bool = Field(True, description="False: not ready; nothing runs there")
    fabric_domain: DomainId | None = Field(
        None, description="nodes that one multi-pod replica may span; None: none is named"
    )


class PoolState(Value):
    """One pool with its nodes, and how it may grow."""

    id: PoolId = Field(description="name of the pool")
    accelerator: AcceleratorId = Field(description="type of all its accelerators")
    region: Name | None = Field(None, description="cloud region or site; None: unknown")
    cluster: Name | None = Field(None, description="Kubernetes cluster it belongs to; None: unknown")
    failure_domain: DomainId = Field(
        description="what is lost together; the pool itself where the scenario names none"
    )
    power_domain: DomainId | None = Field(
        None, description="power domain whose cap it counts toward; None: only caps that name the pool"
    )
    nodes: tuple[NodeState, ...] = Field((), description="nodes that are there now")
    growth: NodeGrowth | None = Field(None, description="how it grows by whole nodes; None: it does not")
    idle_gpu_w: Watts = Field(
        0.0, description="draw of one idle accelerator; counts on the expected power basis"
    )
    node_overhead_w: Watts = Field(0.0, description="draw of a present node without its accelerators, W")


class Incumbent(Value):
    """Ready replicas of a candidate whose pods' nodes are known."""

    candidate: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
    nodes: tuple[NodeId, ...] = Field(min_length=1, description="node of each pod of one replica")
    count: PositiveCount = Field(1, description="replicas that sit on exactly these nodes")


class Problem(Value):
    """The whole question, in numbers. Sequences are sorted by identity, so the order of the input means nothing."""

    name: str = Field(description="name of the scenario")
    mode: Mode = Field(Mode.CONSTRAINED, description="whether the accelerators that exist bound the plan")
    cost_unit: CostUnit = Field(CostUnit.USD_PER_H, description="unit of every cost")
    demands: tuple[Demand, ...] = Field(description="what each service needs, by service")
    candidates: tuple[Candidate, ...] = Field(description="what may be deployed, by identity")
    pools: tuple[PoolState, ...] = Field(description="where it may be deployed, by identity")
    incumbents: tuple[Incumbent, ...] = Field((), description="ready replicas whose nodes are known")
    incumbents_rule: Incumbents = Field(
        Incumbents.PINNED, description="whether replicas whose nodes are known stay there or may be moved"
    )
    quotas: tuple[Quota, ...] = Field((), description="caps on accelerators held at once")
    power: tuple[PowerDomain, ...] = Field((), description="caps on electric power")
    power_basis: PowerBasis = Field(PowerBasis.TDP, description="what a replica is taken to draw")
    spend_usd_per_h: UsdPerHour | None = Field(
        None, description="largest cost of the whole plan, $/h; None: no cap"
    )
    max_changes: Count | None = Field(
        None, description="replicas started, stopped or moved, in all; None: no cap"
    )
    objective: Objective = Field(Objective(), description="what is made small, in which order")
    allow_unserved: bool = Field(False, description="demand is an objective for every service, not a promise")
    rejected: tuple[Rejection, ...] = Field(
        (), description="variants that are no candidates, with the first reason"
    )
    derived_from: str = Field("", description="fingerprint of the scenario")

    @cached_property
    def fingerprint(self) -> str:
        """Over the canonical JSON in which fingerprints stand for the candidates.

        A fleet's candidates are nearly the whole text and mostly the same values as a moment ago, which know theirs.
        """
        rest = self.model_copy(update={"candidates": ()}).canonical_json()
        return self._digest(rest + "".join(candidate.fingerprint for candidate in self.candidates))

    @cached_property
    def candidate(self) -> dict[CandidateId, Candidate]:
        """Candidates by identity."""
        return {candidate.id: candidate for candidate in self.candidates}

    @cached_property
    def demand(self) -> dict[ServiceId, Demand]:
        """Demands by service."""
        return {demand.service: demand for demand in self.demands}

    @cached_property
    def pool(self) -> dict[PoolId, PoolState]:
        """Pools by identity."""
        return {pool.id: pool for pool in self.pools}

    @cached_property
    def candidates_of(self) -> dict[ServiceId, tuple[Candidate, ...]]:
        """Candidates by service; a service without one has an empty tuple."""
        found: dict[ServiceId, list[Candidate]] = {demand.service: [] for demand in self.demands}
        for candidate in self.candidates:
            found[candidate.service].append(candidate)
        return {service: tuple(of_service) for service, of_service in found.items()}

    def promised(self, demand: Demand) -> bool:
        """Whether all of this demand must be served."""
        return not (self.allow_unserved or demand.best_effort)


def candidate_id(
    service: ServiceId, variant: VariantId, pool: PoolId, fabric_domain: DomainId | None = None
) -> CandidateId:
    """The identity of a candidate: ``service/variant@pool`` and ``#domain`` where its replicas stay in one."""
    suffix = f"#{fabric_domain}" if fabric_domain is not None else ""
    return CandidateId(f"{service}/{variant}@{pool}{suffix}")
