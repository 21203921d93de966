"""People come first: for whom, at which hours, and on which nodes nothing may be changed, or must be ready to leave."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from models.ids import Name
from models.observation import VariantObservation
from models.units import Seconds
from models.value import Value
from models.variant import Role

__all__ = ["ChangeWindow", "Forbids", "Maintenance", "Weekday", "Who"]

_TIME_OF_DAY: Final = r"^([01]\d|2[0-3]):[0-5]\d$"
_ZONE: Final = r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$"
_NODE: Final = re.compile(r"[A-Za-z0-9*.:_-]{1,253}")
TimeOfDay = Annotated[str, StringConstraints(pattern=_TIME_OF_DAY)]
Zone = Annotated[str, StringConstraints(pattern=_ZONE, max_length=64)]


class Who(Value):
    """Some variants: those that have everything that is named here; nothing named: all."""

    cluster: Name | None = Field(None, description="cluster; None: any")
    namespace: Name | None = Field(None, description="namespace; None: any")
    model: str | None = Field(None, min_length=1, max_length=253, description="model identifier; None: any")
    variant: Name | None = Field(None, description="name of the variant (of its scaler); None: any")
    role: Role | None = Field(None, description="role; None: any")
    accelerator: Name | None = Field(None, description="accelerator type, normalized; None: any")

    def covers(self, variant: VariantObservation) -> bool:
        """Whether a variant is among them."""
        asked = (
            (self.cluster, variant.cluster),
            (self.namespace, variant.namespace),
            (self.model, variant.model),
            (self.variant, variant.name),
            (self.role, variant.role),
            (self.accelerator, variant.accelerator),
        )
        return all(wanted is None or wanted == found for wanted, found in asked)

    @property
    def exactness(self) -> int:
        """How many properties are named."""
        return sum(getattr(self, name) is not None for name in Who.model_fields)


class Weekday(StrEnum):
    """Days as people write them."""

    MON = "mon"
    TUE = "tue"
    WED = "wed"
    THU = "thu"
    FRI = "fri"
    SAT = "sat"
    SUN = "sun"


class Forbids(StrEnum):
    """What is not done outside change windows, or in a freeze."""

    ALL = "all"
    SCALE_IN = "scale_in"


class ChangeWindow(Value):
    """Hours of some days; one that ends before it begins runs past midnight."""

    who: Who = Field(Who(), description="whom it is for; nothing named: everybody")
    days: tuple[Weekday, ...] = Field((), description="days on which it begins; empty: every day")
    begin: TimeOfDay = Field("00:00", description="HH:MM in the time zone")
    end: TimeOfDay = Field("00:00", description="HH:MM, not part of it; the same as begin: a whole day")
    zone: Zone = Field("UTC", description="time zone, e.g. Europe/Berlin")
    since: date | None = Field(None, description="first day on which it begins; None: always did")
    until: date | None = Field(None, description="last day on which it begins; None: for ever")
    forbids: Forbids = Field(
        Forbids.ALL, description="what is not done outside of windows (in a freeze: inside)"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.since is not None and self.until is not None and self.since > self.until:
            raise ValueError(f"until {self.until} is before since {self.since}")
        return self


class Maintenance(Value):
    """Nodes that will be away: their capacity leaves the plan ahead of time, and what runs there moves first."""

    nodes: tuple[str, ...] = Field((), max_length=10_000, description="names; a * stands for any letters")
    cluster: Name | None = Field(None, description="cluster they are in; None: any")
    begin: AwareDatetime = Field(description="when they go, with time zone")
    end: AwareDatetime | None = Field(None, description="when they are back; None: not planned")
    ahead_s: Seconds = Field(
        1800.0, le=30 * 86_400, description="their capacity leaves the plan so long before, s"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.nodes:
            raise ValueError("found no node; allowed: at least one name")
        if any(not _NODE.fullmatch(node) for node in self.nodes):
            raise ValueError("found a name that no node has; allowed: names of nodes, with * for any letters")
        if self.end is not None and self.end <= self.begin:
            raise ValueError("end is not after begin")
        return self
