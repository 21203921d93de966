"""How a scaler is held at a count, and what it had before: the annotations, their meaning, and the fields of each kind.

An HPA is held by equal bounds, a ScaledObject by KEDA's own annotation, which takes 0 and leaves bounds and triggers as
they are. Beside that stands what was there before and the count that we hold it at: where this is not what the scaler
says any more, people changed it, and it is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from planner.control.actuators.writing import Wanted
from planner.control.cluster.reading import Object, annotations_of, at, count_at, items_of, text_at
from planner.control.discovery.scalers import PINNED, held_bounds
from planner.control.protocols import OutcomeCode
from planner.manifests.orders import FORMER_BOUNDS, FORMER_PAUSE, NOT_PAUSED, PAUSED

__all__ = [
    "FORMER_BOUNDS",
    "FORMER_PAUSE",
    "PAUSED",
    "PINNED",
    "Bounds",
    "freed_hpa",
    "freed_keda",
    "held_hpa",
    "held_keda",
]

_PLAN: Final = "is held by a plan (annotation {}): 'fleetplan commands --undo' gives it back"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Minimum and maximum of an HPA as people set them."""

    least: int
    most: int

    def __str__(self) -> str:
        """As the record has them: ``1:8``."""
        return f"{self.least}:{self.most}"


def _bounds(found: Object) -> tuple[Bounds, bool]:
    """The bounds as people set them, and whether the scaler is held by us."""
    held = held_bounds(found)
    if held is not None:
        return Bounds(*held), True
    least, most = count_at(found, "spec", "minReplicas"), count_at(found, "spec", "maxReplicas")
    return Bounds(1 if least is None else least, most or 1), False


def held_hpa(found: Object, count: int, now: int) -> Wanted:
    """The fields that hold an HPA at a count.

    The API server refuses a maximum of 0. An HPA whose minimum is at least 1 leaves a target with 0 replicas alone, so
    that is how one rests: it is held at the count before.

    Args:
        found: the HPA.
        count: replicas.
        now: that its target has.
    """
    bounds, ours = _bounds(found)
    notes = annotations_of(found)
    if not ours and FORMER_BOUNDS in notes and PINNED not in notes:
        return Wanted(code=OutcomeCode.LEFT, message=f"the HPA {_PLAN.format(FORMER_BOUNDS)}")
    at = count or max(now, 1)
    record = {FORMER_BOUNDS: str(bounds), PINNED: str(at)}
    return Wanted(
        fields={"metadata": {"annotations": record}, "spec": {"minReplicas": at, "maxReplicas": at}}
    )


def set_back_by(found: Object, count: int, now: int) -> str:
    """Who set the bounds of an HPA back although it is held at just this count already; empty: nobody did."""
    notes, (_, ours) = annotations_of(found), _bounds(found)
    if ours or notes.get(PINNED) != str(count or max(now, 1)):
        return ""
    entries = [
        (text_at(each, "time", longest=40), text_at(each, "manager", longest=128))
        for each in items_of(at(found, "metadata", "managedFields"))
        if at(each, "fieldsV1", "f:spec", "f:maxReplicas") is not None
    ]
    return max(entries, default=("", ""))[1] or "somebody"


def freed_hpa(found: Object) -> Wanted:
    """The fields that give an HPA its bounds back; as people changed them since, where they did."""
    bounds, _ = _bounds(found)
    if PINNED not in annotations_of(found):
        return Wanted()
    spec = {"minReplicas": bounds.least, "maxReplicas": bounds.most}
    notes = {FORMER_BOUNDS: None, PINNED: None}
    return Wanted(fields={"metadata": {"annotations": notes}, "spec": spec}, merge=True)


def held_keda(found: Object, count: int) -> Wanted:
    """The annotations that hold a ScaledObject at a count.

    Args:
        found: the ScaledObject.
        count: replicas.
    """
    notes = annotations_of(found)
    pause = notes.get(PAUSED)
    if pause is not None and pause != notes.get(PINNED):
        by = _PLAN.format(FORMER_PAUSE) if FORMER_PAUSE in notes else "was paused by people"
        return Wanted(code=OutcomeCode.LEFT, message=f"the ScaledObject {by}")
    wanted: Mapping[str, Any] = {PAUSED: str(count), PINNED: str(count), FORMER_PAUSE: NOT_PAUSED}
    return Wanted(fields={"metadata": {"annotations": wanted}})


def freed_keda(found: Object) -> Wanted:
    """The annotations that go; a pause stays that is not ours."""
    notes = annotations_of(found)
    if PINNED not in notes:
        return Wanted()
    ours = notes.get(PAUSED) == notes[PINNED]
    gone = dict.fromkeys((PAUSED, PINNED, FORMER_PAUSE) if ours else (PINNED, FORMER_PAUSE))
    return Wanted(fields={"metadata": {"annotations": gone}}, merge=True)
