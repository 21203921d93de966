"""Exposition text -> samples whose names are asked for. Every page is hostile: what is not understood is counted.

Reads the text format 0.0.4 and OpenMetrics 1.0, with their time stamps and exemplars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["Page", "PageLimits", "Sample", "parse"]

_NAME: Final = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
# Possessive: text that was made to be slow is not read twice.
_BRACES: Final = re.compile(r'\{((?:[^"}]|"(?:[^"\\]|\\.)*+")*+)\}')
_LABEL: Final = re.compile(r'\s*+([A-Za-z_][A-Za-z0-9_]*+)\s*+=\s*+"((?:[^"\\]|\\.)*+)"\s*+(,|$)')
_ESCAPED: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"n": "\n", '"': '"', "\\": "\\"}
_NUMBER: Final = re.compile(
    r"[+-]?(?:(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?|[Ii]nf(?:inity)?|[Nn]a[Nn])"
)
_LONGEST_NUMBER: Final = 64
_MS: Final = 1e11
"""Times above this are in ms: in s it would be the year 5138."""


class Sample(NamedTuple):
    """One line: name, labels, value (NaN and infinities as they are), time in s of the epoch (None: not stated)."""

    name: str
    labels: dict[str, str]
    value: float
    time_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLimits:
    """What a page may hold; what is beyond is counted and left out."""

    line_chars: int = 32_768
    labels: int = 64
    samples: int = 500_000
    names: int = 20_000


@dataclass(slots=True)
class Page:
    """What was found on a page.

    Attributes:
        samples: lines whose names were asked for; the first of equal series counts.
        names: every name on it, asked for or not.
        malformed: lines that are no sample.
        repeated: lines whose series was there before.
        beyond: lines left out since the page is too large.
    """

    samples: list[Sample] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    malformed: int = 0
    repeated: int = 0
    beyond: int = 0


def parse(text: str, wanted: Callable[[str], bool], *, limits: PageLimits | None = None) -> Page:
    """Read a page.

    Args:
        text: the page.
        wanted: whether samples of this name are asked for.
        limits: of the page.
    """
    bounds = limits or PageLimits()
    page = Page()
    seen: set[str] = set()
    known: dict[str, dict[str, str] | None] = {}
    asked: dict[str, bool] = {}
    for line in _lines(text, page, bounds):
        match = _NAME.match(line)
        if match is None:
            page.malformed += 1
            continue
        name = match[0]
        if name not in asked:
            asked[name] = len(asked) < bounds.names and wanted(name)
        if asked[name]:
            _take(page, name, line[match.end() :], (seen, known, bounds))
    page.names.update(list(asked)[: bounds.names])
    return page


def _lines(text: str, page: Page, bounds: PageLimits) -> Iterator[str]:
    # Only \n ends a line: a label may hold any other separator that str.splitlines knows.
    for number, raw in enumerate(text.split("\n")):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if number >= bounds.samples or len(line) > bounds.line_chars:
            page.beyond += 1
            continue
        yield line


def _take(
    page: Page, name: str, rest: str, state: tuple[set[str], dict[str, dict[str, str] | None], PageLimits]
) -> None:
    seen, known, bounds = state
    written, after = _cut(rest)
    if written not in known:
        known[written] = _labels(written, bounds.labels)
    labels, figures = known[written], _figures(after)
    if labels is None or figures is None:
        page.malformed += 1
        return
    series = f"{name}{{{written}"
    if series in seen:
        page.repeated += 1
        return
    seen.add(series)
    page.samples.append(Sample(name, labels, *figures))


def _cut(rest: str) -> tuple[str, str]:
    """What stands between the braces, and what follows; a name without braces has none, a brace that stays open no end."""
    opened = rest.lstrip()
    if not opened.startswith("{"):
        return "", rest
    match = _BRACES.match(opened)
    return ("\0", "") if match is None else (match[1], opened[match.end() :])


def _labels(written: str, most: int) -> dict[str, str] | None:
    found: dict[str, str] = {}
    position = 0
    while position < len(written):
        match = _LABEL.match(written, position)
        if match is None or len(found) >= most or match[1] in found:
            return None if written.strip() else {}
        value = match[2]
        found[match[1]] = _ESCAPED.sub(_unescaped, value) if "\\" in value else value
        position = match.end()
    return found


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[0])


def _figures(after: str) -> tuple[float, float | None] | None:
    parts = after.split("#", 1)[0].split()
    if not parts or len(parts) > 2 or not all(map(_is_number, parts)):  # noqa: PLR2004 - a value and a time
        return None
    if len(parts) == 1:
        return float(parts[0]), None
    time_s = float(parts[1])
    return float(parts[0]), time_s / 1000.0 if abs(time_s) > _MS else time_s


def _is_number(text: str) -> bool:
    return len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) is not None
