"""A resize on its way: what was ordered, how far it is, and what is true of the deployment."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.elastic import ElasticEngine
from models.resize_call import CallVerdict
from models.units import EpochSeconds, PositiveCount, PositiveSeconds, Seconds
from models.value import Value

__all__ = ["TERMINAL", "OperationEntry", "OperationLimits", "OperationPhase", "ResizeOperation"]


class OperationPhase(StrEnum):
    """Where a resize is. A grow reserves before its call, a shrink takes traffic away before it and releases after it."""

    PLANNED = "planned"
    RESERVING = "reserving"
    UNROUTING = "unrouting"
    DRAINING = "draining"
    CALLING = "calling"
    SETTLING = "settling"
    VERIFYING = "verifying"
    ROUTING = "routing"
    RELEASING = "releasing"
    UNDOING = "undoing"
    DONE = "done"
    ABANDONED = "abandoned"
    NEEDS_PEOPLE = "needs people"


TERMINAL = frozenset({OperationPhase.DONE, OperationPhase.ABANDONED, OperationPhase.NEEDS_PEOPLE})


class OperationLimits(Value):
    """How long each thing may take."""

    reserve_s: PositiveSeconds = Field(900.0, description="until accelerators of joiners are there, s")
    drain_s: PositiveSeconds = Field(600.0, description="until ranks that leave have no request, s")
    total_s: PositiveSeconds = Field(300.0, description="that the resize may take by its estimate, s")
    ready_s: PositiveSeconds = Field(
        600.0, description="that joiners may take to start (VLLM_ENGINE_READY_TIMEOUT_S), s"
    )
    verify_s: PositiveSeconds = Field(
        180.0, description="until the new size is seen and answers as before, s"
    )
    balance_s: Seconds = Field(
        60.0, description="after it, until experts have moved and the whole capacity is there, s"
    )

    @property
    def quiet_s(self) -> float:
        """After so long without a sign, nothing is being prepared any more, s."""
        return max(self.ready_s + 60.0, 2 * self.total_s)

    @property
    def give_up_s(self) -> float:
        """After so long without knowing, people must look, s."""
        return self.quiet_s + 300.0


class OperationEntry(Value):
    """One line of its history."""

    at_s: EpochSeconds = Field(description="when, seconds of the epoch")
    phase: OperationPhase = Field(description="in which phase")
    text: str = Field(max_length=600, description="what happened")


class ResizeOperation(Value):
    """One resize of one deployment. It is written down before each step, so that whoever comes next knows."""

    id: str = Field(min_length=1, max_length=100, description="of the operation")
    deployment: str = Field(min_length=1, max_length=600, description="what is resized")
    engine: ElasticEngine = Field(description="what it is started as")
    urls: tuple[str, ...] = Field(min_length=1, description="API servers of the ranks that there were")
    from_ranks: PositiveCount = Field(le=4096, description="ranks before")
    to_ranks: PositiveCount = Field(le=4096, description="ranks that are to be")
    limits: OperationLimits = Field(OperationLimits(), description="how long each thing may take")
    phase: OperationPhase = Field(OperationPhase.PLANNED, description="where it is")
    started_s: EpochSeconds = Field(description="when it was ordered, seconds of the epoch")
    since_s: EpochSeconds = Field(description="when it came to this phase, seconds of the epoch")
    called_s: EpochSeconds | None = Field(
        None, description="when the call was about to be sent; None: not yet. There is never a second one"
    )
    answer: CallVerdict | None = Field(None, description="what the answer to it meant; None: none yet")
    serving_ranks: PositiveCount | None = Field(
        None, description="ranks that were last seen to serve; None: not known"
    )
    answer_before: str | None = Field(None, max_length=4000, description="answer to a fixed prompt before it")
    blocked: bool = Field(False, description="a failed preparation stands in the way of any later resize")
    way_out: str = Field("", max_length=600, description="what people are to do; empty: nothing")
    history: tuple[OperationEntry, ...] = Field(
        (), max_length=200, description="what happened, the last part of it"
    )

    @property
    def grows(self) -> bool:
        """Whether ranks join."""
        return self.to_ranks > self.from_ranks

    @property
    def over(self) -> bool:
        """Whether nothing more will be done by itself."""
        return self.phase in TERMINAL

    @property
    def settled_s(self) -> float | None:
        """From when on its capacity is all there, seconds of the epoch; None: it runs, or people must look."""
        if not self.over or self.phase is OperationPhase.NEEDS_PEOPLE:
            return None
        changed = self.called_s is not None and self.answer is not CallVerdict.REFUSED
        return self.since_s + (self.limits.balance_s if changed else 0.0)

    def noted(self, text: str, now_s: float, **changes: object) -> ResizeOperation:
        """The same with a line more, and with these fields changed; a new phase begins now."""
        phase = changes.get("phase", self.phase)
        entry = OperationEntry(at_s=now_s, phase=OperationPhase(str(phase)), text=text[:600])
        since = {"since_s": now_s} if phase is not self.phase else {}
        return self.but(history=(*self.history[-199:], entry), **since, **changes)
