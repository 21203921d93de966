"""What deciding remembers from cycle to cycle: one frozen value, handed in and out, that a restart reads again.

The cluster stays the truth: nothing here says how many replicas there are, only what was wished for and seen before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from planner.control.analysis.identity import VariantRef
from planner.control.analysis.keeping import from_json, to_json
from planner.control.analysis.memory import AnalysisMemory

__all__ = ["DecidingState", "Wish"]


class Wish(NamedTuple):
    """Replicas that a policy wished for, and when (seconds of the epoch)."""

    at_s: float
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingState:
    """Between two cycles.

    Attributes:
        analysis: what analyzers remember.
        wishes: of the policies, newest last, as far as the windows of stabilization reach.
        decided: replicas that were last decided, by variant.
        warm: what the last solve left, by policy; it is not kept over a restart, only faster to find with it.
    """

    analysis: AnalysisMemory = field(default_factory=AnalysisMemory)
    wishes: Mapping[VariantRef, tuple[Wish, ...]] = field(default_factory=dict)
    decided: Mapping[VariantRef, int] = field(default_factory=dict)
    warm: Mapping[str, object] = field(
        default_factory=dict, compare=False, repr=False, metadata={"kept": False}
    )

    def to_json(self) -> str:
        """As text, for :meth:`from_json`."""
        return json.dumps(to_json(self), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The state that was written.

        Raises:
            ValueError: it is damaged, or of something else; start with ``DecidingState()`` then.
        """
        return from_json(cls, json.loads(text))
