"""Which files are a solver's solution and not one of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from planner.importers.solver_solutions import Values

__all__ = ["solver_values"]

_OURS: Final = {"schema", "kind", "status", "proof", "counts", "served", "derived_from"}
"""Keys of our own files: a saved answer, and a bare solution."""


def solver_values(path: Path) -> Values | None:
    """Values by column name and what is wrong with the file; None where it is one of ours, or none that can be read.

    Ours are JSON objects that say what they are; a solver's has names and numbers.
    """
    from planner.importers.solver_solutions import parse_solver_solution

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return parse_solver_solution(text, file=str(path)) if _is_solvers(text, path) else None


def _is_solvers(text: str, path: Path) -> bool:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        # What starts like JSON is broken JSON, as is what is called so.
        return text.lstrip()[:1] not in {"{", "["} and path.suffix != ".json"
    return isinstance(document, dict) and _OURS.isdisjoint(document)
