"""How functions of the kernel are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit

__all__ = ["compiled"]

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile once and keep it on disk; without the GIL, and without counting references.

    The kernel makes no arrays, only views of those that the caller holds, so that nobody has to count who uses them:
    that is most of what a call with the state as argument would cost, in time to compile and in time to run.
    """
    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": False}
    made: Callable[P, R] = njit(**options)(function)
    return made
