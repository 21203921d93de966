"""The README names everything that it says it lists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return README.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_extra_is_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.findall(r"^\| `([a-z]+)` \|", section("Install"), flags=re.MULTILINE)
    assert sorted(listed) == sorted(project["optional-dependencies"])


def test_every_page_is_linked() -> None:
    pages = {page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").glob("*.md")}
    linked = set(re.findall(r"\]\(([^)#]+)", section("Read on")))
    assert pages - linked == set()


def test_every_link_leads_somewhere() -> None:
    linked = {link for link in re.findall(r"\]\(([^)#]+)", README) if "://" not in link}
    assert [link for link in sorted(linked) if not (ROOT / link).exists()] == []
