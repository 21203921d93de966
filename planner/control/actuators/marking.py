"""What stands on a pod that is on its way out: written there, read from there, and taken away without a trace."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from planner.control.actuators.draining import Mark, Phase
from planner.control.actuators.routing import OUT, SERVING
from planner.control.cluster.reading import (
    Object,
    annotations_of,
    at,
    items_of,
    labels_of,
    text_at,
    version_of,
)
from planner.control.discovery.pods import DRAINING

__all__ = [
    "DRAIN",
    "DRAINING",
    "SPARED",
    "Kept",
    "gate_of",
    "has_gate",
    "is_spared_until_s",
    "kept_of",
    "marked",
    "opened",
    "restored",
    "settled",
    "shut",
]

DRAIN: Final = "fleetplan.dev/drain"
"""Annotation of such a pod: since when, how far, whose, and what its labels and its cost were."""
SPARED: Final = "fleetplan.dev/drain-spared-until"
"""Annotation of a pod that was given back: not tried again before, seconds of the epoch."""
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_COSTS: Final = {Phase.DRAINING: "-2147483646", Phase.DRAINED: "-2147483647"}
"""Lower than anybody sets it: whoever is drained goes before whoever is not yet."""
_LONGEST: Final = 8192
_MOST_LABELS: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the annotation of a pod says.

    Attributes:
        mark: how far it is.
        variant: whose it is, ``namespace/name``.
        labels: as they were, by key; None: there was none.
        cost: as it was; None: there was none.
    """

    mark: Mark
    variant: str
    labels: Mapping[str, str | None]
    cost: str | None

    def text(self) -> str:
        """As the annotation holds it."""
        held = {
            "since": self.mark.since_s, "phase": str(self.mark.phase), "variant": self.variant,
            "labels": dict(self.labels), "cost": self.cost,
        }  # fmt: skip
        return json.dumps(held, sort_keys=True)


def kept_of(pod: Object) -> Kept | None:
    """What a pod says of its way out; None: it is not on it, or nobody can read what it says."""
    text = annotations_of(pod).get(DRAIN, "")
    try:
        found = json.loads(text) if 0 < len(text) <= _LONGEST else None
    except (ValueError, RecursionError):
        found = None
    since_s, labels, cost = at(found, "since"), at(found, "labels"), at(found, "cost")
    variant = text_at(found, "variant")
    if isinstance(since_s, bool) or not isinstance(since_s, int | float) or not math.isfinite(since_s):
        return None
    if not variant:
        return None
    known = labels if isinstance(labels, dict) and len(labels) <= _MOST_LABELS else {}
    return Kept(
        mark=Mark(max(0.0, float(since_s)), Phase.DRAINED if at(found, "phase") == Phase.DRAINED else Phase.DRAINING),
        variant=variant,
        labels={str(key): each for key, each in known.items() if each is None or isinstance(each, str)},
        cost=cost if isinstance(cost, str) else None,
    )  # fmt: skip


def is_spared_until_s(pod: Object) -> float:
    """Until when a pod is not tried again, seconds of the epoch."""
    try:
        until_s = float(annotations_of(pod).get(SPARED, "0")[:40])
    except ValueError:
        return 0.0
    return until_s if math.isfinite(until_s) else 0.0


def marked(pod: Object, template: Mapping[str, str], keys: Sequence[str], kept: Kept) -> dict[str, Any]:
    """The change that begins the way out of a pod.

    Args:
        pod: as it is.
        template: labels that its workload gives its pods, for those that were changed before.
        keys: labels that take it out of routing.
        kept: since when and whose; labels and cost are filled in.
    """
    labels = labels_of(pod)
    former = {key: template.get(key) if labels.get(key) == OUT else labels.get(key) for key in keys}
    cost = annotations_of(pod).get(COST)
    whole = Kept(
        mark=kept.mark, variant=kept.variant, labels=former, cost=None if cost in _COSTS.values() else cost
    )
    return _change(
        pod, labels={**dict.fromkeys(keys, OUT), DRAINING: "true"},
        annotations={DRAIN: whole.text(), COST: _COSTS[kept.mark.phase], SPARED: None},
    )  # fmt: skip


def settled(pod: Object, kept: Kept) -> dict[str, Any]:
    """The change that makes a pod the first victim of all."""
    done = Kept(
        mark=Mark(kept.mark.since_s, Phase.DRAINED), variant=kept.variant, labels=kept.labels, cost=kept.cost
    )
    return _change(pod, labels={}, annotations={DRAIN: done.text(), COST: _COSTS[Phase.DRAINED]})


def restored(
    pod: Object, template: Mapping[str, str], *, spared_until_s: float | None = None
) -> dict[str, Any]:
    """The change that brings a pod back as it was.

    Args:
        pod: as it is.
        template: labels that its workload gives its pods, where nobody can read what they were.
        spared_until_s: not tried again before, seconds of the epoch; None: it may be.
    """
    kept, labels = kept_of(pod), labels_of(pod)
    spoiled = {key: template.get(key) for key, value in labels.items() if value == OUT}
    former = (
        spoiled
        if kept is None
        else {key: each for key, each in kept.labels.items() if labels.get(key) == OUT}
    )
    cost = annotations_of(pod).get(COST)
    annotations: dict[str, str | None] = {DRAIN: None}
    if cost in _COSTS.values():
        annotations[COST] = None if kept is None else kept.cost
    if spared_until_s is not None:
        annotations[SPARED] = f"{spared_until_s:.0f}"
    return _change(pod, labels={**spoiled, **former, DRAINING: None}, annotations=annotations)


def has_gate(pod: Object) -> bool:
    """Whether a pod is ready only while our readiness gate is open."""
    gates = items_of(at(pod, "spec", "readinessGates"))
    return any(text_at(each, "conditionType") == SERVING for each in gates)


def gate_of(pod: Object) -> bool | None:
    """Whether our gate is open; None: nobody said so far, which counts as shut."""
    for each in items_of(at(pod, "status", "conditions")):
        if text_at(each, "type") == SERVING:
            return text_at(each, "status") == "True"
    return None


def shut(pod: Object, now: str) -> dict[str, Any]:
    """The change of the status that makes a pod not ready."""
    return _gated(pod, now, "False", "Draining")


def opened(pod: Object, now: str) -> dict[str, Any]:
    """The change of the status that lets a pod be ready."""
    return _gated(pod, now, "True", "Serving")


def _gated(pod: Object, now: str, status: str, reason: str) -> dict[str, Any]:
    others = [each for each in items_of(at(pod, "status", "conditions")) if text_at(each, "type") != SERVING]
    ours = {"type": SERVING, "status": status, "reason": reason, "lastTransitionTime": now}
    return {"metadata": version_of(pod), "status": {"conditions": [*others, ours]}}


def _change(
    pod: Object, *, labels: Mapping[str, str | None], annotations: Mapping[str, str | None]
) -> dict[str, Any]:
    return {"metadata": {**version_of(pod), "labels": dict(labels), "annotations": dict(annotations)}}
