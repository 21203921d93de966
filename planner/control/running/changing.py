"""What of a cycle is news: a count that changes, or a state that somebody should know of; damping is neither."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from models.cycle_record import VariantDecision
from planner.control.analysis.identity import VariantRef
from planner.control.deciding.people_nodes import MOVING
from planner.control.deciding.rules import Code
from planner.control.deciding.waking import WOKEN

__all__ = ["ARRIVING", "ROUTINE", "changed_variants", "is_told"]

ARRIVING: Final = "Arriving"
"""What was decided a moment ago is not there yet."""
ROUTINE: Final = frozenset(
    {
        Code.STEADY, Code.KEPT_ONE, Code.MINIMUM, Code.MAXIMUM, Code.DEAD_BAND, Code.STABILIZED, Code.NOT_SAFE,
        Code.REPLACEMENT, Code.STEP, ARRIVING,
    }
)  # fmt: skip
"""Reasons for staying that come and go with the noise of the load."""
_MOVING: Final = frozenset({Code.SCALED_UP, Code.SCALED_DOWN, Code.SCALED_TO_ZERO, WOKEN, MOVING})


def changed_variants(
    before: Mapping[VariantRef, VariantDecision], after: Mapping[VariantRef, VariantDecision]
) -> frozenset[VariantRef]:
    """Variants of which a record is written: another count is decided, or they came into a state or left one.

    Args:
        before: decisions of the cycle before.
        after: decisions of this cycle.
    """
    return frozenset(ref for ref, row in after.items() if _is_changed(before.get(ref), row))


def is_told(known: VariantDecision | None, row: VariantDecision) -> bool:
    """Whether an event is written: a count is to change that was not to before, or a state began.

    Args:
        known: decision of the cycle before; None: the variant is new.
        row: decision of this cycle.
    """
    if row.changes and (known is None or known.desired != row.desired or known.before != row.before):
        return True
    return _is_state(row.reason) and (known is None or known.reason != row.reason)


def _is_changed(known: VariantDecision | None, row: VariantDecision) -> bool:
    if known is None:
        return row.changes or _is_state(row.reason)
    states = _is_state(known.reason) or _is_state(row.reason)
    return known.desired != row.desired or (states and known.reason != row.reason)


def _is_state(reason: str) -> bool:
    """Whether a reason is one that lasts and that somebody should know of, e.g. MetricsUnavailable."""
    return reason not in ROUTINE and reason not in _MOVING
