"""Making many small objects without the garbage collector looking on.

The program of a fleet is a million small objects that all stay. Each time so many were made Python walks
through everything that is there to find none of it is garbage: a third of the time that formulating takes.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["collection_paused"]

_lock = Lock()
_pauses = 0
_was_enabled = False


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection inside; pauses nest and may overlap in several threads, the last one out restores what was."""
    global _pauses, _was_enabled  # noqa: PLW0603 - the collector is one per process, so is the count of who paused it
    with _lock:
        if _pauses == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if _pauses == 0 and _was_enabled:
                gc.enable()
