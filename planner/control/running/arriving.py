"""Decisions on their way: whoever follows the gauge does so a moment later, and what was decided is not taken back meanwhile.

A policy that finds nothing to change holds the count that it sees. Where an HPA has not followed yet that is the count of
before: the gauge would go back to it, the HPA follow that, and both chase one another for ever.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from planner.control.analysis.identity import VariantRef, ref_of
from planner.control.protocols import Decision
from planner.control.running.changing import ARRIVING, ROUTINE

__all__ = ["Sent", "not_taken_back", "sent_after"]

_LONGEST_S: Final = 120.0
"""An HPA looks every 15 s, and the gauge may be scraped every minute; what is not followed by then never will be."""


class Sent(NamedTuple):
    """A count that was decided, without what only stands in for leaving nodes, and when (seconds of the epoch)."""

    replicas: int
    at_s: float


def not_taken_back(
    decisions: Sequence[Decision], sent: Mapping[VariantRef, Sent], now_s: float
) -> tuple[Decision, ...]:
    """Decisions that let growth arrive that was decided a moment ago; scale-in that is not wished for any more ends.

    Args:
        decisions: one for each variant, as policies and rules have them.
        sent: what was decided last.
        now_s: seconds of the epoch.
    """
    return tuple(_kept(each, sent.get(ref_of(each.variant)), now_s) for each in decisions)


def sent_after(
    decisions: Sequence[Decision],
    before: Mapping[VariantRef, Sent],
    surplus: Mapping[VariantRef, int],
    now_s: float,
) -> dict[VariantRef, Sent]:
    """What is on its way after these decisions; the time of one that is as before stays.

    Args:
        decisions: as they were carried out.
        before: the same after the last cycle.
        surplus: replicas of each that only stand in for leaving nodes.
        now_s: seconds of the epoch.
    """
    found = {}
    for each in decisions:
        ref, wanted = ref_of(each.variant), each.variant.wanted
        count = each.desired - surplus.get(ref, 0)
        known = before.get(ref)
        if wanted is not None:
            found[ref] = known if known is not None and known.replicas == count else Sent(count, now_s)
    return found


def _kept(decision: Decision, sent: Sent | None, now_s: float) -> Decision:
    wanted = decision.variant.wanted
    if sent is None or wanted is None or decision.desired != wanted or decision.reason not in ROUTINE:
        return decision
    ago_s = now_s - sent.at_s
    most = decision.variant.max_replicas
    count = sent.replicas if most is None else min(sent.replicas, most)
    if count <= wanted or not 0 <= ago_s <= _LONGEST_S:
        return decision
    message = f"{count} were decided {ago_s:.0f} s ago, and whoever scales has not followed yet"
    return replace(decision, desired=count, reason=ARRIVING, message=message)
