"""How long replicas were seen to take from order to ready; what was never seen counts as five minutes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from models.observation import VariantObservation
from planner.control.analysis import VariantRef, ref_of

__all__ = ["FIRST_S", "StartTimes"]

FIRST_S: Final = 300.0
"""Of a variant that was never seen to start: an image, weights and graphs of a large model."""
_LONGEST_S: Final = 3600.0
"""What takes longer waits for a node or is broken, and says nothing of a start."""


@dataclass(slots=True)
class StartTimes:
    """Watches variants, cycle after cycle."""

    _begun: dict[VariantRef, tuple[float, int]] = field(default_factory=dict)
    _took: dict[VariantRef, float] = field(default_factory=dict)

    def note(self, variants: Iterable[VariantObservation], now_s: float) -> None:
        """Take in what is pending and ready now; variants that are not among them are forgotten."""
        begun: dict[VariantRef, tuple[float, int]] = {}
        took: dict[VariantRef, float] = {}
        for one in variants:
            ref = ref_of(one)
            since_s, ready = self._begun.get(ref, (now_s, one.ready))
            if ref in self._took:
                took[ref] = self._took[ref]
            if ref in self._begun and one.ready > ready:
                seen_s = now_s - since_s
                if 0 < seen_s <= _LONGEST_S:
                    # Half and half: one slow pull of an image is forgotten after some starts.
                    took[ref] = (took.get(ref, seen_s) + seen_s) / 2
                since_s = now_s
            if one.pending > 0:
                begun[ref] = (since_s, one.ready)
        self._begun, self._took = begun, took

    def slowest_s(self, refs: Iterable[VariantRef]) -> float:
        """Of these variants, s; those that were never seen to start count only where none was."""
        return max((self._took[ref] for ref in refs if ref in self._took), default=FIRST_S)
