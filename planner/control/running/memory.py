"""What the loop remembers between two cycles, and over a restart where there is a folder for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from planner.control.analysis.identity import VariantRef
from planner.control.analysis.keeping import from_json, to_json
from planner.control.deciding.people_hands import Hands
from planner.control.deciding.people_nodes import Surge
from planner.control.deciding.state import DecidingState
from planner.control.running.arriving import Sent

__all__ = ["LoopMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMemory:
    """Between two cycles. The cluster says how many replicas there are; this says what was wished for and seen.

    Attributes:
        at_s: when it was written down, seconds of the epoch; 0: never.
        deciding: of whoever decides.
        hands: replica counts as they were, to notice what people change.
        surged: replicas that stand in for those on nodes that leave.
        sent: what was decided last, without that.
        ours: variants whose count nobody but us writes.
        woken: when variants were woken that have no replica yet, seconds of the epoch.
    """

    at_s: float = 0.0
    deciding: DecidingState = field(default_factory=DecidingState)
    hands: Hands = field(default_factory=Hands)
    surged: Mapping[VariantRef, Surge] = field(default_factory=dict)
    sent: Mapping[VariantRef, Sent] = field(default_factory=dict)
    ours: tuple[VariantRef, ...] = ()
    woken: Mapping[VariantRef, float] = field(default_factory=dict)

    def to_json(self) -> str:
        """As text, for :meth:`from_json`."""
        return json.dumps(to_json(self), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The memory that was written.

        Raises:
            ValueError: it is damaged, or of something else; begin with an empty one then.
        """
        try:
            raw = json.loads(text)
        except RecursionError as cause:
            raise ValueError("what was kept is nested too deeply") from cause
        return from_json(cls, raw)
