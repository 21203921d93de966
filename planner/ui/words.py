"""Words on a page: names from files are never markup, and thousands are told apart by thin spaces."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["plain", "said", "spaced"]

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~:$&])")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_THIN_SPACE: Final = "\N{NARROW NO-BREAK SPACE}"


def plain(name: str) -> str:
    """The name with everything escaped that Markdown would read as markup."""
    return _MARKUP.sub(r"\\\1", " ".join(name.split()))


def spaced(text: str) -> str:
    """A text of the command line with thin spaces in its numbers instead of commas."""
    return _THOUSANDS.sub(_THIN_SPACE, text)


def said(sentence: str) -> str:
    """A sentence with names in it as Markdown that shows exactly these words, its numbers with thin spaces."""
    return plain(spaced(sentence).replace(_THIN_SPACE, "\0")).replace("\0", _THIN_SPACE)
