"""A problem: what sizing hands to the solvers and the referee. Every number is resolved, nothing is looked up."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Final

from pydantic import Field

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

    id: Name
    arrival_rps: Rps
    input_tokens: PositiveCount
    output_tokens: PositiveCount


class VariantBounds(Value):
    """Bounds on the replicas of one variant over all pools."""

    variant: VariantId
    min_replicas: Count = 0
    max_replicas: Count | None = None


class Demand(Value):
    """What one service needs."""

    service: ServiceId
    llm: LlmId
    namespace: Name = "default"
    team: Name | None = None
    kind: ServiceKind = ServiceKind.ONLINE
    priority: Integer = 1
    best_effort: bool = False
    routing: Routing = Routing.MIXED
    buckets: tuple[DemandBucket, ...] = Field(min_length=1)
    headroom: Headroom = Headroom()
    min_replicas: Count = 0
    max_replicas: Count | None = None
    variants: tuple[VariantBounds, ...] = ()
    survive: Survive | None = Field(None, description="failure domains are resolved: never empty")
    ratio: PrefillDecodeRatio | None = None
    shares_replicas_of: ServiceId | None = None

    @property
    def arrival_rps(self) -> float:
        """Rate over all buckets, req/s."""
        return sum(bucket.arrival_rps for bucket in self.buckets)


class BucketRating(Value):
    """What one replica carries of one bucket alone (routing by length)."""

    rated_rps: PositiveRps
    surge_rps: PositiveRps
    kv_tokens_per_rps: Tokens | None = None


class Candidate(Value):
    """A variant placed in a pool: what one replica carries, holds and costs.

    Rates are req/s of the service's own traffic mix. ``rated_rps`` keeps the SLO and the trigger
    (tau - gamma); ``surge_rps`` keeps the SLO up to tau and is never below it.
    """

    id: CandidateId
    service: ServiceId
    variant: VariantId
    role: Role = Role.BOTH
    pool: PoolId
    accelerator: AcceleratorId
    fabric_domain: DomainId | None = Field(
        None, description="nodes a multi-pod replica stays within; None: anywhere in the pool"
    )
    parallelism: str = Field("TP1", description="as people write it")
    pods_per_replica: PositiveCount = 1
    gpus_per_pod: PositiveCount = 1
    rated_rps: PositiveRps
    surge_rps: PositiveRps
    by_bucket: dict[Name, BucketRating] = Field({}, description="routing by length: buckets it can serve")
    guest_surge_rps: dict[ServiceId, PositiveRps] = Field(
        {}, description="req/s of a batch service's traffic that one replica carries up to tau"
    )
    kv_capacity_tokens: Tokens | None = Field(
        None, description="KV capacity of one replica times tau_kv, tokens; None: unknown"
    )
    kv_tokens_per_rps: Tokens | None = None
    cost: Ratio = Field(description="of one replica, in the cost unit of the problem")
    startup_cost: Usd = 0.0
    startup_s: Seconds = 0.0
    power_w: Watts | None = Field(
        None, description="of one replica, on the power basis of the problem; None: unknown"
    )
    min_replicas: Count = 0
    max_replicas: Count | None = None
    current: Count = Field(0, description="ready replicas")
    pending: Count = Field(0, description="replicas on order beside the ready ones")
    scale_in_permitted: bool = True
    max_step_up: Count | None = None
    max_step_down: Count | None = None
    object: KubernetesObject | None = Field(
        None, description="whose replica count this is, its namespace resolved; None: nobody said"
    )
    origin: Origin = Origin.GIVEN
    source: str = ""

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

    id: NodeId
    gpus: PositiveCount = Field(description="accelerators on the node")
    free_gpus: Count = Field(description="accelerators that foreign pods leave to us, ours included")
    accepts_pods: bool = Field(True, description="False: cordoned or tainted; pods that run may stay")
    holds_pods: bool = Field(True, description="False: not ready; nothing runs there")
    fabric_domain: DomainId | None = None


class PoolState(Value):
    """One pool with its nodes, and how it may grow."""

    id: PoolId
    accelerator: AcceleratorId
    region: Name | None = None
    cluster: Name | None = None
    failure_domain: DomainId
    power_domain: DomainId | None = None
    nodes: tuple[NodeState, ...] = ()
    growth: NodeGrowth | None = None
    idle_gpu_w: Watts = Field(
        0.0, description="draw of one idle accelerator; counts on the expected power basis"
    )
    node_overhead_w: Watts = 0.0


class Incumbent(Value):
    """Ready replicas of a candidate whose pods' nodes are known."""

    candidate: CandidateId
    nodes: tuple[NodeId, ...] = Field(min_length=1, description="node of each pod of one replica")
    count: PositiveCount = Field(1, description="replicas that sit on exactly these nodes")


class Problem(Value):
    """The whole question, in numbers. Sequences are sorted by identity, so the order of the input means nothing."""

    name: str
    mode: Mode = Mode.CONSTRAINED
    cost_unit: CostUnit = CostUnit.USD_PER_H
    demands: tuple[Demand, ...]
    candidates: tuple[Candidate, ...]
    pools: tuple[PoolState, ...]
    incumbents: tuple[Incumbent, ...] = ()
    incumbents_rule: Incumbents = Incumbents.PINNED
    quotas: tuple[Quota, ...] = ()
    power: tuple[PowerDomain, ...] = ()
    power_basis: PowerBasis = PowerBasis.TDP
    spend_usd_per_h: UsdPerHour | None = None
    max_changes: Count | None = None
    objective: Objective = Objective()
    allow_unserved: bool = Field(False, description="demand is an objective for every service, not a promise")
    rejected: tuple[Rejection, ...] = ()
    derived_from: str = Field("", description="fingerprint of the scenario")

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
