"""Solvers that greet: standard output is for answers, and standard error for what people should read."""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

import highspy

__all__ = ["Hush", "let_highs_greet"]

_STDERR: Final = 2


@cache
def let_highs_greet() -> None:
    """Make the first HiGHS of the process with file descriptor 1 pointed at nothing; later calls do nothing.

    HiGHS 1.16 prints a banner when its first instance is made.
    """
    sys.stdout.flush()
    real = os.dup(1)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            highspy.Highs()  # type: ignore[no-untyped-call]
        finally:
            os.dup2(real, 1)
            os.close(real)


class Hush:
    """Holds back what C code writes on standard error until :meth:`lift`, then lets all but known noise through.

    OR-Tools 9.15 prints two lines of errors whenever SCIP starts with something that may interrupt it, which it can.
    """

    def __init__(self, noise: tuple[bytes, ...]) -> None:
        self._noise = noise
        self._held = tempfile.TemporaryFile()  # noqa: SIM115 - closed when lifted
        sys.stderr.flush()
        self._real: int | None = os.dup(_STDERR)
        os.dup2(self._held.fileno(), _STDERR)

    def lift(self) -> None:
        """Standard error is as it was; later calls do nothing."""
        if self._real is None:
            return
        real, self._real = self._real, None
        os.dup2(real, _STDERR)
        os.close(real)
        self._held.seek(0)
        for line in self._held.read().splitlines(keepends=True):
            if not any(words in line for words in self._noise):
                os.write(_STDERR, line)
        self._held.close()
