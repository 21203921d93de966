"""Resize calls of each dialect, what is answered to them, and how far a resize is."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from models.units import PositiveCount, PositiveSeconds
from models.value import Value

__all__ = ["CallAnswer", "CallVerdict", "ResizeCall", "ResizePhase", "ResizeStatus"]


class ResizeCall(Value):
    """One HTTP request."""

    method: str = Field("POST", pattern="^(GET|POST)$", description="GET or POST")
    url: str = Field(max_length=4000, description="whole address")
    body: dict[str, int] | None = Field(None, description="JSON; None: no body")
    timeout_s: PositiveSeconds = Field(900.0, description="as long as an answer is waited for, s")


class CallVerdict(StrEnum):
    """What an answer means. Only of ``refused`` and ``busy`` is it certain that nothing changed by this call."""

    DONE = "done"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    BUSY = "busy"
    UNKNOWN = "unknown"


class CallAnswer(Value):
    """What became of a call."""

    verdict: CallVerdict = Field(description="what it means")
    message: str = Field("", description="what was said, one line")
    ranks: PositiveCount | None = Field(None, description="ranks that it has now, where it says so")


class ResizePhase(StrEnum):
    """How far a resize is."""

    IDLE = "idle"
    PREPARING = "preparing"
    COMMITTING = "committing"
    FAILED = "failed"
    COMPLETED = "completed"
    UNKNOWN = "unknown"


class ResizeStatus(Value):
    """What the status call says. Where a preparation does not show, ``idle`` does not mean that nothing runs."""

    phase: ResizePhase = Field(description="how far it is")
    shows_preparing: bool = Field(False, description="whether a preparation would show")
    ranks: PositiveCount | None = Field(None, description="ranks that serve, where it says so")
    wanted: PositiveCount | None = Field(None, description="ranks that were asked for, where it says so")
    message: str = Field("", description="an error, one line")
