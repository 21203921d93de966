"""CBC while it runs: PuLP waits for its process and tells nothing, so what it says is read from its log."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
from pathlib import Path
from typing import Final

__all__ = ["heard", "interrupt", "launcher"]

_PID: Final = "cbc.pid"
_RUNNING: Final = re.compile(r"After \d+ nodes, \d+ on tree, (\S+) best solution, best possible (\S+)")
_FOUND: Final = re.compile(r"Integer solution of (\S+) found")
_RELAXED: Final = re.compile(r"Continuous objective value is (\S+)")
_NONE: Final = 1e40
"""CBC writes 1e+50 for what it does not know."""


def launcher(folder: Path, cbc: str) -> str:
    """The path of a script that notes its process number in the folder and becomes CBC."""
    script = folder / "cbc"
    note = shlex.quote(str(folder / _PID))
    # By lines where the system can: into a file CBC would write four kilobytes at a time.
    by_lines = shutil.which("stdbuf")
    command = f"{by_lines} -oL {shlex.quote(cbc)}" if by_lines else shlex.quote(cbc)
    script.write_text(f'#!/bin/sh\necho $$ > {note}\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o700)
    return str(script)


def interrupt(folder: Path) -> bool:
    """Ask the CBC that was launched from a folder to end with what it has; whether there was one to ask."""
    try:
        os.kill(int((folder / _PID).read_text(encoding="utf-8")), signal.SIGINT)
    except (OSError, ValueError):  # not started yet, or over
        return False
    return True


def heard(log: str) -> tuple[float | None, float | None]:
    """The latest value and bound that a log tells of."""
    values = [float(found) for found in _FOUND.findall(log)]
    bounds = [float(found) for found in _RELAXED.findall(log)]
    for value, bound in _RUNNING.findall(log):
        values.append(float(value))
        bounds.append(float(bound))
    known = [value for value in values if abs(value) < _NONE]
    return (min(known) if known else None), max((b for b in bounds if abs(b) < _NONE), default=None)
