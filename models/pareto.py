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

    x: float
    y: float
    status: Status = Field(
        description="OPTIMAL: proven that no plan is better in one and as good in the other"
    )
    gap: float | None = Field(
        None, description="the larger of the relative gaps of x at this y and of y at this x; None: unknown"
    )
    cost: float = Field(description="recomputed by the referee, as the following")
    unserved_rps: float
    power_w: float | None = None
    changes: Count
    headroom: float | None = Field(
        None,
        description="the least headroom of the online services, share of their load; None: none has load",
    )
    solution: Solution


class ParetoFront(Value):
    """The staircase of two objectives, from the best in x to the best in y."""

    problem: str = Field(description="name of the problem")
    x: Axis
    y: Axis
    x_unit: str
    y_unit: str
    status: Status = Field(
        description="OPTIMAL: every point is proven; INFEASIBLE or TIMED_OUT: there is none"
    )
    points: tuple[ParetoPoint, ...] = ()
    complete: bool = Field(
        False,
        description="no plan that is not dominated is missing; False: there may be more between the points",
    )
    derived_from: str = Field("", description="fingerprint of the problem")
