"""The program of a worker process: ``python -m planner.ui.worker``, JSON lines on standard input and output.

In: ``{"id", "kind", "arguments"}`` starts a task, ``{"stop": id}`` asks it to end with the best it has.
Out: ``{"id", "event": "progress" | "partial" | "result" | "error", "value"}``; the last two end a task.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from queue import SimpleQueue
from typing import IO, Any, TextIO

from planner.errors import ConfigurationError, FleetPlanError
from planner.optimization.protocol import ProgressEvent
from planner.ui.tasks import task

__all__ = ["main"]


class _Inbox:
    """Reads standard input in a thread of its own, so that a stop is heard while a task runs."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._tasks: SimpleQueue[Mapping[str, Any] | None] = SimpleQueue()
        self._stopped: set[str] = set()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._stream:
            message = json.loads(line)
            if "stop" in message:
                self._stopped.add(message["stop"])
            else:
                self._tasks.put(message)
        self._tasks.put(None)

    def tasks(self) -> Iterator[Mapping[str, Any]]:
        """Tasks as they come, until the other side closes."""
        while (message := self._tasks.get()) is not None:
            self._stopped.discard(message["id"])
            yield message

    def stopped(self, key: str) -> bool:
        """Whether a task was asked to end."""
        return key in self._stopped


class _Report:
    """Says on the pipe what a task reports."""

    def __init__(self, key: str, inbox: _Inbox, out: TextIO) -> None:
        self._key = key
        self._inbox = inbox
        self._out = out
        self._lock = threading.Lock()

    def say(self, event: str, value: object) -> None:
        line = json.dumps({"id": self._key, "event": event, "value": value})
        with self._lock:
            self._out.write(f"{line}\n")
            self._out.flush()

    def progress(self, event: ProgressEvent) -> None:
        self.say("progress", {**asdict(event), "gap": event.gap})

    def partial(self, value: str) -> None:
        self.say("partial", value)

    def stopped(self) -> bool:
        return self._inbox.stopped(self._key)


def main() -> None:
    """Work until standard input is closed."""
    out = _private_output()
    inbox = _Inbox(sys.stdin)
    for message in inbox.tasks():
        report = _Report(message["id"], inbox, out)
        try:
            report.say("result", task(message["kind"])(message["arguments"], report))
        except Exception as fault:
            report.say("error", _failure(fault))


def _private_output() -> TextIO:
    """The pipe to the app, out of reach of solvers that print."""
    private = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(private, "w", encoding="utf-8")


def _failure(fault: Exception) -> dict[str, Any]:
    findings = [str(each) for each in fault.findings] if isinstance(fault, ConfigurationError) else []
    if isinstance(fault, FleetPlanError):
        return {"fault": type(fault).__name__, "message": str(fault).splitlines()[0], "findings": findings}
    traceback.print_exception(fault)
    message = f"a fault of ours: {type(fault).__name__}: {fault}"
    return {"fault": "InternalError", "message": message, "findings": findings}


if __name__ == "__main__":
    main()
