"""What is handed into a run: who decides on replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from models.simulation import Observation

__all__ = ["Autoscaler"]


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
