"""What replays leave on disk, traces that visitors brought and tables to take along: the newest are kept."""

from __future__ import annotations

import shutil
from pathlib import Path

__all__ = ["forget_old"]


def forget_old(folder: Path, most: int) -> None:
    """Forget all but the newest files and folders in a folder; another process may be doing the same.

    Args:
        folder: that holds them.
        most: that stay.
    """
    for old in sorted(folder.iterdir(), key=_changed_s)[:-most]:
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)


def _changed_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # forgotten at the same moment
        return 0.0
