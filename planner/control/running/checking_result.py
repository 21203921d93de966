"""What a check before the first start found."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from models.observation import Finding
from planner.errors import ConfigurationError, FleetPlanError

__all__ = ["Area", "Checked", "Verdict", "bad", "finding", "good", "made", "note"]

_Made = TypeVar("_Made")


class Area(StrEnum):
    """What was looked at, in the order in which it is best repaired."""

    CLUSTER = "cluster"
    PERMISSIONS = "permissions"
    KINDS = "kinds"
    LEADER = "leader"
    SETTINGS = "settings"
    VARIANTS = "variants"
    SCALERS = "scalers"
    METRICS = "metrics"


class Verdict(StrEnum):
    """How it was found."""

    GOOD = "good"
    NOTE = "note"
    """Works; to know about."""
    BAD = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One thing that was looked at.

    Attributes:
        area: what kind of thing.
        verdict: how it was found.
        subject: what it is about.
        said: one sentence.
        remedy: what to do; empty: nothing.
    """

    area: Area
    verdict: Verdict
    subject: str
    said: str
    remedy: str = ""

    @property
    def bad(self) -> bool:
        """Whether it has to be repaired."""
        return self.verdict is Verdict.BAD


def good(area: Area, subject: str, said: str) -> Checked:
    """Something that is as it should be."""
    return Checked(area=area, verdict=Verdict.GOOD, subject=subject, said=said)


def note(area: Area, subject: str, said: str, remedy: str = "") -> Checked:
    """Something to know about that stops nothing."""
    return Checked(area=area, verdict=Verdict.NOTE, subject=subject, said=said, remedy=remedy)


def bad(area: Area, subject: str, said: str, remedy: str = "") -> Checked:
    """Something that has to be repaired."""
    return Checked(area=area, verdict=Verdict.BAD, subject=subject, said=said, remedy=remedy)


def finding(area: Area, found: Finding) -> Checked:
    """A finding of a source or a discovery, which is a problem."""
    return bad(area, found.subject, found.problem, found.remedy)


def made(area: Area, subject: str, make: Callable[[], _Made]) -> Generator[Checked, None, _Made | None]:
    """What a call comes to; None where it refuses, with a line for each problem.

    Plug-ins may raise whatever they like; their words are not shown, since they may hold what nobody may read.
    """
    try:
        return make()
    except ConfigurationError as error:
        told = [str(each) for each in error.findings] or [str(error)]
    except FleetPlanError as error:
        told = [str(error)]
    except Exception as cause:
        told = [f"it broke ({type(cause).__name__})"]
    yield from (bad(area, subject, each) for each in told)
    return None
