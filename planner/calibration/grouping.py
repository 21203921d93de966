"""Points of several reports, put together by what ran: one fit per LLM, accelerator type, engine and parallelism."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from models.load import LoadPoint
from models.queueing import QueueingParameters
from models.queueing_profile import QueueingProfile
from models.variant import Parallelism
from planner.errors import ConfigurationError, Finding

__all__ = ["Group", "Named", "grouped"]

_UNFITTED = QueueingParameters(alpha_ms=1.0, beta_ms_per_token=0.0, gamma_ms_per_token=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What the user says ran there; it goes before what reports say. None: as the reports say.

    Attributes:
        llm: name of the LLM.
        accelerator: name of the accelerator type.
        engine: inference engine.
        parallelism: how a replica was spread.
    """

    llm: str | None = None
    accelerator: str | None = None
    engine: str | None = None
    parallelism: Parallelism | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Points of one kind of replica, and what its parameters will be known for."""

    known: QueueingProfile
    points: tuple[LoadPoint, ...]


def grouped(
    points: Sequence[LoadPoint],
    named: Named,
    *,
    template: Callable[[str, str], QueueingProfile],
) -> tuple[Group, ...]:
    """Groups in the order of their names.

    Args:
        points: of any number of reports.
        named: what the user says.
        template: makes the profile of an LLM and an accelerator type as reports name them.

    Raises:
        ConfigurationError: nobody says which LLM or which accelerator type a report is of; lists every report.
    """
    _check(points, named)
    groups: dict[tuple[str, str, str | None, Parallelism], list[LoadPoint]] = {}
    for point in points:
        origin = point.origin
        key = (
            named.llm or origin.llm or "",
            named.accelerator or origin.accelerator or "",
            named.engine or origin.engine,
            named.parallelism or origin.parallelism or Parallelism(),
        )
        groups.setdefault(key, []).append(point)
    made = []
    for (llm, accelerator, engine, parallelism), members in groups.items():
        known = template(llm, accelerator).but(
            engine=engine,
            engine_version=_one([member.origin.engine_version for member in members]),
            parallelism=parallelism,
            parameters=_UNFITTED,
            source=", ".join(sorted({PurePath(member.origin.file).name for member in members}))[:200],
        )
        made.append(Group(known, tuple(members)))
    return tuple(sorted(made, key=lambda group: _order(group.known)))


def _check(points: Sequence[LoadPoint], named: Named) -> None:
    findings = []
    for field, option in (("llm", "--llm"), ("accelerator", "--accelerator")):
        silent = sorted(
            {
                p.origin.file
                for p in points
                if getattr(named, field) is None and getattr(p.origin, field) is None
            }
        )
        what = "LLM" if field == "llm" else "accelerator type"
        findings += [
            Finding(file, None, field, f"no word of which {what} it is of", f"{option} NAME")
            for file in silent
        ]
    if findings:
        raise ConfigurationError.from_findings(findings)


def _one(values: Sequence[str | None]) -> str | None:
    """What all say; None: nothing, or different things."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _order(known: QueueingProfile) -> tuple[str, str, str, str]:
    return known.llm, known.accelerator, known.engine or "", known.parallelism.label
