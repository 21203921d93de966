"""Names from files as bare text: on a page they are never markup."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["plain"]

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~:$&])")


def plain(name: str) -> str:
    """The name with everything escaped that Markdown would read as markup."""
    return _MARKUP.sub(r"\\\1", " ".join(name.split()))
