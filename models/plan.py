"""A plan: ordered steps from the fleet that runs to the solution."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.ids import CandidateId, NodeId, PoolId, ServiceId, VariantId
from models.problem import Resize
from models.units import Count, PositiveCount, Seconds, Share
from models.value import Value
from models.violation import Violation

__all__ = ["Plan", "Step", "StepKind", "Stuck", "Wave", "WaveLimits"]


class WaveLimits(Value):
    """How much may change at once, and how long things take that the problem does not know."""

    max_surge_gpus: Count | None = Field(
        None,
        description="accelerators that may be held while a wave runs above the larger of start and solution, all pools together",
    )
    max_surge_replicas: Count | None = Field(
        None, description="the same in replicas, per service, draining and starting ones included"
    )
    max_unavailable: Count | None = Field(
        None,
        description="ready replicas a service may lack while a wave runs, below the smaller of start and solution",
    )
    max_step_gpus: PositiveCount | None = Field(
        None, description="accelerators of the replicas that one step starts or drains"
    )
    drain_s: Seconds = Field(60.0, description="time in which a draining replica ends its requests, s")
    node_start_s: Seconds = Field(300.0, description="time until an added node takes pods, s")


class StepKind(StrEnum):
    """What a step does. ``await`` commands nothing; ``drain`` takes traffic away, ``remove`` then lowers the count.

    ``resize`` comes twice: replicas of a candidate are no more what they were, and are what they become.
    """

    ADD_NODES = "add_nodes"
    RESIZE = "resize"
    CANCEL = "cancel"
    AWAIT = "await"
    START = "start"
    DRAIN = "drain"
    REMOVE = "remove"
    REMOVE_NODES = "remove_nodes"


class Step(Value):
    """One change of one count, named as whoever carries it out needs it."""

    kind: StepKind = Field(description="what the step does")
    pool: PoolId = Field(description="pool it happens in")
    candidate: CandidateId | None = Field(
        None,
        description="identity: service/variant@pool, and #domain where its replicas stay in one; None: a step about nodes",
    )
    service: ServiceId | None = Field(None, description="service of the candidate; None: a step about nodes")
    variant: VariantId | None = Field(None, description="variant of the candidate; None: a step about nodes")
    count: PositiveCount = Field(
        description="replicas (or nodes) that this step orders, cancels, awaits, drains or removes"
    )
    before: Count = Field(
        description="replicas of the candidate that are wanted before the step (or nodes added)"
    )
    after: Count = Field(description="the same after the step; equal to before for await and drain")
    nodes: tuple[NodeId, ...] = Field(
        (),
        description="nodes of the pods that start, drain or stop, one entry per pod; empty where they are not known",
    )
    resize: Resize | None = Field(
        None, description="how replicas change their size; told with what they become"
    )

    @property
    def ranks(self) -> tuple[int, int] | None:
        """Data-parallel ranks before and after, the other way round where a change is undone; None: it is none."""
        if self.resize is None:
            return None
        found = (self.resize.from_ranks, self.resize.to_ranks)
        return found if self.after > self.before else found[::-1]

    @property
    def is_other_side(self) -> bool:
        """Whether it only says what replicas are no more, beside the step that says how they change."""
        return self.kind is StepKind.RESIZE and self.resize is None


class Wave(Value):
    """Steps in order; they may run together, but for a removal, which waits for its drain. The next wave waits for all."""

    steps: tuple[Step, ...] = Field(min_length=1, description="steps of the wave, in order")
    duration_s: Seconds = Field(description="longest start-up, drain or addition of nodes in the wave, s")
    extra_gpus: dict[PoolId, int] = Field(
        {},
        description="accelerators held while it runs above the larger of what start and solution hold",
    )


class Stuck(Value):
    """Why the fleet cannot move further without making something worse, and the least that would let it."""

    proven: bool = Field(description="every order was tried; False: none was found")
    violations: tuple[Violation, ...] = Field((), description="what the next replica would break")
    extra_gpus: dict[PoolId, PositiveCount] = Field(
        {},
        description="with so many accelerators more on empty nodes of these pools an order exists (verified); empty: that does not help",
    )
    drop: dict[ServiceId, Share] = Field(
        {},
        description="with so much less of a service's demand served for a while an order exists (verified); empty: that does not help",
    )
    smallest: bool = Field(
        False, description="fewer accelerators in one pool, and a smaller worst drop, are proven not to do"
    )


class Plan(Value):
    """Ordered waves. No state on the way is worse than both ends in any budget or minimum."""

    waves: tuple[Wave, ...] = Field(
        (), description="waves in order; empty: nothing changes, or nothing can start"
    )
    duration_s: Seconds = Field(0.0, le=1e15, description="sum over the waves, s")
    changes: Count = Field(0, description="replicas started, stopped, cancelled or moved by the solution")
    proven_fewest: bool = Field(
        False, description="no plan that only moves toward the solution has fewer waves"
    )
    limits: WaveLimits = Field(WaveLimits(), description="how much was allowed to change at once")
    stuck: Stuck | None = Field(None, description="set: the waves end before the solution is reached")
    derived_from: str = Field("", description="fingerprint of the solution; of a way back, of the plan")
