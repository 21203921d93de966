"""Parts of a cycle whose wall time is taken: a source of metrics, and policies, which a registry opens by name."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from models.observation import VariantObservation
from planner.clock import Clock
from planner.control.analysis import Voices
from planner.control.deciding.policy import POLICIES, Policy, PolicyFactory, Proposal, Question, open_policy
from planner.control.protocols import MetricsReading, MetricsSource
from planner.registry import Registry

__all__ = ["SECONDS", "TIMED_POLICIES", "Seconds", "TimedSource"]


@dataclass
class Seconds:
    """Wall time by part, s, and the last proposal of a policy."""

    by_part: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    proposal: Proposal | None = None

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Take the time of what is done inside."""
        start_s = time.perf_counter()
        try:
            yield
        finally:
            self.by_part[part] += time.perf_counter() - start_s

    def taken(self) -> Mapping[str, float]:
        """What was taken so far; it starts anew."""
        found, self.by_part = self.by_part, defaultdict(float)
        return found


SECONDS: Final = Seconds()
"""Of this process: whoever opens a policy by name can hand nothing in."""


class TimedSource:
    """A source of metrics whose readings are timed."""

    def __init__(self, source: MetricsSource) -> None:
        self._source = source

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """See :class:`planner.control.protocols.MetricsSource`."""
        with SECONDS.of("receive"):
            return self._source.read(variants, now_s)


@dataclass(frozen=True)
class _TimedPolicy:
    policy: Policy

    @property
    def voices(self) -> Voices:
        return self.policy.voices

    def propose(self, question: Question) -> Proposal:
        with SECONDS.of("plan"):
            SECONDS.proposal = self.policy.propose(question)
        return SECONDS.proposal


def _timed(name: str, options: Mapping[str, object], clock: Clock) -> Policy:
    return _TimedPolicy(open_policy(name, options, clock, POLICIES))


planner = partial(_timed, "planner")
tokens = partial(_timed, "wva-v2")
percentages = partial(_timed, "wva")

TIMED_POLICIES: Final[Registry[PolicyFactory]] = Registry(
    "policy",
    {"planner": f"{__name__}:planner", "wva-v2": f"{__name__}:tokens", "wva": f"{__name__}:percentages"},
)
"""Policies of these names, timed."""
