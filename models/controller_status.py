"""How a controller stands: who leads, when it looked last, and what every variant is to have."""

from __future__ import annotations

from pydantic import Field

from models.cycle_record import CycleReport, VariantDecision
from models.observation import Finding
from models.units import Count, EpochSeconds
from models.value import Value

__all__ = ["ControllerStatus"]


class ControllerStatus(Value):
    """A controller at one moment, as it says itself or as its records tell."""

    controller: str = Field("", description="who: name of the pod or machine, and a part that no other has")
    at_s: EpochSeconds = Field(description="when this was said, seconds of the epoch")
    leader: bool = Field(False, description="whether it leads")
    holder: str = Field("", description="who leads, as far as it knows; empty: nobody")
    act: bool = Field(
        False, description="whether it carries decisions out; otherwise it tells what it would do"
    )
    cycles: Count = Field(0, description="cycles since it started")
    last_cycle_s: EpochSeconds | None = Field(
        None, description="when its last cycle ended, seconds of the epoch; None: none did"
    )
    settings: str = Field("", description="fingerprint of its settings")
    decisions: tuple[VariantDecision, ...] = Field((), description="what every variant is to have, and why")
    findings: tuple[Finding, ...] = Field((), description="what could not be seen or done, and why")
    report: CycleReport = Field(CycleReport(), description="the last cycle in figures")
    last_record: str | None = Field(None, description="fingerprint of its last record; None: there is none")
