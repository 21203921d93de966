"""Which files are a solver's solution and not one of ours."""

from __future__ import annotations

import json
from pathlib import Path

__all__ = ["solver_values"]


def solver_values(path: Path) -> dict[str, float] | None:
    """Values by column name; None where the file is one of ours, or none that can be read.

    Ours are JSON objects, of which not every value is a number.

    Raises:
        ConfigurationError: it looks like a solver's solution and cannot be read as one.
    """
    from planner.importers import read_solver_solution

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    if not text.strip() or not _is_solvers(text, path):
        return None
    return read_solver_solution(text, file=str(path))


def _is_solvers(text: str, path: Path) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        # What starts like JSON is broken JSON, as is what is called so.
        return text.lstrip()[:1] not in {"{", "["} and path.suffix != ".json"
    if not isinstance(document, dict) or not document:
        return False
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in document.values())
