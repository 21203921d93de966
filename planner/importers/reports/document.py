"""Reading loosely typed reports: values by path, numbers that are numbers, and all complaints at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from models.load import LatencySpread, LoadPoint, LoadReport
from planner.errors import CatalogError, Finding, allowed_by

__all__ = ["Report", "ReportText", "per_token", "refuse", "refused_by", "spread"]

_PERCENTILES: Final = (50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class ReportText:
    """A file that was read.

    Attributes:
        file: as the user named it.
        text: its content.
        data: the parsed document: a mapping, a list, or None where the text is neither JSON nor YAML.
        path: of the file.
    """

    file: str
    text: str
    data: Any
    path: Path


@dataclass(slots=True)
class Report:
    """A mapping of a report with its place, and the findings about it."""

    file: str
    data: Mapping[str, Any]
    place: str = ""
    findings: list[Finding] = field(default_factory=list)

    def get(self, path: str) -> Any:  # noqa: ANN401 - what a foreign file holds
        """What stands at a dotted path; None: nothing does."""
        found: Any = self.data
        for key in path.split("."):
            if isinstance(found, Sequence) and not isinstance(found, str) and key.isdigit():
                found = found[int(key)] if int(key) < len(found) else None
            elif isinstance(found, Mapping):
                found = found.get(key)
            else:
                return None
        return found

    def number(self, *paths: str) -> float | None:
        """The first finite number among dotted paths; None: there is none."""
        for path in paths:
            value = self.get(path)
            if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
                return float(value)
        return None

    def needed(self, *paths: str) -> float:
        """As :meth:`number`; a missing one is complained about and counts as not a number."""
        value = self.number(*paths)
        if value is None:
            self.complain(paths[0], "no number", f"a number at {' or '.join(paths)}")
            return math.nan
        return value

    def text(self, *paths: str) -> str | None:
        """The first text that is not empty among dotted paths."""
        return next((value for value in map(self.get, paths) if isinstance(value, str) and value), None)

    def child(self, path: str) -> Report | None:
        """The mapping at a dotted path, whose findings are ours; None: there is no mapping."""
        found = self.get(path)
        if not isinstance(found, Mapping):
            return None
        return Report(self.file, found, self.at(path), self.findings)

    def children(self, path: str) -> list[Report]:
        """The mappings of a list at a dotted path."""
        found = self.get(path)
        items = found if isinstance(found, list) else []
        return [
            Report(self.file, item, f"{self.at(path)}[{index}]", self.findings)
            for index, item in enumerate(items)
            if isinstance(item, Mapping)
        ]

    def at(self, path: str) -> str:
        """A dotted path below this place, as findings name it."""
        return ".".join(part for part in (self.place, path) if part)

    def complain(self, path: str, found: str, allowed: str, suggestion: str | None = None) -> None:
        """Note something that is wrong."""
        self.findings.append(Finding(self.file, None, self.at(path), found, allowed, suggestion))

    def point(self, **fields: Any) -> LoadPoint | None:  # noqa: ANN401 - checked by the noun
        """A point of these fields; what is wrong with them joins the findings, and there is none."""
        if any(isinstance(value, float) and math.isnan(value) for value in fields.values()):
            return None
        try:
            return LoadPoint(**fields)
        except ValidationError as cause:
            self.findings += refused_by(cause, self.file, self.place, "a point")
            return None

    def report(self, points: Iterable[LoadPoint | None], **more: Any) -> LoadReport:  # noqa: ANN401 - checked by the noun
        """The report of these points.

        Raises:
            CatalogError: something was complained about.
        """
        if self.findings:
            raise CatalogError.from_findings(self.findings)
        return LoadReport(points=tuple(point for point in points if point is not None), **more)


def refused_by(cause: ValidationError, file: str, place: str, noun: str) -> list[Finding]:
    """What a noun refuses of a report, each value named where it would stand; ``noun`` names the whole."""
    findings: list[Finding] = []
    for error in cause.errors(include_url=False):
        where = ".".join(part for part in (place, *map(str, error["loc"])) if part)
        raw = error.get("input")
        found = noun if isinstance(raw, dict) or not error["loc"] else repr(raw)
        findings.append(Finding(file, None, where, found, allowed_by(error)))
    return findings


def refuse(file: str, place: str, found: str, allowed: str) -> CatalogError:
    """The error that says why a report cannot be used."""
    return CatalogError.from_findings([Finding(file, None, place, found, allowed)])


def spread(
    report: Report | None, *, scale: float, mean: Sequence[str] = ("mean",), percentile: str = "p{}"
) -> LatencySpread | None:
    """Statistics of one latency; None where the report states none, or where all are zero.

    Args:
        report: the mapping that holds them.
        scale: factor to seconds.
        mean: names of the mean.
        percentile: name of a percentile, with its number in place of the braces.
    """
    if report is None:
        return None
    stated = {"mean_s": report.number(*mean)}
    for each in _PERCENTILES:
        names = (percentile.format(each), *(("median",) if each == _PERCENTILES[0] else ()))
        stated[f"p{each}_s"] = report.number(*names)
    found = {name: value * scale for name, value in stated.items() if value is not None}
    negative = [name for name, value in found.items() if value < 0]
    for name in negative:
        report.complain(name.removesuffix("_s"), "a negative latency", "a latency of at least 0")
    return LatencySpread(**found) if any(found.values()) and not negative else None


def per_token(
    *candidates: LatencySpread | None,
    ttft: LatencySpread | None,
    e2e: LatencySpread | None,
    output_tokens: float,
) -> LatencySpread | None:
    """Of several latencies between tokens the one that fits the whole request.

    Tools disagree about the names: the time between pieces of a stream counts too few where a piece holds
    several tokens, and the time per output token counts the first one in some tools and not in others. What is meant
    here is ``(e2e - ttft) / (output - 1)``; without a stated e2e the first candidate is taken.
    """
    stated = [each for each in candidates if each is not None and each.typical_s is not None]
    first, whole = (each.typical_s if each is not None else None for each in (ttft, e2e))
    if not stated or first is None or whole is None or math.isnan(output_tokens) or output_tokens <= 1:
        return stated[0] if stated else None
    meant = max(0.0, (whole - first) / (output_tokens - 1))
    return min(stated, key=lambda each: abs((each.typical_s or 0.0) - meant))
