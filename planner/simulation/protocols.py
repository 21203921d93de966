"""What is handed into a run: who decides on replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from models.simulation import Observation, RouterSpec

__all__ = ["Admitting", "Autoscaler"]


class Autoscaler(Protocol):
    """Decides how many replicas of each variant there should be.

    It sees observations only: what it remembers is its own, and it reads no clock.
    """

    @property
    def period_s(self) -> float:
        """Simulated seconds from one decision to the next."""

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """Replicas wanted, by variant; a variant that is not named stays as it is.

        Args:
            observation: as scraped; may be older than ``now_s`` by the metric lag of the experiment.
            now_s: simulated time of the decision.
        """


@runtime_checkable
class Admitting(Protocol):
    """An autoscaler that also says how routers admit requests: what to do where capacity cannot grow."""

    def admissions(self) -> Mapping[str, RouterSpec]:
        """Routers that go by another spec from now on, by service; asked after every decision."""
