"""Reasons are data; they become sentences only where people read them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import CandidateId, Name, PoolId, ServiceId, VariantId
from models.value import Value

__all__ = [
    "AllocationDifference",
    "BindingRow",
    "Conflict",
    "Difference",
    "Evidence",
    "Explanation",
    "Fact",
    "Gain",
    "Limited",
    "Reason",
    "Rejection",
    "Relaxation",
    "RunnerUp",
    "ServiceDifference",
    "Worth",
]

Fact = str | int | float | None


class Reason(StrEnum):
    """Every reason the planner gives, in one closed set."""

    # a candidate is not offered
    NO_POOL_WITH_ACCELERATOR = "no_pool_with_accelerator"
    POOL_NOT_ALLOWED = "pool_not_allowed"
    ACCELERATOR_NOT_ALLOWED = "accelerator_not_allowed"
    REGION_NOT_ALLOWED = "region_not_allowed"
    CLUSTER_NOT_ALLOWED = "cluster_not_allowed"
    RESIDENCY_NOT_ALLOWED = "residency_not_allowed"
    PINNED_ELSEWHERE = "pinned_elsewhere"
    WEIGHTS_DO_NOT_FIT = "weights_do_not_fit"
    REQUEST_DOES_NOT_FIT = "request_does_not_fit"
    CONTEXT_TOO_LONG = "context_too_long"
    NO_MEASUREMENT = "no_measurement"
    PERCENTILE_NOT_MEASURED = "percentile_not_measured"
    SLO_NOT_MET = "slo_not_met"
    POD_LARGER_THAN_NODE = "pod_larger_than_node"
    UNKNOWN_PRICE = "unknown_price"
    UNKNOWN_POWER = "unknown_power"
    # a candidate is offered and not used
    DEARER = "dearer"
    LIMIT_BINDS = "limit_binds"
    NOT_NEEDED = "not_needed"
    # a count was limited
    GPUS_EXHAUSTED = "gpus_exhausted"
    QUOTA_EXHAUSTED = "quota_exhausted"
    MAX_REPLICAS = "max_replicas"
    MIN_REPLICAS = "min_replicas"
    SCALE_IN_NOT_SAFE = "scale_in_not_safe"
    STEP_LIMIT = "step_limit"
    # saturation
    SATURATED = "saturated"
    SPARE_BELOW_TRIGGER = "spare_below_trigger"
    STEADY = "steady"


class Limited(Value):
    """A count with what limited it."""

    value: int
    reason: Reason
    facts: dict[str, Fact] = {}


class Rejection(Value):
    """A variant in a pool that is no candidate, or a candidate that was not used, and the first reason why."""

    service: ServiceId
    variant: VariantId
    pool: PoolId | None = None
    reason: Reason
    facts: dict[str, Fact] = {}


class BindingRow(Value):
    """A limit with less slack than the smallest step that would use it."""

    family: Name
    key: tuple[str, ...]
    used: float
    limit: float
    unit: str
    facts: dict[str, Fact] = Field(
        {}, description="what else tells why, e.g. free_gpus; the unit is in the name"
    )


class Conflict(Value):
    """Families that cannot hold together; without any one of them the rest can."""

    families: tuple[Name, ...]
    rows: tuple[tuple[str, ...], ...] = ()


class Relaxation(Value):
    """One limit, moved this far, makes every promise hold; verified by solving again."""

    family: Name
    key: tuple[str, ...]
    limit: float = Field(description="the limit as it stands")
    needed: float = Field(description="the smallest move of the limit that would do")
    unit: str
    verified: bool = Field(description="a plan with this limit passed the referee")
    cost: float | None = Field(
        None,
        description="of the best plan found with this limit, in the cost unit of the problem; None: no plan",
    )
    facts: dict[str, Fact] = Field(
        {}, description="what the move means, e.g. ttft_s; the unit is in the name"
    )


class Evidence(StrEnum):
    """How sure a figure is."""

    PROVEN = "proven"
    FOUND = "found"
    ESTIMATE = "estimate"


class Gain(Value):
    """What moving a limit so far changes: the first level of the objective that it makes smaller, and by how much."""

    amount: float = Field(description="how far the limit is moved, in the unit of the limit")
    level: Name | None = Field(None, description="first level that changes; None: none does")
    value: float = Field(0.0, description="how much smaller the level gets, in its unit")
    unit: str = ""
    evidence: Evidence = Field(
        Evidence.PROVEN,
        description="proven: both plans are; found: a better plan without a proof of how much better it can be; "
        "estimate: of the linear relaxation, no plan was made",
    )


class Worth(Value):
    """What a little more of one limit is worth, by solving again."""

    family: Name
    key: tuple[str, ...]
    limit: float = Field(description="the limit as it stands")
    unit: str
    one: Gain = Field(description="by one step")
    first: Gain | None = Field(
        None, description="the smallest move that changes the answer; None: none up to ``searched``"
    )
    searched: float = Field(description="largest move that was tried, in the unit of the limit")
    facts: dict[str, Fact] = Field(
        {}, description="what one step means, e.g. ttft_s; the unit is in the name"
    )


class RunnerUp(Value):
    """A candidate that the plan does not use, and what would make it a part of an optimal one."""

    candidate: CandidateId
    cost: float = Field(description="of one replica as it stands, in the cost unit of the problem")
    extra_cost: float = Field(description="how much more the best plan costs that has a replica of it")
    price_cut: float | None = Field(
        None,
        description="smallest cut of the cost of one replica with which it is in an optimal plan; None: not even for nothing",
    )
    capacity_gain: float | None = Field(
        None,
        description="smallest growth of its rated and surge capacity that does the same, share; None: none that was tried",
    )
    evidence: Evidence = Evidence.PROVEN


class AllocationDifference(Value):
    """A candidate of which two answers have different counts."""

    candidate: CandidateId
    replicas: int = Field(description="in the answer")
    theirs: int = Field(description="in the other")
    cost: float = Field(description="how much more the other spends on it, in the cost unit of the problem")


class ServiceDifference(Value):
    """A service of which two answers leave different demand unserved."""

    service: ServiceId
    unserved_rps: float = Field(description="in the answer, req/s")
    theirs: float = Field(description="in the other, req/s")


class Difference(Value):
    """What another answer does differently, and what that costs: figures of the other minus those of the answer."""

    name: Name = Field(description="of the other answer")
    allocations: tuple[AllocationDifference, ...] = ()
    services: tuple[ServiceDifference, ...] = ()
    unserved_rps: float
    cost: float
    power_w: float | None = Field(None, description="None: the power of a replica is unknown")
    changes: int


class Explanation(Value):
    """Why the plan is as it is."""

    binding: tuple[BindingRow, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    conflict: Conflict | None = None
    relaxations: tuple[Relaxation, ...] = ()
    runners_up: tuple[RunnerUp, ...] = ()
    worth: tuple[Worth, ...] = ()
    differences: tuple[Difference, ...] = ()
