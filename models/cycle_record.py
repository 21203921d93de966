"""What a cycle of the controller leaves: from what was seen to what came of it, with a reason for every variant."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.explanation import Fact
from models.ids import Name
from models.observation import Finding, Observation
from models.units import Count, EpochSeconds, Ratio, Seconds
from models.value import Value
from models.variant import Role

__all__ = [
    "ActuatorOutcome",
    "CycleKind",
    "CycleRecord",
    "CycleReport",
    "DemandRecord",
    "Link",
    "Stage",
    "VariantDecision",
]


class CycleKind(StrEnum):
    """Why a record was written."""

    DECIDED = "decided"
    """Something was to change, or the reason for holding changed."""
    HEARTBEAT = "heartbeat"
    """Nothing happened for a while."""
    FAILED = "failed"
    """The cycle came to no decision; replicas are held."""
    WOKEN = "woken"
    """A service at zero was woken between two cycles."""


class Stage(StrEnum):
    """What flows through a cycle; each value was made of the one before."""

    OBSERVATION = "observation"
    DEMAND = "demand"
    PROBLEM = "problem"
    SOLUTION = "solution"
    DECISIONS = "decisions"
    OUTCOMES = "outcomes"


class Link(Value):
    """One value of the cycle by its fingerprint."""

    stage: Stage = Field(description="which value")
    value: str = Field(description="fingerprint of the value")
    derived_from: str | None = Field(None, description="fingerprint of what it was made of; None: the first")


class DemandRecord(Value):
    """What one service (or one role of it) asked for, in the unit of whoever analyzed it."""

    namespace: str = Field(description="of the service")
    model: str = Field(description="model identifier")
    cluster: Name | None = Field(None, description="None: the only one")
    role: Role = Field(Role.BOTH, description="which phase")
    policy: str = Field("", description="who analyzed it")
    unit: str = Field("", description="of the figures, e.g. token, req/s")
    demand: Ratio | None = Field(None, description="what is asked for now; None: unknown")
    expected: Ratio | None = Field(
        None, description="what is planned for, of a forecast; None: what is asked for now"
    )
    forecast: str = Field("", description="who foretold it, or why nobody is believed; empty: not asked for")
    capacity: Ratio | None = Field(None, description="what ready replicas carry; None: unknown")
    required: Ratio | None = Field(None, description="capacity that is missing; None: unknown")
    spare: Ratio | None = Field(None, description="capacity that may go; None: unknown")
    facts: dict[str, Fact] = Field({}, description="what else was seen, by name; the unit is in the name")


class VariantDecision(Value):
    """What one variant is to have, and why."""

    name: str = Field(description="of the variant")
    namespace: str = Field(description="its namespace")
    cluster: Name | None = Field(None, description="None: the only one")
    model: str = Field("", description="model identifier")
    role: Role = Field(Role.BOTH, description="phase of a request")
    accelerator: str = Field("", description="type; empty: unknown")
    gpus: Count = Field(0, description="accelerators of one replica")
    before: Count | None = Field(None, description="replicas wanted before (spec.replicas); None: no target")
    ready: Count = Field(0, description="ready replicas")
    pending: Count = Field(0, description="replicas that are on order")
    proposed: Count | None = Field(None, description="what the policy asked for; None: nothing")
    desired: Count | None = Field(None, description="replicas it is to have; None: unknown, held as it is")
    reason: str = Field(description="one word, e.g. ScaledUp, MetricsUnavailable")
    message: str = Field("", description="one sentence")
    facts: dict[str, Fact] = Field({}, description="figures behind it, by name; the unit is in the name")
    victims: tuple[str, ...] = Field((), description="pods that go first, the first first")

    @property
    def changes(self) -> bool:
        """Whether replicas are to come or to go."""
        return self.desired is not None and self.desired != self.before

    @property
    def key(self) -> tuple[str, str, str]:
        """Cluster, namespace and name."""
        return (self.cluster or "", self.namespace, self.name)


class ActuatorOutcome(Value):
    """What came of one decision at one actuator."""

    actuator: str = Field(description="its name")
    name: str = Field(description="of the variant")
    namespace: str = Field(description="its namespace")
    cluster: Name | None = Field(None, description="None: the only one")
    applied: bool = Field(description="whether it is so now")
    changed: bool = Field(description="whether something was written")
    message: str = Field("", description="what was written, or why it was not")


class CycleReport(Value):
    """The cycle in figures."""

    variants: Count = Field(0, description="variants that are ours")
    engines: Count = Field(0, description="engines that were seen")
    replicas_before: Count = Field(0, description="replicas wanted before")
    replicas_after: Count = Field(0, description="replicas wanted after")
    gpus_before: Count = Field(0, description="their accelerators before")
    gpus_after: Count = Field(0, description="their accelerators after")
    cost_before: Ratio = Field(0.0, description="relative cost before")
    cost_after: Ratio = Field(0.0, description="relative cost after")
    reasons: dict[str, Count] = Field({}, description="variants by reason")
    applied: Count = Field(0, description="outcomes that were applied")
    failed: Count = Field(0, description="outcomes that were not")
    writes: Count = Field(0, description="objects that were written")
    seconds: dict[str, Seconds] = Field({}, description="time by phase: observe, decide, check, act, s")
    complete: bool = Field(True, description="False: a source did not answer; nothing was scaled in")


class CycleRecord(Value):
    """One cycle: Observation → Demand → Problem → Solution → decisions → outcomes → report.

    Observation, demands, decisions and outcomes are those of services that were to change (or whose reason changed); the
    links have fingerprints of the whole.
    """

    number: Count = Field(description="of the cycle, since the controller started")
    at_s: EpochSeconds = Field(description="when it began, seconds of the epoch")
    kind: CycleKind = Field(description="why it was written")
    controller: str = Field("", description="who: name of the pod or machine, and a part that no other has")
    leader: bool = Field(True, description="whether it led")
    dry_run: bool = Field(True, description="whether nothing was carried out")
    trigger: str = Field("timer", description="what started the cycle: timer, start, or the event")
    settings: str = Field("", description="fingerprint of the settings")
    links: tuple[Link, ...] = Field((), description="fingerprints of what flowed through, the first first")
    observation: Observation | None = Field(None, description="what was seen of these services")
    demands: tuple[DemandRecord, ...] = Field((), description="what they asked for")
    decisions: tuple[VariantDecision, ...] = Field((), description="what their variants are to have, and why")
    outcomes: tuple[ActuatorOutcome, ...] = Field((), description="what came of it")
    findings: tuple[Finding, ...] = Field((), description="what could not be seen or done, and why")
    report: CycleReport = Field(CycleReport(), description="the cycle in figures")
    previous: str | None = Field(None, description="fingerprint of the record before; None: the first")

    def link(self, stage: Stage) -> Link | None:
        """The value of a stage; None: the cycle did not get so far, or works without it."""
        return next((each for each in self.links if each.stage is stage), None)
