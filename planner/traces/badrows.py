"""Rows that cannot be replayed: named by file, line and column, and refused or counted as the policy says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from planner.errors import ConfigurationError, Finding

__all__ = ["BadRows", "OnBadRow"]

_SHOWN: Final = 20


class OnBadRow(StrEnum):
    """What is done with a row that cannot be replayed."""

    ERROR = "error"
    SKIP = "skip"


@dataclass(slots=True)
class BadRows:
    """Counts rows, and those that were left out.

    Attributes:
        policy: what is done with a bad row.
        rows: rows read so far, bad ones among them.
        skipped: bad ones that were left out.
        first: the first few of these.
        moved: rows that came later in the file than their arrival says, and were put in order.
    """

    policy: OnBadRow = OnBadRow.ERROR
    rows: int = 0
    skipped: int = 0
    first: list[Finding] = field(default_factory=list)
    moved: int = 0

    def refuse(self, bad: Sequence[Finding]) -> None:
        """Take note of bad rows, one finding each.

        Raises:
            ConfigurationError: the policy is to stop; names the first of them.
        """
        if not bad:
            return
        if self.policy is OnBadRow.ERROR:
            raise _stopped(bad)
        self.skipped += len(bad)
        self.first.extend(bad[: _SHOWN - len(self.first)])

    def told(self) -> str:
        """What a user should know of it; empty: every row was taken as it stood."""
        parts = []
        if self.skipped:
            listed = "".join(f"\n  {finding}" for finding in self.first)
            more = self.skipped - len(self.first)
            rest = f"\n  and {more:,} more" if more else ""
            parts.append(f"left out {self.skipped:,} bad rows of {self.rows:,} (skip):{listed}{rest}")
        if self.moved:
            parts.append(f"put {self.moved:,} rows of {self.rows:,} in order of arrival")
        return "\n".join(parts)


def _stopped(bad: Sequence[Finding]) -> ConfigurationError:
    last = bad[min(len(bad), _SHOWN) - 1]
    more = f"; {len(bad) - _SHOWN:,} more rows nearby are bad" if len(bad) > _SHOWN else ""
    policy = f"{last.allowed} (a bad row is an error; --on-bad-row skip leaves it out{more})"
    shown = [
        *bad[: min(len(bad), _SHOWN) - 1],
        Finding(last.file, last.line, last.path, last.found, policy, last.suggestion),
    ]
    return ConfigurationError.from_findings(shown)
