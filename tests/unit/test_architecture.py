"""The figure of the floors and the contract that is enforced are the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def drawn_floors() -> list[str]:
    """Rows of the figure from the top floor down, without number and name."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    return re.findall(r"^\d  \w+ +(.+)$", text, flags=re.MULTILINE)


def enforced_floors() -> list[str]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = config["tool"]["importlinter"]["contracts"]
    return next(contract["layers"] for contract in contracts if contract["type"] == "layers")


def test_the_figure_is_the_contract() -> None:
    assert drawn_floors() == enforced_floors()
