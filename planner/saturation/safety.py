"""What is emitted when something is missing or broken, and what a sleeping service may count as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.saturation.published import (
    Reason,
    ServiceState,
    Targets,
    keep_one,
    scale_to_zero_when_idle,
)

__all__ = ["Activity", "enforce", "safety_net"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What tells whether somebody uses a service, over its retention time. None: could not be read.

    Attributes:
        completed: requests that ended.
        arrivals: requests that came.
        in_flight: requests in engines now.
        queued: requests that the router holds now.
    """

    completed: float | None
    arrivals: float | None = 0.0
    in_flight: float | None = 0.0
    queued: float | None = 0.0

    @property
    def requests(self) -> float | None:
        """Signs of use; None: one of them could not be read and the others show none."""
        signs = (self.completed, self.arrivals, self.in_flight, self.queued)
        shown = sum(sign for sign in signs if sign is not None)
        return None if shown <= 0 and None in signs else shown


def enforce(service: ServiceState, targets: Targets, *, activity: Activity, scale_to_zero: bool) -> Targets:
    """The last word on targets: to zero where allowed and nobody uses the service, else never to zero by accident.

    The published rule looks at completed requests alone, so that a service that was just woken, or that makes one very
    long answer, reads as idle. Here requests that came, run or wait are signs of use too; with these left at 0 the rule
    is the published one.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline/enforcer.go.
    """
    if scale_to_zero:
        return scale_to_zero_when_idle(service, targets, completed_requests=activity.requests)
    return keep_one(service, targets)


def safety_net(current: Mapping[str, int], previous: Mapping[str, int]) -> Targets:
    """Targets when metrics or analysis failed: the previous decision where it is above 0, else what runs.

    So a broken metrics pipeline scales nothing, and never to zero.

    Source: llm-d autoscaling v0.9, internal/engines/saturation (safety net).
    """
    replicas = {name: previous.get(name, 0) or replicas for name, replicas in current.items()}
    return Targets(replicas=replicas, reasons=dict.fromkeys(replicas, Reason.HELD))
