"""How long each phase of a cycle took."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from planner.clock import Clock

__all__ = ["Phases"]


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
