"""Profile tables that a scenario names: looked for beside the file that names them."""

from __future__ import annotations

from pathlib import Path

from planner.scenario.files import Source, similar_name
from planner.scenario.tree import Complaints, Entry

__all__ = ["locate_profiles"]

_KEY = "profiles"


def locate_profiles(document: Entry, source: Source, complaints: Complaints) -> Entry:
    """The document with the path of every profile as this process finds it; missing ones are complained about.

    Args:
        document: written out.
        source: the scenario file.
        complaints: takes profiles that are not there.
    """
    named = document.fields.get(_KEY)
    if named is None or not named.items:
        return document
    found = tuple(_located(entry, source, complaints) for entry in named.items)
    return document.but({**document.fields, _KEY: named.but(found)})


def _located(entry: Entry, source: Source, complaints: Complaints) -> Entry:
    if entry.name is None:
        return entry
    path = _folder(entry, source) / entry.name
    if source.confined and not _is_inside(path, source.root):
        complaints.about(entry, entry.phrase(), allowed="the name of a table that comes with the scenario")
        return entry
    if not _is_there(path):
        complaints.about(entry, f"{entry.phrase()}: no such file", suggestion=similar_name(path))
        return entry
    return entry.but(str(path))


def _folder(entry: Entry, source: Source) -> Path:
    """That of the file which holds the entry; an override counts as part of the scenario."""
    if entry.line is not None and entry.file != source.label:
        return Path(entry.file).parent
    if source.chain or source.path is None:
        return Path(source.label).parent
    return source.path.parent


def _is_inside(path: Path, root: Path | None) -> bool:
    try:
        return root is not None and path.resolve().is_relative_to(root) and path.is_file()
    except (OSError, ValueError):
        return False


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
