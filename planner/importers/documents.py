"""A JSON document of another tool, with everything that is wrong with it in one list."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from planner.errors import ConfigurationError, Finding, nearest
from planner.importers.huggingface.reading import read_json

__all__ = ["MOST_TOKENS", "Document", "identifier"]

MOST_TOKENS: Final = 10**8
"""Longest input or output of a request shape."""

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def identifier(text: str) -> str:
    """A text as an identity: letters, digits, dot, dash and underscore."""
    return _NOT_IN_A_NAME.sub("-", text).strip("-._")[:100] or "imported"


class Document:
    """The object in a JSON file.

    Args:
        path: of the file.

    Raises:
        ConfigurationError: it cannot be read, is no JSON or no object.
    """

    def __init__(self, path: Path) -> None:
        self.file = str(path)
        self.name = path.stem
        self.data: Mapping[str, Any] = read_json(path)
        self.findings: list[Finding] = []

    def find(self, path: str, found: object, *, allowed: str, suggestion: str | None = None) -> None:
        """Note that something is wrong."""
        self.findings.append(Finding(self.file, None, path, _shown(found), allowed, suggestion))

    def find_option(self, option: str, found: object, *, allowed: str, suggestion: str | None = None) -> None:
        """Note that something is wrong with what was said beside the document."""
        self.findings.append(Finding("", None, option, _shown(found), allowed, suggestion))

    def complains_of(self, field: str) -> bool:
        """Whether something is wrong with a field of the document or below it."""
        return any(
            each.path == field or each.path.startswith((f"{field}.", f"{field}["))
            for each in self.findings
            if each.file == self.file
        )

    def check(self) -> None:
        """Refuse a document with findings.

        Raises:
            ConfigurationError: there are some; lists all of them.
        """
        if self.findings:
            raise ConfigurationError.from_findings(self.findings)

    def keys(self, needed: Iterable[str], known: Iterable[str]) -> None:
        """Note missing and unknown fields of the document."""
        allowed = [*needed, *known]
        for name in needed:
            if name not in self.data:
                self.find(name, None, allowed="a value; this field is needed")
        for name in self.data:
            if name not in allowed:
                self.find(
                    name,
                    f"the unknown key {name[:60]!r}",
                    allowed=", ".join(allowed),
                    suggestion=nearest(name, allowed),
                )

    def number(self, path: str, value: object, *, least: float = 0.0, most: float = 1e9) -> float | None:
        """A finite number in bounds; None and a finding where it is none."""
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or not least <= value <= most
        ):
            self.find(path, value, allowed=f"a number from {least:g} to {most:g}")
            return None
        return float(value)

    def counts(self, path: str, value: object, *, most: int = MOST_TOKENS) -> tuple[int, ...]:
        """Whole numbers, each larger than the one before; empty and a finding where they are none."""
        whole = (
            isinstance(value, list)
            and bool(value)
            and all(isinstance(each, int) and not isinstance(each, bool) for each in value)
        )
        if (
            not isinstance(value, list)
            or not whole
            or value != sorted({*value})
            or not 1 <= value[0] <= value[-1] <= most
        ):
            self.find(path, value, allowed=f"rising whole numbers from 1 to {most:,}")
            return ()
        return tuple(value)


def _shown(found: object) -> str:
    if found is None:
        return "nothing"
    if isinstance(found, list | dict):
        return f"{'a list' if isinstance(found, list) else 'an object'} of {len(found)} items"
    text = found if isinstance(found, str) else repr(found)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - a line of a message
