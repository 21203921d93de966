"""Reasons are data; they become sentences only where people read them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import Name, PoolId, ServiceId, VariantId
from models.value import Value

__all__ = [
    "BindingRow",
    "Conflict",
    "Explanation",
    "Fact",
    "Limited",
    "Reason",
    "Rejection",
    "Relaxation",
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
    needed: float = Field(description="the smallest limit that would do")
    unit: str
    verified: bool = Field(description="a plan with this limit passed the referee")


class Explanation(Value):
    """Why the plan is as it is."""

    binding: tuple[BindingRow, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    conflict: Conflict | None = None
    relaxations: tuple[Relaxation, ...] = ()
