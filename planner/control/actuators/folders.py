"""A folder of ours that changes as a whole."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.control.cluster.reading import count_at, mapping_of, text_at

__all__ = ["Texts", "Written", "read_written", "replace_folder"]

_STATE: Final = ".fleetplan.json"
"""What the files beside it say, for us; it marks the folder as ours."""
_MOST: Final = 16 * 2**20
_OLD: Final = ".fleetplan-old"


@dataclass(frozen=True, slots=True)
class Written:
    """What a folder says.

    Attributes:
        counts: replicas by variant, ``namespace/name``.
        digest: of everything in it that matters.
    """

    counts: Mapping[str, int]
    digest: str


@dataclass(frozen=True, slots=True)
class Texts:
    """What a folder is to hold.

    Attributes:
        render: makes the texts by name, which takes a while and is needed only where something changed.
        counts: replicas by variant.
        digest: of everything in it that matters; comments do not.
    """

    render: Callable[[], Mapping[str, str]]
    counts: Mapping[str, int]
    digest: str


def read_written(folder: Path) -> Written | None:
    """What a folder says; None: it is not there.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds something that is not ours.
    """
    aside = folder.with_name(f"{folder.name}{_OLD}")
    if not folder.exists() and aside.exists():
        # We ended between putting the old one aside and the new one in its place.
        aside.rename(folder)
    if not folder.exists() or not any(folder.iterdir()):
        return None
    state = folder / _STATE
    if not state.is_file() or state.stat().st_size > _MOST:
        raise ValueError(f"{folder} holds files that are not ours; name another folder, or empty it")
    try:
        said = json.loads(state.read_text("utf-8"))
    except (ValueError, RecursionError):
        said = {}
    counts = mapping_of(mapping_of(said).get("counts"))
    known = {key: count for key in counts if (count := count_at(counts, key)) is not None}
    missing = [name for name in mapping_of(mapping_of(said).get("files")) if not (folder / name).is_file()]
    return Written(known, "" if missing else text_at(said, "digest"))


def replace_folder(folder: Path, texts: Texts) -> None:
    """Put a folder in place of the one of its name.

    Raises:
        OSError: it cannot be written; what was there is there.
    """
    files = texts.render()
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f"{folder.name}{_OLD}")
    fresh = Path(tempfile.mkdtemp(prefix=".fleetplan-", dir=folder.parent))
    try:
        fresh.chmod(0o755)
        state = {"counts": dict(texts.counts), "digest": texts.digest, "files": dict.fromkeys(files, "")}
        for name, text in {**files, _STATE: json.dumps(state, sort_keys=True)}.items():
            _put(folder / name, fresh / name, text)
        _swap(folder, fresh, aside)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(aside, ignore_errors=True)


def _put(old: Path, new: Path, text: str) -> None:
    """Write a file, or take over the one that says the same."""
    with contextlib.suppress(OSError, ValueError):
        if old.read_text("utf-8") == text:
            new.hardlink_to(old)
            return
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    if new.suffix == ".sh":
        new.chmod(0o755)


def _swap(folder: Path, fresh: Path, aside: Path) -> None:
    if aside.exists():
        shutil.rmtree(aside)
    if folder.exists():
        folder.rename(aside)
    try:
        fresh.rename(folder)
    except OSError:
        if aside.exists():
            aside.rename(folder)
        raise
