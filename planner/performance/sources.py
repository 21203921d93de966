"""Sources by name, and the chain that a scenario asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from models.performance import MeasuredPoint, PerformanceChoice
from models.queueing_profile import QueueingProfile
from planner.errors import ConfigurationError, Finding, nearest
from planner.performance.protocol import Knowledge, PerformanceSource, SourceFactory
from planner.registry import Registry

__all__ = ["SOURCES", "chosen_sources"]

SOURCES: Final[Registry[SourceFactory]] = Registry(
    "performance",
    {
        "aiconfigurator": "planner.performance.aiconfigurator.source:from_knowledge",
        "measured": "planner.performance.measured:MeasuredTables",
        "queueing": "planner.performance.queueing.source:from_knowledge",
        "roofline": "planner.performance.roofline.source:Roofline",
    },
)
"""What ships; others install theirs in the entry-point group ``fleetplan.performance``."""


def chosen_sources(
    choice: PerformanceChoice,
    profiles: Mapping[str, tuple[MeasuredPoint, ...]],
    *,
    queueing: tuple[QueueingProfile, ...] = (),
) -> tuple[PerformanceSource, ...]:
    """The sources that a scenario asks for, in its order.

    Raises:
        ConfigurationError: a source or a profile table has no such name, or a source needs what is not
            installed; every finding at once.
    """
    findings = []
    if any(name not in SOURCES for name in choice.sources):
        findings += _unknown("source", choice.sources, SOURCES.names())
    findings += _unknown("profile", choice.profiles, sorted(profiles))
    if findings:
        raise ConfigurationError.from_findings(findings)
    allowed = {
        name: rows for name, rows in profiles.items() if not choice.profiles or name in choice.profiles
    }
    knowledge = Knowledge(choice, allowed, queueing)
    return tuple(SOURCES.get(name)(knowledge) for name in choice.sources)


def _unknown(noun: str, names: Sequence[str], known: Sequence[str]) -> list[Finding]:
    return [
        Finding(
            "",
            None,
            f"performance.{noun}s[{i}]",
            f"unknown {noun} {name!r}",
            ", ".join(known),
            nearest(name, known),
        )
        for i, name in enumerate(names)
        if name not in known
    ]
