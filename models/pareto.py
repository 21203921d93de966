"""The front of two objectives: plans of which none is better than another in both."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.solution import Solution, Status
from models.units import Count
from models.value import Value

__all__ = ["Axis", "ParetoFront", "ParetoPoint"]


class Axis(StrEnum):
    """What can be weighed against one another. Less is better, but for headroom."""

    COST = "cost"
    POWER = "power"
    UNSERVED = "unserved"
    CHANGES = "changes"
    HEADROOM = "headroom"


class ParetoPoint(Value):
    """One plan of the front."""

    x: float = Field(description="value on the x axis, in its unit")
    y: float = Field(description="value on the y axis, in its unit")
    status: Status = Field(
        description="OPTIMAL: proven that no plan is better in one and as good in the other"
    )
    gap: float | None = Field(
        None, description="the larger of the relative gaps of x at this y and of y at this x; None: unknown"
    )
    cost: float = Field(description="recomputed by the referee, as the following")
    unserved_rps: float = Field(
        description="demand that is not served, req/s", json_schema_extra={"unit": "req/s"}
    )
    power_w: float | None = Field(
        None,
        description="power of the plan, W; None: the power of a replica is unknown",
        json_schema_extra={"unit": "W"},
    )
    changes: Count = Field(description="replicas started, stopped or moved")
    headroom: float | None = Field(
        None,
        description="the least headroom of the online services, share of their load; None: none has load",
    )
    solution: Solution = Field(description="the plan itself")


class ParetoFront(Value):
    """The staircase of two objectives, from the best in x to the best in y."""

    problem: str = Field(description="name of the problem")
    x: Axis = Field(description="objective on the x axis")
    y: Axis = Field(description="objective on the y axis")
    x_unit: str = Field(description="unit of x, e.g. $/h")
    y_unit: str = Field(description="unit of y, e.g. W")
    status: Status = Field(
        description="OPTIMAL: every point is proven; INFEASIBLE or TIMED_OUT: there is none"
    )
    points: tuple[ParetoPoint, ...] = Field((), description="from the best in x to the best in y")
    complete: bool = Field(
        False,
        description="no plan that is not dominated is missing; False: there may be more between the points",
    )
    derived_from: str = Field("", description="fingerprint of the problem")
