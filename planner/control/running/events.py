"""Kubernetes events about variants: one when a decision or its reason changes, and never the same again each cycle."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from models.cycle_record import VariantDecision
from models.observation import Finding, VariantObservation
from planner.clock import Clock
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.cluster import Api, ClusterFault, Kind, Trouble
from planner.control.cluster.kinds import (
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    WORKLOADS,
)
from planner.control.cluster.reading import at, text_at
from planner.control.running.metering import Meters

__all__ = ["Events"]

_SCALERS: Final[Mapping[str, Kind]] = {
    "hpa": HORIZONTAL_POD_AUTOSCALERS,
    "keda": SCALED_OBJECTS,
    "variantautoscaling": VARIANT_AUTOSCALINGS,
}
_MOST_AT_ONCE: Final = 50
_SAME_S: Final = 3600.0
"""An event of the same reason is counted on for so long; the API server forgets events after an hour."""
_MOST_KNOWN: Final = 20_000
_WARNINGS: Final = ("Metrics", "Failed", "Refused", "Unavailable", "Constrained", "NotFound")
_LONGEST: Final = 1000
_AWAY: Final = frozenset({Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.BUSY, Trouble.UNAUTHENTICATED})


@dataclass(slots=True)
class _Known:
    """An event that was written.

    Attributes:
        name: of the object.
        count: how often.
        until_s: until when it is counted on, s of our clock.
    """

    name: str
    count: int
    until_s: float


class Events:
    """Writes events; one that fails changes nothing else.

    Args:
        apis: of the clusters, by name.
        clock: for times.
        who: the controller.
        meters: count them.
    """

    def __init__(self, apis: Mapping[str | None, Api], clock: Clock, *, who: str, meters: Meters) -> None:
        self._apis = apis
        self._clock = clock
        self._who = who
        self._meters = meters
        self._known: dict[tuple[VariantRef, str], _Known] = {}
        self._uids: dict[VariantRef, str] = {}

    def tell(self, changed: Iterable[tuple[VariantObservation, VariantDecision]]) -> tuple[Finding, ...]:
        """Write an event for each of these; what cannot be written is one finding for each cluster.

        Args:
            changed: variants whose decision or reason is another one than in the cycle before.
        """
        faults: dict[str | None, ClusterFault] = {}
        for number, (variant, decision) in enumerate(changed):
            api = self._api(variant)
            if number >= _MOST_AT_ONCE or api is None or self._gave_up(faults.get(variant.cluster)):
                self._meters.count("events_total", result="dropped")
                continue
            try:
                self._write(api, variant, decision)
                self._meters.count("events_total", result="written")
            except ClusterFault as fault:
                faults[variant.cluster] = fault
                self._meters.count("events_total", result="failed")
        return tuple(
            Finding(
                subject=f"events of cluster {name}" if name else "events",
                problem=fault.message[:1000],
                remedy=fault.remedy,
            )
            for name, fault in faults.items()
        )

    @staticmethod
    def _gave_up(fault: ClusterFault | None) -> bool:
        """A cluster that is away, or denies events, is not asked for each of them."""
        return fault is not None and fault.trouble in _AWAY | {Trouble.DENIED}

    def _api(self, variant: VariantObservation) -> Api | None:
        found = self._apis.get(variant.cluster)
        return next(iter(self._apis.values())) if found is None and len(self._apis) == 1 else found

    def _write(self, api: Api, variant: VariantObservation, decision: VariantDecision) -> None:
        ref, now_s = ref_of(variant), self._clock.monotonic_s()
        known = self._known.get((ref, decision.reason))
        stamp = _stamp(self._clock.unix_s())
        message = _message(decision)
        if known is not None and now_s < known.until_s:
            change = {"count": known.count + 1, "lastTimestamp": stamp, "message": message}
            try:
                api.patch(EVENTS, variant.namespace, known.name, change)
            except ClusterFault as fault:
                if fault.trouble is not Trouble.NOT_FOUND:
                    raise
            else:
                known.count += 1
                known.until_s = now_s + _SAME_S
                return
        kind, name = _scaler(variant)
        made = self._made(variant, decision, message, stamp) | {
            "involvedObject": {
                "apiVersion": kind.api_version(api.version_of(kind)), "kind": kind.name,
                "namespace": variant.namespace, "name": name, "uid": self._uid(api, kind, ref, name),
            }
        }  # fmt: skip
        api.create(EVENTS, variant.namespace, made)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[ref, decision.reason] = _Known(made["metadata"]["name"], 1, now_s + _SAME_S)

    def _made(
        self, variant: VariantObservation, decision: VariantDecision, message: str, stamp: str
    ) -> dict[str, Any]:
        unique = f"{self._who}/{variant.cluster}/{variant.name}/{decision.reason}/{self._clock.unix_s():.6f}"
        name = f"{variant.name[:200]}.{hashlib.sha256(unique.encode('utf-8', 'replace')).hexdigest()[:16]}"
        return {
            "metadata": {"name": name},
            "reason": decision.reason[:128],
            "message": message,
            "type": "Warning" if any(word in decision.reason for word in _WARNINGS) else "Normal",
            "source": {"component": "fleetplan"},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }

    def _uid(self, api: Api, kind: Kind, ref: VariantRef, name: str) -> str:
        """``kubectl describe`` finds events by it; without it they are still listed."""
        if ref not in self._uids:
            try:
                found = api.find(kind, ref.namespace, name)
            except ClusterFault as fault:
                if fault.trouble in _AWAY:
                    raise
                found = None
            self._uids[ref] = text_at(at(found, "metadata"), "uid")
        return self._uids[ref]


def _scaler(variant: VariantObservation) -> tuple[Kind, str]:
    kind = _SCALERS.get(variant.target.scaler)
    if kind is None:
        return WORKLOADS[variant.target.kind], variant.target.name
    return kind, variant.target.scaler_name or variant.name


def _message(decision: VariantDecision) -> str:
    before = "no target" if decision.before is None else str(decision.before)
    counts = f"{before} → {decision.desired}" if decision.changes else f"held at {before}"
    return f"{counts}: {decision.message or decision.reason}"[:_LONGEST]


def _stamp(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
