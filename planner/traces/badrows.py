"""Rows that cannot be replayed: named by file, line and column, and refused or counted as the policy says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
            parts.append(f"left out {self.skipped:,} of {_rows(self.rows)}, the first for: {self.first[0]}")
        if self.moved:
            parts.append(f"put {self.moved:,} of {_rows(self.rows)} in order of arrival")
        return "; ".join(parts)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _stopped(bad: Sequence[Finding]) -> ConfigurationError:
    if len(bad) == 1:
        # A single finding is shown without a heading.
        advice = f"{bad[0].allowed} (or --on-bad-row skip, which leaves it out)"
        return ConfigurationError.from_findings([replace(bad[0], allowed=advice)])
    more = f", the first {_SHOWN}" if len(bad) > _SHOWN else ""
    heading = f"{len(bad):,} bad rows in {bad[0].file} (--on-bad-row skip leaves them out){more}"
    return ConfigurationError(heading, findings=bad[:_SHOWN])
