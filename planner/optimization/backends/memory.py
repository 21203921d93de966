"""What engines keep from one minimization to the next of the same descent, or of the next plan of the same fleet."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Memory"]

T = TypeVar("T")


class Memory:
    """One value per kind. Who keeps a value decides what it is still good for when it is recalled.

    A memory belongs to one descent at a time; ``copy`` gives the next one its own.
    """

    def __init__(self) -> None:
        self._kept: dict[type, object] = {}

    def keep(self, value: object) -> None:
        """Keep a value in place of the last one of its kind."""
        self._kept[type(value)] = value

    def recall(self, kind: type[T]) -> T | None:
        """The value of a kind; None: nothing was kept."""
        value = self._kept.get(kind)
        return value if isinstance(value, kind) else None

    def copy(self) -> Memory:
        """A memory that holds the same and goes its own way from here."""
        other = Memory()
        other._kept = dict(self._kept)
        return other
