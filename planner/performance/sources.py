"""Sources by name, and the chain that a scenario asks for."""

from __future__ import annotations

from collections.abc import Mapping
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
    known, tables = SOURCES.names(), sorted(profiles)
    findings = [
        Finding(
            "",
            None,
            f"performance.sources[{i}]",
            f"unknown source {name!r}",
            ", ".join(known),
            nearest(name, known),
        )
        for i, name in enumerate(choice.sources)
        if name not in known
    ]
    findings += [
        Finding(
            "",
            None,
            f"performance.profiles[{i}]",
            f"unknown profile {name!r}",
            ", ".join(tables),
            nearest(name, tables),
        )
        for i, name in enumerate(choice.profiles)
        if name not in profiles
    ]
    if findings:
        raise ConfigurationError.from_findings(findings)
    allowed = {
        name: rows for name, rows in profiles.items() if not choice.profiles or name in choice.profiles
    }
    knowledge = Knowledge(choice, allowed, queueing)
    return tuple(SOURCES.get(name)(knowledge) for name in choice.sources)
