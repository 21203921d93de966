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

    name: Name
    value: float
    bound: float | None = Field(
        None, description="proven: no plan that is equal on earlier levels goes below; None: none known"
    )
    gap: float | None = Field(None, description="(value - bound) / value, absolute where value is 0")
    unit: str = ""


class BucketShare(Value):
    """Routing by length: this share of a bucket's demand goes to the replicas of this candidate."""

    candidate: CandidateId
    bucket: Name
    share: Share


class Served(Value):
    """Share of a demand that is served on one path; of one bucket, or (``None``) of the whole mix."""

    service: ServiceId
    path: ServingPath
    share: Share
    bucket: Name | None = None


class Borrowed(Value):
    """Share of a batch demand that is served on the replicas of an online service."""

    service: ServiceId
    path: ServingPath = Field(ServingPath.AGGREGATED, description="path of the host that carries it")
    share: Share
    bucket: Name | None = None


class Placement(Value):
    """Pods of a candidate that sit on one node; ``kept`` of them are where they were."""

    candidate: CandidateId
    node: NodeId
    pods: PositiveCount
    kept: Count = 0


class Proof(Value):
    """How the solution was found and how good it is; not part of its fingerprint's meaning of equality."""

    solver: Name
    levels: tuple[Level, ...] = ()
    notes: tuple[str, ...] = Field((), description="what the solver did, e.g. which engines raced")


class Solution(Value):
    """Counts per candidate (those at zero may be left out) and the shares that are served."""

    status: Status
    counts: dict[CandidateId, Count] = {}
    nodes_added: dict[PoolId, Count] = {}
    served: tuple[Served, ...] = ()
    borrowed: tuple[Borrowed, ...] = ()
    shares: tuple[BucketShare, ...] = ()
    placements: tuple[Placement, ...] = ()
    proof: Proof
    derived_from: str = Field("", description="fingerprint of the problem")

    @property
    def has_plan(self) -> bool:
        """Whether there are counts to look at."""
        return self.status in (Status.OPTIMAL, Status.FEASIBLE)

    def count(self, candidate: CandidateId) -> int:
        """Replicas of a candidate."""
        return self.counts.get(candidate, 0)
