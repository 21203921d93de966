"""Pieces of sentences that are made the same way everywhere."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["capital", "counted", "some_of"]


def capital(text: str) -> str:
    """A phrase as a sentence begins; names inside of it stay as they are."""
    return text[:1].upper() + text[1:]


def counted(count: int, noun: str) -> str:
    """``1 wave``, ``2 waves``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """The first of some names, and how many more there are: ``a, b and 3 more``.

    Args:
        names: in the order in which they are told.
        most: that are named.
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"
