"""HiGHS 1.16 prints a banner when its first instance is made; standard output is for answers."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import highspy

__all__ = ["let_highs_greet"]


@cache
def let_highs_greet() -> None:
    """Make the first HiGHS of the process with file descriptor 1 pointed at nothing; later calls do nothing."""
    sys.stdout.flush()
    real = os.dup(1)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            highspy.Highs()  # type: ignore[no-untyped-call]
        finally:
            os.dup2(real, 1)
            os.close(real)
