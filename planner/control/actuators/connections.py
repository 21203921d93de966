"""What actuators act through: the clusters, and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from planner.control.cluster import Api

if TYPE_CHECKING:
    from models.observation import VariantObservation
    from planner.clock import Clock

__all__ = ["Connections"]


@dataclass(frozen=True, kw_only=True)
class Connections:
    """The clusters that variants are in.

    Writes through them are never repeated where nobody knows whether they were done: state is read first.

    Args:
        clock: for waits and limits.
        apis: of the clusters, each with a name where there are several.
        instance: of this controller among several, for labels of series; None: the only one.
        within_s: how long one actuator may take for one round of decisions in one cluster, s.
    """

    clock: Clock
    apis: tuple[Api, ...] = ()
    instance: str | None = None
    within_s: float = 10.0
    waits: dict[str | None, float] = field(default_factory=dict, repr=False, compare=False)
    """Until when a cluster asked not to be called, by its name; seconds of the monotonic clock."""
    turns: dict[tuple[str, str, str], int] = field(default_factory=dict, repr=False, compare=False)
    """Variants, by their key, whose turn is before (-1) or after (1) that of others in the next round."""

    @cached_property
    def by_name(self) -> Mapping[str | None, Api]:
        """The same by cluster, in the limits of a round."""
        return {
            api.name: replace(
                api,
                careful=True,
                limits=replace(api.limits, within_s=min(api.limits.within_s, self.within_s)),
            )
            for api in self.apis
        }

    def of(self, variant: VariantObservation) -> Api | None:
        """The API of the variant's own cluster; None: it is in none of ours."""
        found = self.by_name.get(variant.cluster)
        if found is None and len(self.by_name) == 1 and None in (variant.cluster, *self.by_name):
            return next(iter(self.by_name.values()))
        return found
