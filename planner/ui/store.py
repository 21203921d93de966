"""Workspaces on disk, each under a token that only its owner's address bar knows: a reload keeps the work."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Self

from pydantic import ValidationError

from planner.clock import Clock, SystemClock
from planner.ui.workspace import Workspace

__all__ = ["Kept", "Saved", "Store", "default_folder"]

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_DAYS_KEPT: Final = 30
_DAY_S: Final = 86_400
_BYTES_LIMIT: Final = 200_000_000


def default_folder() -> Path:
    """Where workspaces of this user are kept: ``$XDG_CACHE_HOME/fleetplan/ui``."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "fleetplan" / "ui"


@dataclass(frozen=True, slots=True)
class _Stamp:
    """Which writing of a file it is: every writing is a file of its own that takes the name."""

    file: int
    changed_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        return cls(status.st_ino, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class Kept:
    """A workspace as it lies on disk.

    Attributes:
        workspace: what was kept.
        stamp: of this writing.
    """

    workspace: Workspace
    stamp: _Stamp


class Saved(Enum):
    """What came of keeping a workspace."""

    KEPT = "kept"
    OVERTAKEN = "overtaken"
    """Somebody kept another state meanwhile, and that is still there."""
    FAILED = "failed"


class Store:
    """A folder of workspaces. What cannot be read counts as not there: nobody is locked out by a broken file.

    Args:
        folder: made when it is first written to, for this user alone.
        clock: tells which workspaces nobody has opened for a month; they are forgotten.
    """

    def __init__(self, folder: Path, *, clock: Clock | None = None) -> None:
        self._folder = folder
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()

    def load(self, token: str) -> Kept | None:
        """The workspace under a token; None when there is none."""
        path = self._path(token)
        if path is None:
            return None
        try:
            with path.open("rb") as stream:
                content = stream.read(_BYTES_LIMIT + 1)
                stamp = _Stamp.of(os.fstat(stream.fileno()))
            if len(content) > _BYTES_LIMIT:
                return None
            return Kept(Workspace.model_validate_json(content), stamp)
        except (OSError, ValidationError):
            return None

    def save(
        self, token: str, workspace: Workspace, *, over: Kept | None = None
    ) -> tuple[Saved, Kept | None]:
        """Keep a workspace, whole or not at all.

        Args:
            token: under which.
            workspace: what is kept.
            over: the state that it was made from; another one on disk is not written over. None: nothing is known of
                what is there.

        Returns:
            What came of it, and what is kept now where it was.
        """
        path = self._path(token)
        if path is None:
            return Saved.FAILED, None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_old()
            handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".draft-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(workspace.model_dump_json(exclude_defaults=True))
                stamp = _Stamp.of(Path(draft).stat())
                with self._lock:
                    if over is not None and _stamp_on(path) not in (None, over.stamp):
                        return Saved.OVERTAKEN, None
                    Path(draft).replace(path)
            finally:
                Path(draft).unlink(missing_ok=True)
        except OSError:
            return Saved.FAILED, None
        return Saved.KEPT, Kept(workspace, stamp)

    def _path(self, token: str) -> Path | None:
        """Tokens come from the address bar: only what :func:`~planner.ui.browsers.new_token` makes becomes a file name."""
        return self._folder / f"{token}.json" if _TOKEN.fullmatch(token) else None

    def _forget_old(self) -> None:
        oldest_s = self._clock.unix_s() - _DAYS_KEPT * _DAY_S
        for path in self._folder.glob("*.json"):
            with suppress(FileNotFoundError):  # another server may forget it at the same moment
                if path.stat().st_mtime < oldest_s:
                    path.unlink()


def _stamp_on(path: Path) -> _Stamp | None:
    """Of the writing that is on disk; None: there is none, so nothing can be lost."""
    try:
        return _Stamp.of(path.stat())
    except OSError:
        return None
