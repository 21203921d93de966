"""What a task is given besides its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from planner.optimization.protocol import ProgressEvent

__all__ = ["Reporter", "Run"]


class Reporter(Protocol):
    """Where a task says how far it is, and learns that nobody wants it any more."""

    def progress(self, event: ProgressEvent) -> None:
        """A sign of life of a solver."""

    def partial(self, value: str) -> None:
        """A first answer, JSON, to look at while the real one is on its way."""

    def stopped(self) -> bool:
        """Whether the task should end with the best it has."""


Run = Callable[[Mapping[str, Any], Reporter], str]
