"""What engines keep from one minimization to the next of the same descent, or of the next plan of the same fleet."""

from __future__ import annotations

from typing import Protocol, Self, TypeVar

__all__ = ["Kept", "Memory"]


class Kept(Protocol):
    """A value that an engine keeps; never changed once it is kept."""

    def aged(self) -> Self:
        """What of it is good for the next descent; what this descent has not used is forgotten."""
        ...


T = TypeVar("T", bound=Kept)


class Memory:
    """One value per kind. Who keeps a value decides what it is still good for when it is recalled.

    A memory belongs to one descent at a time; ``aged`` gives the next one its own.
    """

    def __init__(self) -> None:
        self._kept: dict[type, Kept] = {}

    def keep(self, value: Kept) -> None:
        """Keep a value in place of the last one of its kind."""
        self._kept[type(value)] = value

    def recall(self, kind: type[T]) -> T | None:
        """The value of a kind; None: nothing was kept."""
        value = self._kept.get(kind)
        return value if isinstance(value, kind) else None

    def aged(self) -> Memory:
        """A memory for the next descent, which goes its own way from here."""
        other = Memory()
        for value in self._kept.values():
            other.keep(value.aged())
        return other
