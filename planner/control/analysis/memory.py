"""What analysis remembers from cycle to cycle, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.control.analysis.identity import VariantRef
from planner.saturation.memory import TokenMemory
from planner.saturation.promises import LearningMemory
from planner.saturation.throughput import PaceMemory

__all__ = ["AnalysisMemory", "Quiet", "Voice"]


class Voice(NamedTuple):
    """One analyzer's word on one service (``namespace/model``)."""

    service: str
    analyzer: str


class Quiet(NamedTuple):
    """Since when a service shows no sign of something, seconds of the epoch.

    Attributes:
        unused_s: nobody used it: nothing arrived, ran or waited; None: it is in use, or not known.
        still_s: nothing arrived and nothing was generated, whatever queues say; None: otherwise, or not known.
        replicas: that were wanted when it was last looked at.
    """

    unused_s: float | None = None
    still_s: float | None = None
    replicas: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisMemory:
    """Of all services.

    Attributes:
        tokens: of the token analyzer, by model: what is served is alike in every namespace.
        paces: of the throughput analyzer, by service.
        learning: of the queueing analyzer, by service.
        informative_s: when an analyzer last had something to say.
        quiet: services that show no sign of use.
        seen_s: when metrics of a variant were last fresh.
    """

    tokens: Mapping[str, TokenMemory] = field(default_factory=dict)
    paces: Mapping[str, PaceMemory] = field(default_factory=dict)
    learning: Mapping[str, LearningMemory] = field(default_factory=dict)
    informative_s: Mapping[Voice, float] = field(default_factory=dict)
    quiet: Mapping[str, Quiet] = field(default_factory=dict)
    seen_s: Mapping[VariantRef, float] = field(default_factory=dict)
