"""Errors: one drawn tree, and each leaf is a decision for the caller.

::

    FleetPlanError                      never raised itself
    ├── ConfigurationError      exit 2  change an input; carries every finding at once
    │   └── CatalogError                the input is a catalog entry or a profile table
    ├── TemporaryError          exit 4  try again later; nothing was changed
    ├── PermanentError          exit 2  trying again will not help: forbidden, not supported
    ├── SafetyGateError         exit 5  refused on purpose; nothing was changed
    └── InternalError           exit 1  a fault of ours

"No plan keeps every promise" is no error: it is the status INFEASIBLE of a solution (exit 3).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

__all__ = [
    "CatalogError",
    "ConfigurationError",
    "Finding",
    "FleetPlanError",
    "InternalError",
    "PermanentError",
    "SafetyGateError",
    "TemporaryError",
    "allowed_by",
    "nearest",
]

_WEIGHED: Final = 5
"""Words that look alike whose distance is counted."""
_BOUNDS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}


def allowed_by(error: Mapping[str, Any]) -> str:
    """What a model would have taken in place of a value that it refused, from one of pydantic's error details."""
    kind = str(error["type"])
    if kind in _BOUNDS:
        key, phrase = _BOUNDS[kind]
        return f"{phrase} {error['ctx'][key]:g}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message.rpartition("; allowed: ")[2]


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that is fewest letters away from ``word`` (case does not count); None if none is close."""
    by_folded = {candidate.casefold(): candidate for candidate in allowed}
    folded = word.casefold()
    close = difflib.get_close_matches(folded, by_folded, n=_WEIGHED, cutoff=0.6)
    best = min(close, key=lambda candidate: _edits(folded, candidate), default=None)
    return by_folded[best] if best is not None else None


def _edits(word: str, other: str) -> int:
    """Letters to insert, remove or replace to turn one word into the other (Levenshtein)."""
    costs = list(range(len(other) + 1))
    for row, letter in enumerate(word, start=1):
        above, costs[0] = costs[0], row
        for column, wanted in enumerate(other, start=1):
            replaced = above + (letter != wanted)
            above = costs[column]
            costs[column] = min(above + 1, costs[column - 1] + 1, replaced)
    return costs[-1]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong with an input: where it is, what was found there, what would do.

    Attributes:
        file: file as the user named it; empty when the value is from no file.
        line: line in that file, from 1; None when unknown.
        path: where in the document, e.g. ``services[0].slo.ttft_s``; empty for the whole document.
        found: what stands there, as a phrase: ``"unknown key 'slow'"``, ``"'fast'"``.
        allowed: what may stand there; empty when there is nothing to say.
        suggestion: the nearest match, or what to write instead; None when there is none.
    """

    file: str
    line: int | None
    path: str
    found: str
    allowed: str = ""
    suggestion: str | None = None

    def __str__(self) -> str:
        """One line: ``file:line: path: found …; allowed: …; did you mean …?``."""
        file = f"{self.file}:{self.line}" if self.line is not None else self.file
        said = [f"found {self.found}"]
        if self.allowed:
            said.append(f"allowed: {self.allowed}")
        if self.suggestion is not None:
            said.append(f"did you mean {self.suggestion!r}?")
        return ": ".join(part for part in (file, self.path, "; ".join(said)) if part)


class FleetPlanError(Exception):
    """Whatever fleetplan raises on purpose.

    Attributes:
        exit_code: the exit code of the command line for this error.
    """

    exit_code: ClassVar[int] = 1


class ConfigurationError(FleetPlanError):
    """The user must change an input.

    Args:
        message: one sentence, the heading of the findings if there are any.
        findings: everything that is wrong, so that nobody repairs one fault per run.
    """

    exit_code: ClassVar[int] = 2

    def __init__(self, message: str, *, findings: Iterable[Finding] = ()) -> None:
        super().__init__(message)
        self.findings: tuple[Finding, ...] = tuple(findings)

    @classmethod
    def from_findings(cls, findings: Iterable[Finding]) -> Self:
        """The error for a non-empty series of findings, under a heading that counts them.

        Raises:
            InternalError: there is no finding, hence nothing to complain about.
        """
        found = tuple(findings)
        if not found:
            raise InternalError("asked to report an input without a finding")
        noun = "problem" if len(found) == 1 else "problems"
        files = sorted({finding.file for finding in found if finding.file})
        # A heading that names a file would be wrong of findings that are from none.
        where = f" in {', '.join(files)}" if files and all(finding.file for finding in found) else ""
        return cls(f"{len(found)} {noun}{where}", findings=found)

    def __str__(self) -> str:
        """The message, then each finding on a line of its own."""
        heading = super().__str__()
        return "\n".join([f"{heading}:" if self.findings else heading, *(f"  {f}" for f in self.findings)])


class CatalogError(ConfigurationError):
    """A catalog entry or a profile table is missing or wrong."""


class TemporaryError(FleetPlanError):
    """Try again later: metrics are stale, a server is busy, the time given was too short.

    Args:
        message: one sentence.
        retry_after_s: seconds after which trying again is sensible; None: nobody knows.
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class PermanentError(FleetPlanError):
    """Trying again will not help: an action is forbidden, or the target does not support it."""

    exit_code: ClassVar[int] = 2


class SafetyGateError(FleetPlanError):
    """A safety gate refused to act; nothing was changed."""

    exit_code: ClassVar[int] = 5


class InternalError(FleetPlanError):
    """A fault of ours: an answer that the referee rejects, a state that cannot be."""

    exit_code: ClassVar[int] = 1
