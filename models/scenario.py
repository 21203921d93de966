"""A scenario: everything a user states about demand, hardware, limits and wishes."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from models.fleet import Fleet
from models.hardware import Accelerator, Pool, PowerDomain, Quota
from models.llm import Llm
from models.performance import PerformanceChoice
from models.units import Count, Hours, Ratio, UsdPerHour
from models.value import Value
from models.workload import Service

__all__ = ["Incumbents", "Limits", "Mode", "Objective", "ObjectiveLevel", "PowerBasis", "Scenario"]


class Mode(StrEnum):
    """Whether the accelerators that exist bound the plan."""

    CONSTRAINED = "constrained"
    UNCONSTRAINED = "unconstrained"


class PowerBasis(StrEnum):
    """What a replica is taken to draw: the thermal design power, or what is expected at its rated load."""

    TDP = "tdp"
    EXPECTED = "expected"


class Incumbents(StrEnum):
    """Whether pods whose node is known stay where they are, or may be moved (a move is a change)."""

    PINNED = "pinned"
    MOVABLE = "movable"


class ObjectiveLevel(StrEnum):
    """What is made small, one after the other."""

    UNSERVED = "unserved"
    COST = "cost"
    POWER = "power"
    CHANGES = "changes"


class Objective(Value):
    """Order of the levels; each is held within the tolerance when the next is solved."""

    levels: tuple[ObjectiveLevel, ...] = Field(
        (
            ObjectiveLevel.UNSERVED,
            ObjectiveLevel.COST,
            ObjectiveLevel.POWER,
            ObjectiveLevel.CHANGES,
        ),
        description="what is made small, the first first; each held within the tolerance when the next is solved",
    )
    tolerance: Ratio = Field(
        1e-4, le=1, description="relative slack left to a level when later ones are solved"
    )
    horizon_h: Hours = Field(1.0, description="time over which the cost of a start is spread, h")

    @model_validator(mode="after")
    def _levels_once(self) -> Self:
        if not self.levels:
            raise ValueError("found no level; allowed: at least one")
        again = next((level for level in self.levels if self.levels.count(level) > 1), None)
        if again is not None:
            raise ValueError(f"found {again.value!r} twice; allowed: each level once")
        return self


class Limits(Value):
    """Limits that tie services together."""

    quotas: tuple[Quota, ...] = Field((), description="caps on accelerators held at once")
    power: tuple[PowerDomain, ...] = Field((), description="caps on electric power")
    power_basis: PowerBasis = Field(PowerBasis.TDP, description="what a replica is taken to draw")
    spend_usd_per_h: UsdPerHour | None = Field(None, description="at most so much $/h for the whole plan")
    max_changes: Count | None = Field(None, description="replicas started, stopped or moved, in all")
    incumbents: Incumbents = Field(
        Incumbents.PINNED,
        description="whether pods whose node is known stay there, or may be moved (a move is a change)",
    )


class Scenario(Value):
    """What the user states. Sizing turns it into a problem."""

    name: str = Field(
        min_length=1, max_length=200, description="name of the scenario; from the file where it says none"
    )
    description: str = Field("", description="free text for readers")
    mode: Mode = Field(Mode.CONSTRAINED, description="whether the accelerators that exist bound the plan")
    services: tuple[Service, ...] = Field(min_length=1, description="what is to be served")
    pools: tuple[Pool, ...] = Field(min_length=1, description="where it may run")
    fleet: Fleet = Field(Fleet(), description="what runs now")
    limits: Limits = Field(Limits(), description="limits that tie services together")
    objective: Objective = Field(Objective(), description="what is made small, in which order")
    performance: PerformanceChoice = Field(
        PerformanceChoice(), description="which sources say what one replica can do"
    )
    accelerators: tuple[Accelerator, ...] = Field(
        (), description="entries beside, or instead of, the catalog's"
    )
    llms: tuple[Llm, ...] = Field((), description="entries beside, or instead of, the catalog's")
    profiles: tuple[str, ...] = Field(
        (), description="profile files beside the catalog's, relative to the scenario"
    )
