"""What is handed into the loop: who tells of metrics and accelerators, who decides, who acts. Four plug-in groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from models.hardware import Pool
from models.observation import (
    EngineObservation,
    Finding,
    Observation,
    QuotaObservation,
    TrafficObservation,
    VariantObservation,
)

__all__ = [
    "SHORT",
    "Actuator",
    "CapacityDiscovery",
    "ClusterReading",
    "Decision",
    "Difference",
    "FleetDiscovery",
    "Inventory",
    "MetricsReading",
    "MetricsSource",
    "Outcome",
    "OutcomeCode",
    "ScalingPolicy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsReading:
    """What a metrics source saw.

    Attributes:
        engines: by instance.
        traffic: by model and namespace.
        findings: series that are missing or unusable, with the likeliest reason.
        complete: False when the source did not answer in full; nothing may be scaled in on it.
    """

    engines: tuple[EngineObservation, ...] = ()
    traffic: tuple[TrafficObservation, ...] = ()
    findings: tuple[Finding, ...] = ()
    complete: bool = True


class MetricsSource(Protocol):
    """Reads engines and routers. Plug-in group ``fleetplan.metrics-source``."""

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """What engines and routers of these variants say.

        It never raises for what it cannot reach: that is a finding, and ``complete`` is False.

        Args:
            variants: what is served, with namespaces, models and pods.
            now_s: seconds of the epoch.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """What a discovery saw.

    Attributes:
        pools: accelerators by type and place, with foreign use by node.
        quotas: namespace quotas.
        findings: nodes and objects that could not be understood.
        complete: False when the cluster did not answer in full.
    """

    pools: tuple[Pool, ...] = ()
    quotas: tuple[QuotaObservation, ...] = ()
    findings: tuple[Finding, ...] = ()
    complete: bool = True


class CapacityDiscovery(Protocol):
    """Tells which accelerators there are. Plug-in group ``fleetplan.capacity-discovery``."""

    def discover(self, now_s: float) -> Inventory:
        """The accelerators that there are; never raises for what it cannot reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReading:
    """What clusters say of variants and accelerators, at one moment.

    Attributes:
        variants: what is scaled, with bounds and counts.
        inventory: accelerators, quotas, and findings about them.
        findings: scalers and workloads that could not be understood, clusters that did not answer.
        complete: False when what is scaled is not known in full; nothing may be scaled in on it. Variants of a
            cluster that did not answer are missing, which does not mean that they are gone.
    """

    variants: tuple[VariantObservation, ...] = ()
    inventory: Inventory = field(default_factory=Inventory)
    findings: tuple[Finding, ...] = ()
    complete: bool = True


class FleetDiscovery(Protocol):
    """A discovery that knows variants beside accelerators, as that of Kubernetes does."""

    def see(self, now_s: float) -> ClusterReading:
        """Variants and accelerators from one reading of the clusters; never raises for what it cannot reach."""


SHORT: Final = "short"
"""Fact of a decision: replicas of this variant that were asked for and not granted, by its maximum, accelerators or quota.

A service with such a decision is at its cap: who admits requests is told so (actuator ``epp``).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one variant is to have, and why.

    Attributes:
        variant: as it was observed.
        desired: replicas.
        reason: one word for counters and events, e.g. ``ScaledUp``.
        message: one sentence for people.
        victims: pods that go first when replicas are removed, the first first.
        facts: figures behind it, for the record.
    """

    variant: VariantObservation
    desired: int
    reason: str
    message: str = ""
    victims: tuple[str, ...] = ()
    facts: Mapping[str, float | int | str] = field(default_factory=dict)


class ScalingPolicy(Protocol):
    """Decides. Plug-in group ``fleetplan.policy``."""

    def decide(self, observation: Observation, now_s: float) -> Sequence[Decision]:
        """One decision for each variant that is to change or to be held, in a stable order.

        Args:
            observation: as it was seen; variants that are left out are held.
            now_s: seconds of the epoch.
        """


class OutcomeCode(StrEnum):
    """What came of it, in one word, for counters."""

    DONE = "done"
    """Written."""
    WOULD = "would"
    """Would be written: this was a dry run."""
    SAME = "same"
    """It is so already."""
    WAITING = "waiting"
    """Something has to happen first, and is under way."""
    LEFT = "left"
    """Not a thing of this actuator, or left to whoever owns it."""
    DENIED = "denied"
    """Access was denied; the message names the missing rule."""
    CONFLICT = "conflict"
    """Somebody else writes it, or changed it since it was observed."""
    GONE = "gone"
    """There is no such object any more."""
    BUSY = "busy"
    """The cluster asked to come back later."""
    UNKNOWN = "unknown"
    """No answer came: whether it was written will be read before anything is written again."""
    AWAY = "away"
    """The cluster is out of reach; nothing was tried."""
    FAILED = "failed"
    """Refused for another reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field that was or would be written.

    Attributes:
        object: kind, namespace and name, with the cluster where it has a name.
        field: path in it, e.g. ``spec.replicas``.
        before: what stood there; empty: nothing.
        after: what stands there then; empty: nothing.
    """

    object: str
    field: str
    before: str
    after: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.object}: {self.field}: {self.before or 'nothing'} → {self.after or 'nothing'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of carrying a decision out.

    Attributes:
        decision: what was to be done.
        applied: whether it is so now.
        changed: whether something was written.
        message: what was written, or why it was not; names the missing rule when access was denied.
        actuator: who did it; empty: it does not say.
        code: the same in one word.
        differences: fields that were written, or would be.
    """

    decision: Decision
    applied: bool
    changed: bool
    message: str = ""
    actuator: str = ""
    code: OutcomeCode = OutcomeCode.DONE
    differences: tuple[Difference, ...] = ()


class Actuator(Protocol):
    """Carries decisions out, or tells what it would do. Plug-in group ``fleetplan.actuation``."""

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        """One outcome for each decision, in their order; one that fails does not stop the others."""
