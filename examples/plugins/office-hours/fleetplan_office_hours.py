"""A policy: so many replicas of each variant in office hours, and so many outside of them.

It looks at nothing but the clock, which shows the whole of what a policy has to do. What it wishes for goes through the rules
of the controller as every wish does: bounds, accelerators that there are, stabilization, people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from models.observation import Observation, VariantObservation
from models.units import Count
from models.value import Value
from planner.clock import Clock
from planner.control.options import options_of
from planner.control.protocols import Decision

_WEEKEND = 5


class Options(Value):
    """Options of the policy."""

    zone: str = Field("UTC", description="time zone, e.g. Europe/Berlin")
    begin: int = Field(8, ge=0, le=23, description="first hour")
    end: int = Field(18, ge=1, le=24, description="hour after the last")
    inside: Count = Field(2, description="replicas of each variant in these hours, Monday to Friday")
    outside: Count = Field(1, description="replicas at other times")

    @field_validator("zone")
    @classmethod
    def _is_known(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError) as cause:
            raise ValueError(
                f"the time zone {value[:100]!r}; allowed: a name such as Europe/Berlin"
            ) from cause
        return value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.begin >= self.end:
            raise ValueError(f"hours from {self.begin} to {self.end}; allowed: begin before end")
        return self


class OfficeHours:
    """Decides by the clock."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def decide(self, observation: Observation, now_s: float) -> Sequence[Decision]:
        """One decision for each variant."""
        options = self._options
        now = datetime.fromtimestamp(now_s, ZoneInfo(options.zone))
        busy = now.weekday() < _WEEKEND and options.begin <= now.hour < options.end
        wanted = options.inside if busy else options.outside
        reason = "OfficeHours" if busy else "OutsideOfficeHours"
        return [self._decision(each, wanted, reason, now) for each in observation.variants]

    @staticmethod
    def _decision(variant: VariantObservation, wanted: int, reason: str, now: datetime) -> Decision:
        message = f"{wanted} replicas at {now:%a %H:%M %Z}"
        return Decision(
            variant=variant, desired=wanted, reason=reason, message=message, facts={"hour": now.hour}
        )


def policy(options: Mapping[str, object], clock: Clock) -> OfficeHours:
    """The factory that the entry point names."""
    del clock
    return OfficeHours(options_of(Options, "office-hours", options))
