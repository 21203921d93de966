"""What a wave waits for: counts passed on, replicas ready, pods gone; each with a limit of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from models.applied import ObjectState
from planner.control.carrying.clusters import Apis
from planner.control.carrying.objects import counted_object, pods_left
from planner.manifests import Change, Stage
from planner.manifests.script import drain_limit_s, timeout_s

__all__ = ["Awaited", "Wait", "is_over", "waits_of"]

_GRACE_S: Final = 600.0
_TAKES_UP_S: Final = 120.0
"""How long a scaler may take to pass a count on, s."""


class Awaited(StrEnum):
    """What a wait is for."""

    ASKED = "asked"
    READY = "ready"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Wait:
    """One thing that a wave waits for.

    Attributes:
        what: kind.
        change: of the object.
        limit_s: from the writes of the wave on, beside the grace period of pods that go, s.
    """

    what: Awaited
    change: Change
    limit_s: float

    @property
    def sentence(self) -> str:
        """What is awaited."""
        named, new = counted_object(self.change.target), self.change.new
        match self.what:
            case Awaited.ASKED:
                return f"the scaler of {named} asks for {new} replicas"
            case Awaited.READY:
                return f"{new} replicas of {named} are ready"
            case Awaited.GONE:
                return f"the pods of {named} beyond {new} replicas have left their accelerators"


def waits_of(stage: Stage, previous_s: float, drain_s: float) -> tuple[Wait, ...]:
    """Everything that a wave waits for.

    Args:
        stage: the wave.
        previous_s: duration of the wave before, which may still free accelerators, s.
        drain_s: time in which a draining replica ends its requests, s.
    """
    return tuple(_waits(stage, previous_s, drain_s))


def _waits(stage: Stage, previous_s: float, drain_s: float) -> Iterator[Wait]:
    changed = [change for change in stage.changes if change.old != change.new]
    for change in changed:
        if change.target.object.scaler in {"hpa", "keda"}:
            yield Wait(Awaited.ASKED, change, _TAKES_UP_S)
        if change.new > change.old:
            yield Wait(Awaited.READY, change, timeout_s(change, previous_s))
        else:
            yield Wait(Awaited.GONE, change, drain_limit_s(change, drain_s))
    keys = {change.target.key for change in changed}
    for change in stage.awaited:
        if change.target.key not in keys and change.new:
            yield Wait(Awaited.READY, change, timeout_s(change, previous_s))


def is_over(wait: Wait, state: ObjectState, apis: Apis) -> tuple[bool, float]:
    """Whether it is so, and the grace period that its limit grows by, s.

    Args:
        wait: for what.
        state: of the object, now.
        apis: asked for pods, where nothing else is missing.

    Raises:
        ClusterFault: pods could not be read.
    """
    target, new = wait.change.target, wait.change.new
    match wait.what:
        case Awaited.ASKED:
            return state.wanted == new, 0.0
        case Awaited.READY:
            return state.settled and state.ready >= new, 0.0
        case Awaited.GONE:
            if state.held > new or not state.settled:
                # Its pods need no look yet; nobody knows their grace period either, so the longest that is usual counts.
                return False, _GRACE_S
            pods, grace_s = pods_left(apis[target.cluster or ""], target)
            most = new * target.candidates[0].pods_per_replica
            return pods <= most, grace_s
