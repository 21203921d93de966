"""How long each phase of a cycle took, and where one broke."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from planner.clock import Clock

__all__ = ["Phases", "place_of"]


def place_of(cause: BaseException) -> str:
    """Kind and place of a fault, for the log: its words may hold what nobody may read."""
    frames = traceback.extract_tb(cause.__traceback__)
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames[-3:]]
    return f"{type(cause).__name__} at {' > '.join(places) or 'nowhere'}"


@dataclass(slots=True)
class Phases:
    """Measures phases.

    Args:
        clock: for durations.
    """

    clock: Clock
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def total_s(self) -> float:
        """Of all phases so far, s."""
        return sum(self.seconds.values())

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Measure what is done inside."""
        began_s = self.clock.monotonic_s()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.clock.monotonic_s() - began_s
