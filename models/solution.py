"""A solution: counts, what stays unserved, and how good that is proven to be."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import CandidateId, Name, NodeId, PoolId, ServiceId
from models.problem import ServingPath
from models.units import Count, PositiveCount, Share
from models.value import Value

__all__ = ["Borrowed", "BucketShare", "Level", "Placement", "Proof", "Served", "Solution", "Status"]


class Status(StrEnum):
    """How a solve ended, in our words and never in a solver's."""

    OPTIMAL = "OPTIMAL"
    FEASIBLE = "FEASIBLE"
    INFEASIBLE = "INFEASIBLE"
    TIMED_OUT = "TIMED_OUT"
    FAILED = "FAILED"


class Level(Value):
    """One level of the objective: its value, the proven bound, and the relative distance of the two."""

    name: Name = Field(description="name of the level, e.g. unserved, cost, power, changes")
    value: float = Field(description="value that the solution has at this level, in ``unit``")
    bound: float | None = Field(
        None, description="proven: no plan that is equal on earlier levels goes below; None: none known"
    )
    gap: float | None = Field(None, description="(value - bound) / value, absolute where value is 0")
    unit: str = Field("", description="unit of value and bound; empty: a bare number")


class BucketShare(Value):
    """Routing by length: this share of a bucket's demand goes to the replicas of this candidate."""

    candidate: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
    bucket: Name = Field(description="name of the bucket")
    share: Share = Field(description="share of the bucket's demand, 0..1")


class Served(Value):
    """Share of a demand that is served on one path; of one bucket, or (``None``) of the whole mix."""

    service: ServiceId = Field(description="name of the service")
    path: ServingPath = Field(description="roles that carry the requests")
    share: Share = Field(description="share of the demand, 0..1")
    bucket: Name | None = Field(None, description="name of the bucket; None: the whole mix")


class Borrowed(Value):
    """Share of a batch demand that is served on the replicas of an online service."""

    service: ServiceId = Field(description="batch service whose demand is carried")
    path: ServingPath = Field(ServingPath.AGGREGATED, description="path of the host that carries it")
    share: Share = Field(description="share of its demand, 0..1")
    bucket: Name | None = Field(None, description="name of the bucket; None: the whole mix")


class Placement(Value):
    """Pods of a candidate that sit on one node; ``kept`` of them are where they were."""

    candidate: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
    node: NodeId = Field(description="node the pods sit on")
    pods: PositiveCount = Field(description="pods of the candidate on the node")
    kept: Count = Field(0, description="how many of them were there before")


class Proof(Value):
    """How the solution was found and how good it is; not part of its fingerprint's meaning of equality."""

    solver: Name = Field(description="solver or heuristic that found it")
    levels: tuple[Level, ...] = Field((), description="value, bound and gap of each level, in order")
    notes: tuple[str, ...] = Field((), description="what the solver did, e.g. which engines raced")


class Solution(Value):
    """Counts per candidate (those at zero may be left out) and the shares that are served."""

    status: Status = Field(description="how the solve ended")
    counts: dict[CandidateId, Count] = Field(
        {}, description="replicas by candidate; those at zero may be left out"
    )
    nodes_added: dict[PoolId, Count] = Field({}, description="nodes added, by pool")
    served: tuple[Served, ...] = Field((), description="what is served, by service and path")
    borrowed: tuple[Borrowed, ...] = Field(
        (), description="batch demand carried on replicas of online services"
    )
    shares: tuple[BucketShare, ...] = Field((), description="routing by length: where each bucket goes")
    placements: tuple[Placement, ...] = Field((), description="nodes of the pods, where they matter")
    proof: Proof = Field(description="how it was found and how good it is")
    derived_from: str = Field("", description="fingerprint of the problem")

    @property
    def has_plan(self) -> bool:
        """Whether there are counts to look at."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)

    def count(self, candidate: CandidateId) -> int:
        """Replicas of a candidate."""
        return self.counts.get(candidate, 0)
