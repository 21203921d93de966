"""Folders of ours on disk: the whole folder in one move, and never over files that are not ours."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from planner.errors import ConfigurationError, Finding

__all__ = ["check_folder", "refuse", "refuse_unwritable", "whole_folder", "write_folder"]


def check_folder(path: Path, *, mark: str) -> None:
    """Refuse a folder that could not be written, or that holds files of others.

    Args:
        path: missing, empty, or written by us before.
        mark: first words of every file of ours.

    Raises:
        ConfigurationError: it is a file, holds something that does not begin with ``mark``, or cannot be made.
    """
    refuse_unwritable(path)
    folder = path.resolve()
    strangers = (
        sorted(each.name for each in folder.iterdir() if not _ours(each, mark)) if folder.exists() else []
    )
    if strangers:
        refuse(
            path,
            f"files that are not ours: {', '.join(strangers[:5])}",
            "a new folder, an empty one, or one that we wrote",
        )


def refuse_unwritable(path: Path) -> None:
    """Refuse a folder that could not be put in place, whatever it holds.

    Raises:
        ConfigurationError: it is a file, the folder we are in or one above it, or cannot be made.
    """
    folder = path.resolve()
    if folder.exists() and not folder.is_dir():
        refuse(path, "a file", "the name of a folder")
    if folder in (Path.cwd(), *Path.cwd().parents):
        refuse(path, "the folder we are in, or one above it", "a folder of its own")
    if not folder.parent.is_dir():
        refuse(path, f"no folder {str(folder.parent)!r}", "a folder in a folder that exists")
    if not os.access(folder.parent, os.W_OK):
        refuse(
            path,
            f"the folder {str(folder.parent)!r}, which we may not write to",
            "a folder that we may write to",
        )


def write_folder(path: Path, files: Mapping[str, str], *, mark: str) -> None:
    """Put a folder of texts in place in one move; what we wrote there before is replaced as a whole.

    Args:
        path: of the folder.
        files: texts by file name; each begins with ``mark``.
        mark: first words of every file of ours.

    Raises:
        ConfigurationError: as :func:`check_folder`, or it cannot be written; nothing was left behind.
    """
    check_folder(path, mark=mark)
    with whole_folder(path) as made:
        for file_name, text in files.items():
            (made / file_name).write_text(text, encoding="utf-8")


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill that takes the place of ``path`` at the end in one move, and without the end is gone.

    Raises:
        ConfigurationError: it cannot be written; nothing was left behind.
    """
    folder = path.resolve()
    try:
        with tempfile.TemporaryDirectory(
            dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"
        ) as name:
            made = Path(name) / "new"
            made.mkdir()
            yield made
            _swap(made, folder, Path(name) / "old")
    except OSError as cause:
        if isinstance(cause, BrokenPipeError):
            raise
        finding = Finding(str(path), None, "", f"that it cannot be written: {cause.strerror}",
                          "a folder that we may write")  # fmt: skip
        raise ConfigurationError.from_findings([finding]) from cause


def _swap(made: Path, folder: Path, old: Path) -> None:
    """Let ``made`` take the place of ``folder``; if that fails the old one is back."""
    if not folder.exists():
        made.rename(folder)
        return
    shutil.copymode(folder, made)
    folder.rename(old)
    try:
        made.rename(folder)
    except OSError:
        old.rename(folder)
        raise


def _ours(path: Path, mark: str) -> bool:
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(mark.encode())) == mark.encode()


def refuse(path: Path, found: str, allowed: str) -> NoReturn:
    """Say what is wrong with a folder.

    Raises:
        ConfigurationError: always.
    """
    raise ConfigurationError.from_findings([Finding(str(path), None, "", found, allowed)])
