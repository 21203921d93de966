"""What pictures need that is not always installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

__all__ = ["INSTALL", "lacking"]

INSTALL: Final = "pip install 'fleetplan[plots]'"
_PACKAGES: Final = ("altair", "vl_convert")


def lacking() -> tuple[str, ...]:
    """Packages that draw and are not installed; found without loading them."""
    return tuple(name for name in _PACKAGES if find_spec(name) is None)
