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

_MOST: Final = 10_000


@dataclass(slots=True)
class StartTimes:
    """Watches variants, cycle after cycle."""

    _begun: dict[VariantRef, tuple[float, int]] = field(default_factory=dict)
    _took: dict[VariantRef, float] = field(default_factory=dict)

    def note(self, variants: Iterable[VariantObservation], now_s: float) -> None:
        """Take in what is pending and ready now; variants that are not seen for a while are not forgotten for that."""
        for one in variants:
            ref = ref_of(one)
            since_s, ready = self._begun.pop(ref, (now_s, one.ready))
            took_s = now_s - since_s
            if one.ready > ready:
                if 0 < took_s <= _LONGEST_S:
                    # Half and half: one slow pull of an image is forgotten after some starts.
                    self._took[ref] = (self._took.pop(ref, took_s) + took_s) / 2
                since_s = now_s
            if one.pending > 0:
                self._begun[ref] = (since_s, one.ready)
        for kept in (self._begun, self._took):
            while len(kept) > _MOST:
                del kept[next(iter(kept))]

    def slowest_s(self, refs: Iterable[VariantRef]) -> float:
        """Of these variants, s; those that were never seen to start count only where none was."""
        return max((self._took[ref] for ref in refs if ref in self._took), default=FIRST_S)
