"""Everything that is wrong with what one command was given, said at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from planner.errors import ConfigurationError, Finding, InternalError

__all__ = ["Gathering", "made"]

T = TypeVar("T")


class Gathering:
    """Readers of options and files, each of which is tried; what they refuse is raised together.

    Args:
        findings: what is known to be wrong already.
    """

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._findings = [*findings]
        self._headings: list[str] = []

    def attempt(self, read: Callable[[], T]) -> T | None:
        """What a reader gives; None where it refuses."""
        try:
            return read()
        except ConfigurationError as refusal:
            self._findings += refusal.findings
            if not refusal.findings:
                self._headings.append(str(refusal))
            return None

    def wrong(self, path: str, found: str, allowed: str, suggestion: str | None = None) -> None:
        """Note that something is wrong with an option."""
        self._findings.append(Finding("", None, path, found, allowed, suggestion))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was refused until now."""
        return tuple(self._findings)

    @property
    def refuses(self) -> bool:
        """Whether anything was refused until now."""
        return bool(self._findings or self._headings)

    def check(self) -> None:
        """Refuse what was gathered.

        Raises:
            ConfigurationError: a reader refused; lists every finding once.
        """
        findings = dict.fromkeys(self._findings)
        if self._headings:
            raise ConfigurationError("; ".join(dict.fromkeys(self._headings)), findings=findings)
        if findings:
            raise ConfigurationError.from_findings(findings)


def made(found: T | None) -> T:
    """What an attempt gave, after :meth:`Gathering.check` let it pass.

    Raises:
        InternalError: it was refused without a finding.
    """
    if found is None:
        raise InternalError("an input was refused without a finding")
    return found
