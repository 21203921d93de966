"""Texts of others on a terminal."""

from __future__ import annotations

__all__ = ["LONGEST", "plain"]

LONGEST = 200


def plain(text: str, longest: int = LONGEST) -> str:
    """A text of others without what would steer a terminal."""
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in cut)
