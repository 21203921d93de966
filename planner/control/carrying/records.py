"""Audit records of what was carried out, one JSON line for each thing that happened, and a file that leads back."""

from __future__ import annotations

import getpass
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from models import SCHEMA
from models.applied import ApplyEvent, ApplyEventKind, Undo
from models.plan import Plan
from models.report import Report
from planner.clock import Clock
from planner.control.carrying.review import Begun
from planner.errors import ConfigurationError, Finding
from planner.manifests import Route

__all__ = ["UNDO", "Recorder", "begun_of", "read_events", "records_folder"]

UNDO: Final = "undo"
"""Kind of a file that leads back."""

_MOST_BYTES: Final = 64 * 2**20
_LOOKED_AT: Final = 200
"""Records that are looked through for one of the same plan."""


def records_folder() -> Path:
    """Where records are kept unless somebody says otherwise: ``$XDG_STATE_HOME/fleetplan/applied``."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "fleetplan" / "applied"


class Recorder:
    """Writes one record, for this user alone, line by line: what is not on disk was not begun.

    Args:
        folder: made if it is not there.
        route: that is carried out.
        clock: for its name.
    """

    def __init__(self, folder: Path, route: Route, clock: Clock) -> None:
        self._folder = folder
        self._begun_s = clock.unix_s()
        self._route = route
        moment = datetime.fromtimestamp(self._begun_s, UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        way = "back" if route.way_back else "there"
        self.path = folder / f"{moment}-{way}-{(route.derived_from or 'unnamed')[:16]}.jsonl"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except OSError as cause:
            found = f"that it cannot be written: {cause.strerror}"
            raise ConfigurationError.from_findings(
                [Finding(str(self.path), None, "", found, "a folder that we may write")]
            ) from cause
        self._stream = os.fdopen(handle, "w", encoding="utf-8")

    @property
    def undo_path(self) -> Path:
        """The file that leads back."""
        return self.path.with_suffix(".undo.json")

    def begin(self, *, why: str = "") -> ApplyEvent:
        """Who carries what out, where; the first line."""
        facts = {
            "user": _user(),
            "host": socket.gethostname(),
            "plan": self._route.name,
            "solution": self._route.derived_from,
            "direction": "back" if self._route.way_back else "there",
            "clusters": ", ".join(name or "the only one" for name in self._route.clusters),
        }
        event = ApplyEvent(
            at_s=self._begun_s,
            kind=ApplyEventKind.BEGUN,
            message=why[:1000] or "no reason was given",
            facts=facts,
        )
        self.note(event)
        return event

    def note(self, event: ApplyEvent) -> None:
        """Add a line, and have it on disk before returning."""
        self._stream.write(f"{event.canonical_json()}\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def keep_undo(self, report: Report, plan: Plan, *, cluster: str | None = None) -> None:
        """Write what leads back from these waves, whole or not at all.

        Args:
            report: the answer.
            plan: its waves as far as any of them was begun.
            cluster: whose objects alone are carried out; None: all.
        """
        undo = Undo(report=report, plan=plan, cluster=cluster, begun_s=self._begun_s)
        document = {
            "schema": SCHEMA,
            "kind": UNDO,
            "fingerprint": undo.fingerprint,
            UNDO: undo.model_dump(mode="json"),
        }
        handle, name = tempfile.mkstemp(dir=self._folder, prefix=".undo-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(document, stream, sort_keys=True, allow_nan=False, ensure_ascii=False)
                stream.write("\n")
            Path(name).replace(self.undo_path)
        finally:
            Path(name).unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing more happens."""
        self._stream.close()


def _user() -> str:
    """Who runs this, as far as the machine knows."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def read_events(path: Path) -> tuple[ApplyEvent, ...]:
    """The lines of a record; a last line that was cut, and lines of others, are left out.

    Raises:
        OSError: it cannot be read.
    """
    if path.stat().st_size > _MOST_BYTES:
        return ()
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValidationError):
            found.append(ApplyEvent.model_validate_json(line))
    return tuple(found)


def begun_of(folder: Path, route: Route) -> Begun:
    """What the last record of this very plan says of the way so far; nothing where there is none.

    Args:
        folder: of the records.
        route: that is to be carried out.
    """
    for events in _latest(folder):
        facts = events[0].facts if events else {}
        waves = [event.wave for event in events if event.kind is ApplyEventKind.WAVE]
        if not waves or not route.derived_from or facts.get("solution") != route.derived_from:
            continue
        over = events[-1].kind is ApplyEventKind.DONE
        if facts.get("direction") != ("back" if route.way_back else "there"):
            # From somewhere on the way of the other direction, where that was stopped, each count fits both.
            return Begun(some=not over)
        return Begun() if over else Begun(max(0, waves[-1] - 1), some=True)
    return Begun()


def _latest(folder: Path) -> Iterator[tuple[ApplyEvent, ...]]:
    """Records, the latest first."""
    try:
        paths = sorted(folder.glob("*.jsonl"), reverse=True)[:_LOOKED_AT]
    except OSError:
        return
    for path in paths:
        with suppress(OSError):
            yield read_events(path)
