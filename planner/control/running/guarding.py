"""What is never done: a decision that nothing rests on. Where deciding breaks, replicas are held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from models.cycle_record import VariantDecision
from models.observation import Finding, Observation
from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.deciding.contract import Decided
from planner.control.deciding.waking import WOKEN
from planner.control.protocols import ClusterReading, Decision

__all__ = [
    "Footing",
    "as_they_are",
    "guarded",
    "held_after_failure",
    "held_as_decided",
    "held_too_late",
    "stay_awake",
    "with_conditions",
]

HELD: Final = "HeldUnseen"
NOT_COMPLETE: Final = "HeldIncomplete"
LATE: Final = "HeldTooLate"
FAILED: Final = "HeldAfterFailure"
_WOKEN_S: Final = 300.0


def held_after_failure(
    observation: Observation, last: Mapping[VariantRef, VariantDecision], cause: Exception
) -> Decided:
    """Every variant at what was decided last, else at what it has; the published safety net.

    Args:
        observation: as it was seen.
        last: decisions of the cycle before.
        cause: what was raised; its words are not shown, since they may hold what nobody may read.
    """
    message = f"deciding broke ({type(cause).__name__}); replicas are held"
    decisions = []
    for variant in observation.variants:
        known = last.get(ref_of(variant))
        desired = (known.desired if known is not None else None) or variant.wanted or 0
        decisions.append(Decision(variant=variant, desired=desired, reason=FAILED, message=message))
    finding = Finding(subject="controller", problem=message, remedy=_REMEDY)
    return Decided(decisions=tuple(decisions), findings=(finding,))


def held_as_decided(decided: Decided, cause: Exception) -> Decided:
    """Every variant at what it has: nobody could look again before something was to be changed."""
    message = f"looking again broke ({type(cause).__name__}); replicas are held"
    held = tuple(
        replace(each, desired=each.variant.wanted or 0, reason=FAILED, message=message, victims=())
        for each in decided.decisions
    )
    finding = Finding(subject="controller", problem=message, remedy=_REMEDY)
    return replace(decided, decisions=held, findings=(*decided.findings, finding))


_REMEDY: Final = (
    "a fault of the policy: other services may name another one meanwhile (rules.policy, overrides)"
)


def held_too_late(decided: Decided) -> Decided:
    """Every variant at what it has: what was decided rests on what may not be so any more."""
    message = "the cycle took too long, and what was decided may not fit any more"
    held = tuple(
        replace(each, desired=each.variant.wanted, reason=LATE, message=message, victims=())
        if each.variant.wanted is not None
        else each
        for each in decided.decisions
    )
    return replace(decided, decisions=held)


def stay_awake(
    decisions: Sequence[Decision], woken: Mapping[VariantRef, float], now_s: float
) -> tuple[Decision, ...]:
    """Decisions that do not put to sleep what was just woken and has no replica yet: whoever scales may take a while.

    Args:
        decisions: one for each variant.
        woken: when each was woken, seconds of the epoch.
        now_s: seconds of the epoch.
    """

    def awake(decision: Decision) -> Decision:
        since_s = woken.get(ref_of(decision.variant))
        if since_s is None or decision.desired or decision.variant.wanted != 0 or now_s - since_s > _WOKEN_S:
            return decision
        message = "it was woken, and its replica is on its way"
        return replace(decision, desired=1, reason=WOKEN, message=message)

    return tuple(map(awake, decisions))


@dataclass(frozen=True, slots=True)
class Footing:
    """What decisions rest on.

    Attributes:
        complete: every source answered.
        unseen: variants that are as they were seen before: their cluster did not answer.
        last: decisions of the cycle before.
    """

    complete: bool
    unseen: frozenset[VariantRef]
    last: Mapping[VariantRef, VariantDecision]


def guarded(decisions: Sequence[Decision], footing: Footing) -> tuple[Decision, ...]:
    """Decisions that nothing rests on are not made.

    What was not seen keeps what was decided last, and nothing is scaled in on half a picture.
    """
    return tuple(_guard(each, footing) for each in decisions)


def _guard(decision: Decision, footing: Footing) -> Decision:
    variant = decision.variant
    wanted, ref = variant.wanted, ref_of(variant)
    if wanted is None:
        return decision
    if ref in footing.unseen:
        known = footing.last.get(ref)
        kept = wanted if known is None or known.desired is None else known.desired
        message = "its cluster does not answer; what was decided last stays"
        return replace(decision, desired=kept, reason=HELD, message=message, victims=())
    if not footing.complete and decision.desired < wanted:
        message = "a source did not answer, and nothing is scaled in on half a picture"
        return replace(decision, desired=wanted, reason=NOT_COMPLETE, message=message, victims=())
    return decision


def as_they_are(decisions: Sequence[Decision], fresh: ClusterReading) -> tuple[Decision, ...]:
    """Decisions with pauses and holds as they are now; counts stay those that were decided on."""
    now = {ref_of(each): each for each in fresh.variants}

    def updated(decision: Decision) -> Decision:
        found = now.get(ref_of(decision.variant))
        if found is None or (found.paused, found.held) == (decision.variant.paused, decision.variant.held):
            return decision
        update = {"paused": found.paused, "held": found.held}
        return replace(decision, variant=decision.variant.model_copy(update=update))

    return tuple(map(updated, decisions))


def with_conditions(decision: Decision, decided: Decided) -> Decision:
    """A decision whose variant has the readiness gates that deciding found."""
    conditions = decided.conditions.get(ref_of(decision.variant))
    if conditions is None or conditions == decision.variant.conditions:
        return decision
    variant = decision.variant.model_copy(update={"conditions": conditions})
    return replace(decision, variant=variant)
