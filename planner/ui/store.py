"""Workspaces on disk, each under a token that only its owner's address bar knows: a reload keeps the work."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from planner.clock import Clock, SystemClock
from planner.ui.workspace import Workspace

__all__ = ["Store", "default_folder"]

_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{22}")
_DAYS_KEPT: Final = 30
_DAY_S: Final = 86_400
_BYTES_LIMIT: Final = 200_000_000


def default_folder() -> Path:
    """Where workspaces of this user are kept: ``$XDG_CACHE_HOME/fleetplan/ui``."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "fleetplan" / "ui"


class Store:
    """A folder of workspaces. What cannot be read counts as not there: nobody is locked out by a broken file.

    Args:
        folder: made when it is first written to, for this user alone.
        clock: tells which workspaces nobody has opened for a month; they are forgotten.
    """

    def __init__(self, folder: Path, *, clock: Clock | None = None) -> None:
        self._folder = folder
        self._clock = clock or SystemClock()

    def load(self, token: str) -> Workspace | None:
        """The workspace under a token; None when there is none."""
        path = self._path(token)
        if path is None:
            return None
        try:
            with path.open("rb") as stream:
                content = stream.read(_BYTES_LIMIT + 1)
            return Workspace.model_validate_json(content) if len(content) <= _BYTES_LIMIT else None
        except (OSError, ValidationError):
            return None

    def save(self, token: str, workspace: Workspace) -> bool:
        """Keep a workspace, whole or not at all; whether it was kept."""
        path = self._path(token)
        if path is None:
            return False
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_old()
            handle, draft = tempfile.mkstemp(dir=self._folder, prefix=".draft-")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(workspace.model_dump_json(exclude_defaults=True))
                Path(draft).replace(path)
            except OSError:
                Path(draft).unlink(missing_ok=True)
                return False
        except OSError:
            return False
        return True

    def _path(self, token: str) -> Path | None:
        """Tokens come from the address bar: only what :func:`~planner.ui.browsers.new_token` makes becomes a file name."""
        return self._folder / f"{token}.json" if _TOKEN.fullmatch(token) else None

    def _forget_old(self) -> None:
        oldest_s = self._clock.unix_s() - _DAYS_KEPT * _DAY_S
        for path in self._folder.glob("*.json"):
            if path.stat().st_mtime < oldest_s:
                path.unlink(missing_ok=True)
