"""Compute, then look again: what was decided against what the clusters say just before somebody acts."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from models.observation import Finding, VariantObservation
from planner.control.analysis import ref_of
from planner.control.deciding.contract import Decided
from planner.control.deciding.makers import maker_of
from planner.control.deciding.room import Room
from planner.control.protocols import SHORT, ClusterReading, Decision

__all__ = ["EDITED", "GONE", "MOVED", "UNKNOWN", "revalidated"]

GONE: Final = "TargetNotFound"
MOVED: Final = "ReplicasMoved"
EDITED: Final = "Edited"
UNKNOWN: Final = "ClusterUnknown"
_PAUSED: Final = "Paused"
_RESIZING: Final = "Resizing"
_CONSTRAINED: Final = "ResourceConstrained"
_COMPARED: Final = (
    "model",
    "accelerator",
    "gpus",
    "role",
    "min_replicas",
    "max_replicas",
    "target",
    "pods_per_replica",
)


def revalidated(decided: Decided, fresh: ClusterReading) -> Decided:
    """The decisions that still hold; the others are held until the next cycle, each with its reason.

    Decisions carry the fresh observation of their variant, so that whoever acts writes against what there is. Growth is
    granted again from the accelerators of now: a node may have been cordoned since.
    """
    now = {ref_of(variant): variant for variant in fresh.variants}
    room = None
    if decided.constrained and fresh.inventory.complete and fresh.inventory.pools:
        room = Room.of(fresh.inventory.pools, fresh.inventory.quotas, fresh.variants, maker=maker_of)
    checked: list[Decision] = []
    findings = list(decided.findings)
    for decision in decided.decisions:
        looked = _looked_at(decision, now.get(ref_of(decision.variant)), complete=fresh.complete)
        if looked.reason in (MOVED, EDITED):
            findings.append(Finding(subject=f"variant {ref_of(decision.variant)}", problem=looked.message))
        checked.append(_granted(looked, room))
    return replace(decided, decisions=tuple(checked), findings=tuple(findings))


def _looked_at(decision: Decision, now: VariantObservation | None, *, complete: bool) -> Decision:
    """The decision with what there is now, or held for the first reason that there is."""
    before = decision.variant
    if now is None:
        why = (GONE, "its scaler is gone")
        if not complete:
            why = (UNKNOWN, "its cluster did not answer: nothing is written to it")
        return _held(decision, before, *why)
    against = _against(decision, now, complete=complete)
    return _held(decision, now, *against) if against is not None else replace(decision, variant=now)


def _against(decision: Decision, now: VariantObservation, *, complete: bool) -> tuple[str, str] | None:
    """Reason and sentence why a decision does not hold any more.

    A count on its way to what was decided is no surprise: whoever follows the gauge does so a while later.
    """
    before = decision.variant
    if now.wanted is None:
        return GONE, f"there is no {now.target.kind} {now.target.name} to scale any more"
    if before.wanted is None or decision.desired == before.wanted:
        return None
    edited = [name for name in _COMPARED if getattr(now, name) != getattr(before, name)]
    checks = (
        (now.paused, _PAUSED, "people asked that nothing is changed"),
        (
            now.resize is not None and now.resize.resizing_until_s is None,
            _RESIZING,
            "it changes its size by now",
        ),
        (
            not min(before.wanted, decision.desired) <= now.wanted <= max(before.wanted, decision.desired),
            MOVED,
            f"its replicas are {now.wanted} and were {before.wanted} when it was looked at: somebody moved them",
        ),
        (bool(edited), EDITED, f"{', '.join(edited)} changed since it was looked at"),
        (
            decision.desired < now.wanted and not complete,
            UNKNOWN,
            "the clusters did not answer in full: nothing is scaled in",
        ),
    )
    return next(((reason, message) for holds, reason, message in checks if holds), None)


def _held(decision: Decision, variant: VariantObservation, reason: str, message: str) -> Decision:
    kept = decision.desired if variant.wanted is None else variant.wanted
    facts = {**decision.facts, "decided": decision.desired}
    return replace(
        decision, variant=variant, desired=kept, reason=reason, message=message, victims=(), facts=facts
    )


def _granted(decision: Decision, room: Room | None) -> Decision:
    wanted = decision.variant.wanted
    if room is None or wanted is None or decision.desired <= wanted:
        return decision
    wish = decision.desired - wanted
    taken = room.take(decision.variant, wish)
    if taken.replicas >= wish:
        return decision
    short = wish - taken.replicas + int(decision.facts.get(SHORT, 0))
    message = f"there is room for {taken.replicas} of {wish} replicas more by now"
    reason = decision.reason if taken.replicas else _CONSTRAINED
    facts = {**decision.facts, SHORT: short, "decided": decision.desired}
    return replace(decision, desired=wanted + taken.replicas, reason=reason, message=message, facts=facts)
