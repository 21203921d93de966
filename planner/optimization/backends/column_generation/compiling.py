"""Everything that column generation compiles, before anybody's time runs."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Final

from planner.clock import SolvingClock
from planner.optimization.backends.column_generation import (
    branched,
    branched_nearby,
    covering,
    enumeration,
    mending,
    nearby,
)

__all__ = ["compile_all"]

_LOG: Final = logging.getLogger(__name__)


@cache
def compile_all() -> None:
    """Compile all kernels, or load them from the cache on disk; no limit on solving counts the time.

    Where nothing is on disk yet a warning says what everybody waits for.
    """
    if not _on_disk():
        _LOG.warning("compiling the solver's kernels: once per installation, about a minute")
    with SolvingClock.standing_still():
        covering.compile_kernel()
        branched.compile_branching()
        enumeration.compile_enumeration()
        nearby.compile_nearby()
        mending.compile_mending()
        branched_nearby.compile_branched_nearby()


def _on_disk() -> bool:
    """Whether the slowest kernel was compiled here before, if perhaps from an older source."""
    cached = branched.price_blocks.stats.cache_path
    name = f"{Path(branched.__file__).stem}.price_blocks"
    return cached is not None and next(Path(cached).glob(f"{name}-*.nbi"), None) is not None
