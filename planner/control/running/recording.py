"""Records of cycles: JSON lines in files that follow one another, the oldest of which go."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Final

from pydantic import ValidationError

from models.controller import RecordSettings
from models.cycle_record import CycleRecord
from planner.errors import ConfigurationError, Finding

__all__ = ["Records", "read_records", "record_files"]

_NAME: Final = "cycles-*.jsonl"
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_KEPT_IN_MEMORY: Final = 200
_LONGEST_LINE: Final = 64 * 2**20
STATE: Final = "state.json"
"""What deciding remembers, for the next start."""


class Records:
    """Writes records; a disk that is full or gone is counted, and stops nothing.

    Args:
        settings: where, and how much of it.
        who: the controller, for names of files: two controllers may share a folder.
        unix_s: when it started, seconds of the epoch.

    Raises:
        ConfigurationError: the folder cannot be made or written.
    """

    def __init__(self, settings: RecordSettings, *, who: str, unix_s: float) -> None:
        self._settings = settings
        moment = datetime.fromtimestamp(unix_s, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        self._stem = f"cycles-{moment}-{_UNFIT.sub('-', who)[:100]}"
        self._part = 0
        self._size = 0
        self._lock = Lock()
        self._last: deque[CycleRecord] = deque(maxlen=_KEPT_IN_MEMORY)
        self.failures = 0
        if settings.folder is not None:
            _make(settings.folder)

    @property
    def last(self) -> tuple[CycleRecord, ...]:
        """The newest ones, the newest last."""
        with self._lock:
            return tuple(self._last)

    def write(self, record: CycleRecord) -> bool:
        """Keep a record; False: it could not be written, and is kept in memory alone."""
        with self._lock:
            self._last.append(record)
            if self._settings.folder is None:
                return True
            line = f"{record.canonical_json()}\n".encode()
            try:
                self._append(self._settings.folder, line)
            except OSError:
                self.failures += 1
                return False
            return True

    def keep_state(self, text: str) -> bool:
        """Keep what deciding remembers; False: it could not be written."""
        folder = self._settings.folder
        if folder is None:
            return True
        made = folder / f".{STATE}.{os.getpid()}"
        try:
            made.write_text(text, encoding="utf-8")
            made.replace(folder / STATE)
        except OSError:
            self.failures += 1
            with suppress(OSError):
                made.unlink()
            return False
        return True

    def read_state(self) -> str | None:
        """What the controller before remembered; None: nothing that can be read."""
        if self._settings.folder is None:
            return None
        try:
            return (self._settings.folder / STATE).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def _append(self, folder: Path, line: bytes) -> None:
        if self._size and self._size + len(line) > self._settings.most_bytes:
            self._part, self._size = self._part + 1, 0
        path = folder / f"{self._stem}-{self._part:05d}.jsonl"
        is_new = self._size == 0
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            _whole_line(handle, line)
        finally:
            os.close(handle)
        self._size += len(line)
        if is_new:
            for old in record_files(folder)[: -self._settings.files]:
                with suppress(OSError):
                    old.unlink()


def _whole_line(handle: int, line: bytes) -> None:
    """Add a line to a file, whole or not at all: after half of one the next would be lost as well."""
    before = os.fstat(handle).st_size
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(handle, rest) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, before)
        raise


def record_files(folder: Path) -> list[Path]:
    """Files of records in a folder, the oldest first."""
    return sorted(path for path in folder.glob(_NAME) if path.is_file())


def read_records(folder: Path, *, newest: int | None = None) -> Iterator[CycleRecord]:
    """Records of a folder, the oldest first; lines that are damaged, or of a later version, are passed over.

    Args:
        folder: that a controller writes to.
        newest: so many of them at most; None: all.
    """
    if newest is None:
        for path in record_files(folder):
            yield from _of_file(path)
        return
    found: deque[CycleRecord] = deque()
    for path in reversed(record_files(folder)):
        mine = deque(_of_file(path), maxlen=newest - len(found))
        found.extendleft(reversed(mine))
        if len(found) >= newest:
            break
    yield from found


def _of_file(path: Path) -> Iterator[CycleRecord]:
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                with suppress(ValidationError):
                    yield CycleRecord.model_validate_json(line)
    except OSError:
        return


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".writable.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as cause:
        found = f"{str(folder)!r}, which cannot be written: {cause.strerror}"
        raise ConfigurationError.from_findings(
            [Finding("", None, "records.folder", found, "a folder that we may write")]
        ) from None
