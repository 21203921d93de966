"""Carrying a plan out on clusters: what objects are like, what was done to them, and how they differ from the plan."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import Name
from models.observation import Finding
from models.plan import Plan
from models.report import Report
from models.units import Count, EpochSeconds, PositiveCount, Seconds
from models.value import Value

__all__ = [
    "ApplyEvent",
    "ApplyEventKind",
    "ApplyReview",
    "CountedObject",
    "Drift",
    "FieldChange",
    "ObjectState",
    "Undo",
]


class CountedObject(Value):
    """A Kubernetes object whose replica count a plan changes."""

    cluster: Name | None = Field(None, description="None: the only one there is")
    namespace: str = Field(description="namespace of the object")
    kind: str = Field(description="Deployment, StatefulSet or LeaderWorkerSet")
    name: str = Field(description="name of the object")
    label: str = Field("", description="service/variant of the plan")

    def __str__(self) -> str:
        """``Deployment llm/chat``, with the cluster where it has a name."""
        where = f"{self.cluster}: " if self.cluster else ""
        return f"{where}{self.kind} {self.namespace}/{self.name}"


class ObjectState(Value):
    """One object as its cluster has it now."""

    object: CountedObject = Field(description="which")
    wanted: Count | None = Field(None, description="spec.replicas; None: there is no such object")
    ready: Count = Field(0, description="ready replicas, as the object's own controller counts them")
    held: Count = Field(0, description="replicas that exist, those that start among them")
    settled: bool = Field(True, description="its own controller has seen the count that is asked for")
    paused_by: str = Field("", description="what asks that nothing is changed; empty: nothing does")
    controlled_by: str = Field("", description="what holds its scaler beside plans; empty: nothing does")
    bounds: tuple[int, int] | None = Field(
        None, description="minimum and maximum of its HPA; None: none is named"
    )
    pause: str = Field("", description="count that its ScaledObject is paused at; empty: it is not paused")
    former: str = Field("", description="record of what its scaler had before a plan; empty: there is none")
    rivals: tuple[str, ...] = Field((), description="scalers of this object that the plan does not name")


class FieldChange(Value):
    """One field of one object, before and after."""

    object: str = Field(description="kind, namespace and name")
    field: str = Field(description="path in the object, e.g. spec.replicas")
    before: str = Field(description="what stands there; empty: nothing")
    after: str = Field(description="what shall stand there; empty: nothing")
    wave: Count = Field(0, description="wave of the plan that writes it, from 1; 0: after all of them")

    def __str__(self) -> str:
        """One line."""
        return f"{self.object}: {self.field}: {self.before or 'nothing'} → {self.after or 'nothing'}"


class ApplyReview(Value):
    """What carrying a plan out would do now, and what forbids it. Nothing was changed."""

    waves: Count = Field(description="waves of the plan")
    next_wave: PositiveCount = Field(
        description="wave with which it goes on, from 1; one more than there are: all are done"
    )
    states: tuple[ObjectState, ...] = Field((), description="objects as they are now")
    changes: tuple[FieldChange, ...] = Field((), description="what is still to be written, in order")
    refusals: tuple[Finding, ...] = Field((), description="what forbids it; empty: nothing does")
    passing: bool = Field(False, description="all that forbids it may be gone in a moment")
    notes: tuple[str, ...] = Field(
        (), description="what no object and no command carries out, and what is not known"
    )

    @property
    def done(self) -> bool:
        """Whether the cluster is where the plan ends."""
        return not self.refusals and self.next_wave > self.waves


class ApplyEventKind(StrEnum):
    """What happened while a plan was carried out."""

    BEGUN = "begun"
    WAVE = "wave"
    WROTE = "wrote"
    KEPT = "kept"
    AWAITED = "awaited"
    NOTED = "noted"
    REFUSED = "refused"
    STOPPED = "stopped"
    DONE = "done"


class ApplyEvent(Value):
    """One line of the audit record."""

    at_s: EpochSeconds = Field(description="when, seconds of the epoch")
    kind: ApplyEventKind = Field(description="what happened")
    wave: Count = Field(0, description="wave, from 1; 0: none")
    object: str = Field("", description="kind, namespace and name; empty: about the whole")
    field: str = Field("", description="path of the field that was written; empty: none was")
    before: str = Field("", description="what stood there")
    after: str = Field("", description="what stands there now")
    message: str = Field("", description="one sentence")
    facts: dict[str, str] = Field({}, description="who, which plan, which clusters; never a secret")


class Undo(Value):
    """What leads back: the answer, and the waves that were carried out."""

    report: Report = Field(description="the answer that was carried out")
    plan: Plan = Field(description="its waves as far as any of them was begun")
    cluster: Name | None = Field(None, description="whose objects were carried out alone; None: all")
    begun_s: EpochSeconds = Field(description="when that began, seconds of the epoch")


class Drift(Value):
    """One object that is not what the plan says."""

    object: CountedObject = Field(description="which")
    planned: Count = Field(description="replicas that the plan wants")
    wanted: Count | None = Field(
        description="replicas that the object asks for; None: there is no such object"
    )
    ready: Count = Field(description="replicas that are ready")
    for_s: Seconds = Field(0.0, description="since when it differs, as far as it was watched, s")
