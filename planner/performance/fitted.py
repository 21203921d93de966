"""Figures that a script fitted and wrote to ``data/performance/``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from planner.errors import CatalogError, Finding
from planner.shipped import shipped_data

__all__ = ["read_fitted"]

Figures = TypeVar("Figures")


def read_fitted(name: str, path: Path | None, *, noun: str, parse: Callable[[Any], Figures]) -> Figures:
    """Read a file of figures.

    Args:
        name: of the model: ``data/performance/NAME.yaml`` is what ``scripts/fit_NAME.py`` writes.
        path: another file of the same form; None: the one that came with fleetplan.
        noun: what the file holds, for findings.
        parse: from its document to the figures; raises what a document of another form makes it raise.

    Raises:
        CatalogError: the file is missing or does not hold what it must.
    """
    file = path or shipped_data() / "performance" / f"{name}.yaml"
    try:
        return parse(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (
        OSError,
        UnicodeDecodeError,
        yaml.YAMLError,
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
    ) as cause:
        allowed = f"as scripts/fit_{name}.py writes it"
        finding = Finding(str(file), None, "", f"no {noun} ({cause})", allowed)
        raise CatalogError.from_findings([finding]) from cause
