"""From a pod back to the metric: which decision asked for it, on what record, from which observation and series."""

from __future__ import annotations

from pydantic import Field

from models.cycle_record import ActuatorOutcome, CycleRecord, DemandRecord, Link, VariantDecision
from models.ids import Name
from models.observation import EngineObservation, Finding, TrafficObservation, VariantObservation
from models.units import Count, EpochSeconds
from models.value import Value

__all__ = ["Ground", "PodTrace", "SeenSeries"]


class SeenSeries(Value):
    """A value that was seen, and the series it is worked out of."""

    subject: str = Field(description="engine instance, or namespace/model for a router")
    field: str = Field(description="of the observation, e.g. kv_usage")
    value: float = Field(description="as it was seen, in the unit of the field")
    how: str = Field(description="now, peak, mean, rate, growth or size")
    window_s: float = Field(description="over which, s; 0: now", json_schema_extra={"unit": "s"})
    series: tuple[str, ...] = Field(description="names that it may be from, the likeliest first")


class Ground(Value):
    """One decision about the pod's variant, and everything under it."""

    number: Count = Field(description="of the cycle")
    at_s: EpochSeconds = Field(description="when it began, seconds of the epoch")
    controller: str = Field(description="who decided")
    trigger: str = Field(description="what started the cycle")
    dry_run: bool = Field(description="whether nothing was carried out")
    record: str = Field(description="fingerprint of the record")
    decision: VariantDecision = Field(description="what the variant was to have, and why")
    outcomes: tuple[ActuatorOutcome, ...] = Field((), description="what came of it")
    links: tuple[Link, ...] = Field((), description="fingerprints of what flowed through, the first first")
    demands: tuple[DemandRecord, ...] = Field((), description="what the service asked for")
    variant: VariantObservation | None = Field(None, description="as it was seen then")
    engines: tuple[EngineObservation, ...] = Field((), description="engines of the service then")
    traffic: tuple[TrafficObservation, ...] = Field((), description="traffic of the service then")
    series: tuple[SeenSeries, ...] = Field((), description="what they said, and by which series")

    @classmethod
    def of(cls, record: CycleRecord, decision: VariantDecision, **more: object) -> Ground:
        """What a record says of one decision."""
        return cls.model_validate(
            {
                "number": record.number,
                "at_s": record.at_s,
                "controller": record.controller,
                "trigger": record.trigger,
                "dry_run": record.dry_run,
                "record": record.fingerprint,
                "decision": decision,
                "links": record.links,
                **more,
            }
        )


class PodTrace(Value):
    """Where a pod is from."""

    pod: str = Field(description="name of the pod")
    namespace: str = Field("", description="its namespace; empty: unknown")
    cluster: Name | None = Field(None, description="None: the only one, or unknown")
    variant: str = Field("", description="name of its variant; empty: unknown")
    found_by: str = Field(
        "", description="how the variant was found: record, cluster or name; empty: it was not"
    )
    first_seen_s: EpochSeconds | None = Field(
        None, description="first record that has it, seconds of the epoch"
    )
    last_seen_s: EpochSeconds | None = Field(
        None, description="last record that has it, seconds of the epoch"
    )
    came: Ground | None = Field(None, description="the decision that asked for it; None: none is known")
    goes: Ground | None = Field(None, description="the decision that has it go; None: there is none")
    records: Count = Field(0, description="records that were looked through")
    missing: tuple[Finding, ...] = Field((), description="links of the chain that are not there, and why")

    @property
    def complete(self) -> bool:
        """Whether the chain leads from the pod to a series."""
        return self.came is not None and bool(self.came.series) and not self.missing
