"""What stands in a scenario file, each piece with its place; and the findings that pile up on the way."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from planner.errors import Finding, nearest

__all__ = ["ANY", "Complaints", "Content", "Entry", "Scalar", "below"]

Scalar = str | int | float | bool | None
ANY: Final = "*"
_TEXT_SHOWN: Final = 60
_NAMES_SHOWN: Final = 12


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One value of a document, with the place that a person would look for it.

    Attributes:
        value: a scalar, a tuple of entries (list) or entries by key (mapping).
        file: file as the user named it.
        line: line from 1, of the key where there is one; None if it is from no file.
        path: where in the document, as the user wrote it: ``services.chat.slo.ttft``.
        text: a scalar as it is written.
    """

    value: Content
    file: str
    line: int | None
    path: str
    text: str = ""

    @property
    def fields(self) -> Mapping[str, Entry]:
        """Entries by key; none if this is no mapping."""
        return self.value if isinstance(self.value, Mapping) else {}

    @property
    def items(self) -> tuple[Entry, ...]:
        """Entries of a list; none if this is no list."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def name(self) -> str | None:
        """The value if it is a text."""
        return self.value if isinstance(self.value, str) else None

    def named(self, key: str) -> str | None:
        """The text under a key; None if there is none."""
        entry = self.fields.get(key)
        return entry.name if entry is not None else None

    def but(self, value: Content, *, text: str | None = None) -> Entry:
        """Another value at the same place."""
        return dataclasses.replace(self, value=value, text=self.text if text is None else text)

    def plain(self) -> Any:  # noqa: ANN401 - any document
        """The bare value, as lists and dictionaries."""
        if isinstance(self.value, Mapping):
            return {key: entry.plain() for key, entry in self.value.items()}
        if isinstance(self.value, tuple):
            return [entry.plain() for entry in self.value]
        return self.value

    def phrase(self) -> str:
        """What stands here, in a few words."""
        match self.value:
            case Mapping():
                return "a mapping" if self.value else "an empty mapping"
            case tuple():
                return "a list" if self.value else "an empty list"
            case None:
                return "nothing"
            case str():
                return repr(_short(self.value))
            case _:
                return _short(self.text or str(self.value))


Content = Scalar | tuple[Entry, ...] | Mapping[str, Entry]


def _short(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[: _TEXT_SHOWN - 3]}..."


def below(entry: Entry, *keys: str) -> Iterator[Entry]:
    """Every entry under a series of keys; ``ANY`` stands for each item of a list."""
    if not keys:
        yield entry
    elif keys[0] == ANY:
        for item in entry.items:
            yield from below(item, *keys[1:])
    elif keys[0] in entry.fields:
        yield from below(entry.fields[keys[0]], *keys[1:])


@dataclass(slots=True)
class Complaints:
    """Findings in the order they are made; one place is complained about once for one thing."""

    findings: list[Finding] = field(default_factory=list)

    def about(self, entry: Entry, found: str, *, allowed: str = "", suggestion: str | None = None) -> None:
        """Add a finding about an entry."""
        self.add(Finding(entry.file, entry.line, entry.path, found, allowed, suggestion))

    def unknown(self, entry: Entry, noun: str, name: str, known: Iterable[str]) -> None:
        """Add a finding about a name that nothing has."""
        names = sorted(set(known))
        more = len(names) - _NAMES_SHOWN
        shown = ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        allowed = shown or f"there is no {noun}"
        self.about(
            entry, f"unknown {noun} {_short(name)!r}", allowed=allowed, suggestion=nearest(name, names)
        )

    def add(self, finding: Finding) -> None:
        """Add a finding, unless it was made already."""
        if finding not in self.findings:
            self.findings.append(finding)

    def covers(self, entry: Entry) -> bool:
        """Whether something was found at this very entry."""
        at = (entry.file, entry.line, entry.path)
        return any((known.file, known.line, known.path) == at for known in self.findings)

    def in_order(self) -> tuple[Finding, ...]:
        """Findings by file and line."""
        return tuple(sorted(self.findings, key=lambda finding: (finding.file, finding.line or 0)))
