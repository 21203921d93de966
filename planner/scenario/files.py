"""Scenario files and what they include -> one document."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from planner.errors import Finding, nearest
from planner.scenario.reading import read_yaml
from planner.scenario.shape import merge
from planner.scenario.shapes import SCENARIO
from planner.scenario.tree import Complaints, Entry

__all__ = [
    "BYTES_LIMIT",
    "DEPTH_LIMIT",
    "FILES_LIMIT",
    "Source",
    "read_document",
    "read_text",
    "similar_name",
]

BYTES_LIMIT: Final = 20_000_000
DEPTH_LIMIT: Final = 10
FILES_LIMIT: Final = 50
_INCLUDE: Final = "include"


@dataclass(frozen=True, slots=True)
class Source:
    """One file.

    Attributes:
        label: the file as the user named it.
        path: the file itself; None: a text from no file.
        root: folder that relative includes must stay in; None: nothing can be included.
        chain: files that led here, this one last.
        confined: every file must stay in ``root``: the text is a stranger's.
    """

    label: str
    path: Path | None = None
    root: Path | None = None
    chain: tuple[Path, ...] = ()
    confined: bool = False


@dataclass(slots=True)
class _Reading:
    complaints: Complaints
    files: list[str] = field(default_factory=list)


def read_text(path: Path, *, label: str, complaints: Complaints, asked_by: Entry | None = None) -> str | None:
    """The text of a file; None if it cannot be had, which is then complained about.

    Args:
        path: the file.
        label: its name for findings.
        complaints: takes what is wrong.
        asked_by: the entry that names the file; None: the user did.
    """
    refuse = partial(_refuse, complaints, label, asked_by)
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            refuse(found="a folder" if stat.S_ISDIR(mode) else "no regular file", allowed="a YAML file")
            return None
        # Not what stat says but what comes: files of /proc claim to be empty, and a file may grow meanwhile.
        with path.open("rb") as stream:
            content = stream.read(BYTES_LIMIT + 1)
        if len(content) > BYTES_LIMIT:
            size = max(len(content), path.stat().st_size)
            refuse(found=f"{size / 1e6:.1f} MB", allowed=f"at most {BYTES_LIMIT / 1e6:.0f} MB")
            return None
    except FileNotFoundError:
        refuse(found="no such file", near=path)
        return None
    except (OSError, ValueError) as error:
        refuse(found=f"a file that cannot be read: {getattr(error, 'strerror', None) or error}")
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        complaints.add(Finding(label, line, "", f"byte 0x{content[error.start]:02x}", "text in UTF-8"))
        return None


def _refuse(
    complaints: Complaints,
    label: str,
    asked_by: Entry | None,
    *,
    found: str,
    allowed: str = "",
    near: Path | None = None,
) -> None:
    suggestion = similar_name(near) if near is not None else None
    if asked_by is None:
        complaints.add(Finding(label, None, "", found, allowed, suggestion))
    else:
        complaints.about(asked_by, f"{asked_by.phrase()}: {found}", allowed=allowed, suggestion=suggestion)


def similar_name(path: Path) -> str | None:
    """The name in the same folder that is most like that of a file which is not there; None: none is."""
    try:
        return nearest(path.name, sorted(other.name for other in path.parent.iterdir()))
    except (OSError, ValueError):
        return None


def read_document(text: str, source: Source, complaints: Complaints) -> Entry | None:
    """The document of a text with everything that it includes; None if its top is not a mapping."""
    return _read(text, source, _Reading(complaints))


def _read(text: str, source: Source, reading: _Reading) -> Entry | None:
    document = read_yaml(text, file=source.label, complaints=reading.complaints)
    if document is None:
        return None
    if not isinstance(document.value, dict):
        found = document.phrase() if len(source.chain) <= 1 else _kind(document)
        reading.complaints.about(document, found, allowed="a mapping with services and pools")
        return None
    own = document.but({key: entry for key, entry in document.fields.items() if key != _INCLUDE})
    included = document.fields.get(_INCLUDE)
    if included is None:
        return own
    base = own.but({})
    for entry in included.items or (included,):
        below = _include(entry, source, reading)
        base = merge(base, below, SCENARIO) if below is not None else base
    return merge(base, own, SCENARIO)


def _kind(document: Entry) -> str:
    """What an included document is, without what it says: it may be a file that is nobody's business."""
    return "a text" if document.name is not None else "a list" if document.items else "a single value"


def _include(entry: Entry, source: Source, reading: _Reading) -> Entry | None:
    complaints = reading.complaints
    path = _located(entry, source, complaints)
    if path is None:
        return None
    if path in source.chain:
        circle = " -> ".join(one.name for one in (*source.chain[source.chain.index(path) :], path))
        complaints.about(entry, f"a circle: {circle}", allowed="files that do not include each other")
        return None
    if len(source.chain) >= DEPTH_LIMIT or len(reading.files) >= FILES_LIMIT:
        complaints.about(
            entry,
            "too many includes",
            allowed=f"{DEPTH_LIMIT} files deep and {FILES_LIMIT} files in all at most",
        )
        return None
    label = str(Path(source.label).parent / (entry.name or ""))
    reading.files.append(label)
    text = read_text(path, label=label, complaints=complaints, asked_by=entry)
    if text is None:
        return None
    return _read(text, replace(source, label=label, path=path, chain=(*source.chain, path)), reading)


def _located(entry: Entry, source: Source, complaints: Complaints) -> Path | None:
    if entry.name is None or not entry.name.strip() or "\0" in entry.name:
        complaints.about(entry, entry.phrase(), allowed="the name of a file, or a list of them")
        return None
    named = Path(entry.name)
    if named.is_absolute() and not source.confined:
        return _resolved(named)
    if source.confined and source.root is None:
        complaints.about(entry, entry.phrase(), allowed="no includes; this text stands alone")
        return None
    if source.root is None or source.path is None:
        complaints.about(entry, entry.phrase(), allowed="an absolute path; this text is from no file")
        return None
    path = _resolved(source.path.parent / named)
    if not path.is_relative_to(source.root):
        complaints.about(
            entry,
            f"{entry.phrase()}, outside of the scenario's folder",
            allowed="a file in it" if source.confined else "a file in it, or an absolute path",
        )
        return None
    return path


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()
