"""What is assumed while a draft is made: each thing once, with whom it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Notes"]

_SHOWN: Final = 5


@dataclass(slots=True)
class Notes:
    """Assumptions, each with those that it is about."""

    _about: dict[str, list[str]] = field(default_factory=dict)

    def take(self, assumption: str, subject: str = "") -> None:
        """Note an assumption.

        Args:
            assumption: one sentence without an end.
            subject: whom it is about; empty: all of it.
        """
        subjects = self._about.setdefault(assumption, [])
        if subject and subject not in subjects:
            subjects.append(subject)

    def sentences(self) -> Iterator[str]:
        """All of them, in the order in which they were met; of long lists the first ones and how many more."""
        for assumption, subjects in self._about.items():
            shown = ", ".join(subjects[:_SHOWN])
            more = f" and {len(subjects) - _SHOWN} more" if len(subjects) > _SHOWN else ""
            yield f"{assumption}: {shown}{more}" if subjects else assumption
