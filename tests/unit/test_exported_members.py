"""Every public module says what it offers: the names exist, once, in the order of the house."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
OWN: Final = {"models", "planner"}
SCRIPTS: Final = re.compile(r"^planner\.ui\.(entry(\.app)?|pages\..*)$")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def public_modules() -> list[str]:
    """Modules whose name has no leading underscore; pages of the browser run as files, so they offer none."""
    names = (module_name(path) for package in sorted(OWN) for path in (ROOT / package).rglob("*.py"))
    return sorted(name for name in names if "._" not in name and not SCRIPTS.match(name))


def load(name: str) -> ModuleType:
    """Import a module, or skip if it is the adapter of an extra that is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as cause:
        if (cause.name or "").partition(".")[0] in OWN:
            raise
        pytest.skip(f"{name} needs {cause.name}, which is not installed")


def in_order(names: list[str]) -> list[str]:
    """Constants, then classes, then the rest; numbers inside a name by value (as ruff's RUF022)."""

    def key(name: str) -> tuple[int, list[tuple[int, int, str]]]:
        kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
        pieces = re.findall(r"\d+|\D+", name)
        return kind, [(0, int(piece), "") if piece.isdigit() else (1, 0, piece) for piece in pieces]

    return sorted(names, key=key)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["plan", "Plan", "PLAN"], ["PLAN", "Plan", "plan"]),
        (["h100", "h20", "a"], ["a", "h20", "h100"]),
        (["solve", "__version__"], ["__version__", "solve"]),
    ],
)
def test_the_order_of_the_house(names: list[str], expected: list[str]) -> None:
    assert in_order(names) == expected


@pytest.mark.parametrize("name", public_modules())
def test_what_a_module_exports_exists_and_is_sorted(name: str) -> None:
    module = load(name)
    exported = list(module.__all__)
    assert [member for member in exported if not hasattr(module, member)] == []
    assert exported == in_order(exported)
    assert len(set(exported)) == len(exported)
