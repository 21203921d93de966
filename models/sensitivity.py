"""How the answer moves when one input of a scenario is moved a little."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import Name
from models.problem import CostUnit
from models.solution import Status
from models.units import Share
from models.value import Value

__all__ = ["Lever", "LeverKind", "Moved", "Sensitivity", "Swing"]


class LeverKind(StrEnum):
    """What is moved."""

    DEMAND = "demand"
    PRICE = "price"
    SLO = "slo"
    TAU = "tau"
    GAMMA = "gamma"


class Lever(Value):
    """One input that is moved by a factor, everything else as it is."""

    kind: LeverKind = Field(description="demand, price, slo (latency promises), tau or gamma of the KV cache")
    target: Name | None = Field(
        None, description="service, or for a price the pool, that it is of; None: all of them"
    )


class Moved(Value):
    """The re-solved answer with an input at some factor of itself."""

    factor: float = Field(description="of the input as the scenario states it; 1: unmoved")
    clipped: bool = Field(
        False, description="somewhere the input was moved less, to the last value that it may have"
    )
    status: Status = Field(
        description="how the solve ended; INFEASIBLE: the figures are those of the best plan under scarcity"
    )
    cost: float | None = Field(None, description="in the cost unit of the problem; None: there is no plan")
    unserved_rps: float | None = Field(
        None, description="None: there is no plan", json_schema_extra={"unit": "req/s"}
    )
    power_w: float | None = Field(
        None, description="None: unknown, or there is no plan", json_schema_extra={"unit": "W"}
    )
    gap: float | None = Field(None, description="relative gap of the cost; None: nothing is proven of it")


class Swing(Value):
    """One input, moved down and up."""

    lever: Lever = Field(description="what was moved")
    down: Moved | None = Field(
        None, description="with less of it; None: it cannot be less, or it was not solved"
    )
    up: Moved | None = Field(
        None, description="with more of it; None: it cannot be more, or it was not solved"
    )

    @property
    def sides(self) -> tuple[Moved, ...]:
        """Those that there are, down first."""
        return tuple(side for side in (self.down, self.up) if side is not None)


class Sensitivity(Value):
    """Inputs by how far they move the answer, the strongest first."""

    problem: str = Field(description="name of the problem")
    share: Share = Field(description="how far every input was moved, down and up")
    cost_unit: CostUnit = Field(description="unit of all costs")
    base: Moved = Field(description="the answer as it is, nothing moved")
    swings: tuple[Swing, ...] = Field(
        (), description="first by the demand that they leave unserved in addition, then by cost"
    )
    complete: bool = Field(False, description="everything that was asked for was solved")
    derived_from: str = Field("", description="fingerprint of the problem")
