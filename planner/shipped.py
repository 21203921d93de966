"""Where the facts are that came with fleetplan."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

__all__ = ["shipped_data"]


def shipped_data() -> Path:
    """The folder ``data/``: inside the package when installed, beside it in a checkout."""
    package = Path(str(files("planner")))
    inside = package / "_data"
    return inside if inside.is_dir() else package.parent / "data"
