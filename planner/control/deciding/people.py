"""People come first: what is paused, set by hand or outside of its hours is held, whatever was decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from models.controller import ControllerSettings
from models.observation import VariantObservation
from models.people import Forbids
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.deciding.people_hours import Hours, hours_of
from planner.control.protocols import Decision

__all__ = ["FROZEN", "HELD_BY_PEOPLE", "OUTSIDE_HOURS", "PAUSED_BY_PEOPLE", "PeopleSay", "respected"]

PAUSED_BY_PEOPLE: Final = "Paused"
HELD_BY_PEOPLE: Final = "HeldByPeople"
OUTSIDE_HOURS: Final = "OutsideChangeWindow"
FROZEN: Final = "Frozen"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeopleSay:
    """What people want, beside what stands in the cluster.

    Attributes:
        settings: with pauses, change windows and freezes.
        now_s: seconds of the epoch.
        hands: variants whose replicas people set, with who it was, where no annotation says so yet.
    """

    settings: ControllerSettings
    now_s: float
    hands: Mapping[VariantRef, str] = field(default_factory=dict)


def respected(decisions: Sequence[Decision], say: PeopleSay) -> tuple[Decision, ...]:
    """The decisions as people let them be; each that is held has the replicas of now and says who holds it.

    Args:
        decisions: one for each variant.
        say: what people want.
    """
    hours: dict[tuple[object, ...], Hours] = {}
    return tuple(_respected(each, say, hours) for each in decisions)


def _respected(decision: Decision, say: PeopleSay, hours: dict[tuple[object, ...], Hours]) -> Decision:
    variant = decision.variant
    if variant.wanted is None:
        return decision
    who = _paused_by(variant, say)
    if who:
        return _held(decision, PAUSED_BY_PEOPLE, f"paused by {who}")
    hand = variant.held or say.hands.get(ref_of(variant), "")
    if hand and say.settings.respect_manual:
        return _held(decision, HELD_BY_PEOPLE, hand)
    if decision.desired == variant.wanted:
        return decision
    found = _hours(variant, say, hours)
    if found.forbids is None or (found.forbids is Forbids.SCALE_IN and decision.desired > variant.wanted):
        return decision
    return _held(decision, FROZEN if found.frozen else OUTSIDE_HOURS, found.message)


def _paused_by(variant: VariantObservation, say: PeopleSay) -> str:
    """Who paused a variant; empty: nobody."""
    settings = say.settings
    if settings.paused:
        return "the setting paused"
    if variant.paused:
        return "an annotation of scaler, workload or namespace"
    if settings.rules.paused and not settings.overrides:
        return "the setting rules.paused"
    return "the setting paused of its rules" if settings.rules_of(variant).paused else ""


def _hours(variant: VariantObservation, say: PeopleSay, known: dict[tuple[object, ...], Hours]) -> Hours:
    """Hours of a variant; those of equal ones are worked out once."""
    settings = say.settings
    if not settings.change_windows and not settings.freezes:
        return Hours()
    key = (variant.cluster, variant.namespace, variant.model, variant.name, variant.role, variant.accelerator)
    if key not in known:
        known[key] = hours_of(variant, settings, say.now_s)
    return known[key]


def _held(decision: Decision, reason: str, message: str) -> Decision:
    wanted = decision.variant.wanted or 0
    facts = {**decision.facts, "decided_replicas": decision.desired, "decided_reason": decision.reason}
    return replace(decision, desired=wanted, reason=reason, message=message, victims=(), facts=facts)
