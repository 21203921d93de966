"""Both entries start one app with one configuration, on this machine alone."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from planner.ui.launch import OPTIONS, command
from planner.ui.pages import PAGES


def flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value if isinstance(value, str) else json.dumps(value)


def test_the_configuration_file_says_what_the_command_says() -> None:
    tree = tomllib.loads(Path(".streamlit/config.toml").read_text(encoding="utf-8"))
    assert dict(flat(tree)) == dict(OPTIONS)


def test_the_server_listens_where_it_is_told_to_and_nowhere_else() -> None:
    arguments = command(host="127.0.0.1", port=8777, headless=True)
    flags = dict(zip(arguments[5::2], arguments[6::2], strict=True))
    assert (flags["--server.address"], flags["--server.port"]) == ("127.0.0.1", "8777")
    assert flags["--server.headless"] == "true"
    assert Path(arguments[4]).is_file()


def test_both_entries_are_the_same_program() -> None:
    bodies = [
        path.read_text(encoding="utf-8").split('"""')[-1]
        for path in (Path("app.py"), Path("planner/ui/entry/app.py"))
    ]
    assert bodies[0] == bodies[1]


def test_every_page_has_its_file_and_a_place_of_its_own() -> None:
    assert all(page.path.is_file() for page in PAGES)
    assert len({page.name for page in PAGES}) == len(PAGES)
    files = {path.stem for path in PAGES[0].path.parent.glob("*.py")} - {"__init__"}
    assert files == {page.name for page in PAGES}
