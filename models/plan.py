"""A plan: ordered steps from the fleet that runs to the solution."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import CandidateId, NodeId, PoolId, ServiceId, VariantId
from models.report import Violation
from models.units import Count, Seconds
from models.value import Value

__all__ = ["Plan", "Step", "StepKind", "Stuck", "Wave"]


class StepKind(StrEnum):
    """What a step does."""

    ADD_NODES = "add_nodes"
    START = "start"
    DRAIN = "drain"
    REMOVE = "remove"
    REMOVE_NODES = "remove_nodes"


class Step(Value):
    """One change of one count."""

    kind: StepKind
    pool: PoolId
    candidate: CandidateId | None = None
    service: ServiceId | None = None
    variant: VariantId | None = None
    count: Count = Field(description="replicas (or nodes) that this step starts, drains or removes")
    before: Count = Field(description="count of the candidate (or nodes) before the step")
    after: Count = Field(description="count after the step")
    nodes: tuple[NodeId, ...] = Field((), description="where pods start or stop, as far as it matters")


class Wave(Value):
    """Steps that may run together; the next wave waits for all of them."""

    steps: tuple[Step, ...]
    duration_s: Seconds = Field(description="longest start-up or drain of the wave, s")
    extra_gpus: dict[PoolId, int] = Field(
        {}, description="accelerators above the larger of before and after, while it runs"
    )


class Stuck(Value):
    """Why the fleet cannot move without making something worse, and the smallest slack that would do."""

    pool: PoolId | None
    extra_gpus: int
    text: str
    violations: tuple[Violation, ...] = ()


class Plan(Value):
    """Ordered waves. No state on the way is worse than the start in any budget or minimum."""

    waves: tuple[Wave, ...] = ()
    duration_s: Seconds = 0.0
    changes: int = 0
    stuck: Stuck | None = Field(None, description="set: the waves end before the solution is reached")
    derived_from: str = Field("", description="fingerprint of the solution")
