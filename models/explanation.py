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
    SHAPE_NOT_CARRIED = "shape_not_carried"
    SIZE_NOT_REACHABLE = "size_not_reachable"
    POD_LARGER_THAN_NODE = "pod_larger_than_node"
    UNKNOWN_PRICE = "unknown_price"
    UNKNOWN_POWER = "unknown_power"
    # a candidate is offered and not used
    DEARER = "dearer"
    WAY_COSTS = "way_costs"
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

    value: int = Field(description="the count after the limit")
    reason: Reason = Field(description="what limited it")
    facts: dict[str, Fact] = Field({}, description="what else tells why, by name; the unit is in the name")


class Rejection(Value):
    """A variant in a pool that is no candidate, or a candidate that was not used, and the first reason why."""

    service: ServiceId = Field(description="service of the variant")
    variant: VariantId = Field(description="the variant that is refused or not used")
    pool: PoolId | None = Field(None, description="pool it would run in; None: it has none")
    reason: Reason = Field(description="the first reason that holds, in a fixed order")
    facts: dict[str, Fact] = Field({}, description="what else tells why, by name; the unit is in the name")


class BindingRow(Value):
    """A limit with less slack than the smallest step that would use it."""

    family: Name = Field(description="family of rows, e.g. gpus, power, survive")
    key: tuple[str, ...] = Field(description="which row of the family: service, pool, node, domain, ...")
    used: float = Field(description="what the plan uses, in ``unit``")
    limit: float = Field(description="what may be used, in ``unit``")
    unit: str = Field(description="unit of used and limit, e.g. GPU, W, $/h")
    facts: dict[str, Fact] = Field(
        {}, description="what else tells why, e.g. free_gpus; the unit is in the name"
    )


class Conflict(Value):
    """Families that cannot hold together; without any one of them the rest can."""

    families: tuple[Name, ...] = Field(description="families of limits that exclude one another")
    rows: tuple[tuple[str, ...], ...] = Field(
        (), description="rows of these families, each as family and key"
    )


class Relaxation(Value):
    """One limit, moved this far, makes every promise hold; verified by solving again."""

    family: Name = Field(description="family of rows, e.g. gpus, power, survive")
    key: tuple[str, ...] = Field(description="which row of the family: service, pool, node, domain, ...")
    limit: float = Field(description="the limit as it stands")
    needed: float = Field(description="the smallest move of the limit that would do")
    unit: str = Field(description="unit of limit and needed")
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
    unit: str = Field("", description="unit of the level that changes; empty: none does")
    evidence: Evidence = Field(
        Evidence.PROVEN,
        description="proven: both plans are; found: a better plan without a proof of how much better it can be; "
        "estimate: of the linear relaxation, no plan was made",
    )


class Worth(Value):
    """What a little more of one limit is worth, by solving again."""

    family: Name = Field(description="family of rows, e.g. gpus, power, survive")
    key: tuple[str, ...] = Field(description="which row of the family: service, pool, node, domain, ...")
    limit: float = Field(description="the limit as it stands")
    unit: str = Field(description="unit of limit, amounts and searched")
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

    candidate: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
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
    evidence: Evidence = Field(Evidence.PROVEN, description="how sure these figures are")


class AllocationDifference(Value):
    """A candidate of which two answers have different counts."""

    candidate: CandidateId = Field(
        description="identity: service/variant@pool, and #domain where its replicas stay in one"
    )
    replicas: int = Field(description="in the answer")
    theirs: int = Field(description="in the other")
    cost: float = Field(description="how much more the other spends on it, in the cost unit of the problem")


class ServiceDifference(Value):
    """A service of which two answers leave different demand unserved."""

    service: ServiceId = Field(description="the service")
    unserved_rps: float = Field(description="in the answer, req/s", json_schema_extra={"unit": "req/s"})
    theirs: float = Field(description="in the other, req/s", json_schema_extra={"unit": "req/s"})


class Difference(Value):
    """What another answer does differently, and what that costs: figures of the other minus those of the answer."""

    name: Name = Field(description="of the other answer")
    allocations: tuple[AllocationDifference, ...] = Field((), description="candidates whose counts differ")
    services: tuple[ServiceDifference, ...] = Field((), description="services whose unserved demand differs")
    unserved_rps: float = Field(
        description="how much more demand the other leaves unserved, req/s",
        json_schema_extra={"unit": "req/s"},
    )
    cost: float = Field(description="how much more the other costs, in the cost unit of the problem")
    power_w: float | None = Field(
        None, description="None: the power of a replica is unknown", json_schema_extra={"unit": "W"}
    )
    changes: int = Field(description="how many more replicas the other starts, stops or moves")


class Explanation(Value):
    """Why the plan is as it is."""

    binding: tuple[BindingRow, ...] = Field(
        (), description="limits that not even the smallest replica would still fit under"
    )
    rejected: tuple[Rejection, ...] = Field(
        (), description="variants that are no candidates, and candidates that are not used"
    )
    conflict: Conflict | None = Field(
        None, description="only when infeasible: limits that exclude one another; None: not searched"
    )
    relaxations: tuple[Relaxation, ...] = Field(
        (), description="only when infeasible: single limits whose smallest move keeps every promise"
    )
    together: tuple[Relaxation, ...] = Field(
        (),
        description="only where no single limit is enough: limits whose moves together keep every promise, none of which "
        "can be left out; the cost is that of one plan with all of them",
    )
    runners_up: tuple[RunnerUp, ...] = Field(
        (), description="what would bring an unused candidate into the plan; empty: not asked for"
    )
    worth: tuple[Worth, ...] = Field(
        (), description="what a little more of each limit is worth; empty: not asked for"
    )
    differences: tuple[Difference, ...] = Field(
        (), description="what other answers do differently; empty: there are none beside"
    )
