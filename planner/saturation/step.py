"""The threshold step: from demand and capacity to what is missing and what may go, the same for every analyzer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self

from models.autoscaling import ScalingBounds
from planner.saturation.published import BOTH, AnalyzerSignal
from planner.saturation.readings import VariantReading

__all__ = ["LIVE_INTERVALS", "Analysis", "Sized", "Step", "analysis_of", "is_live", "threshold_step"]

LIVE_INTERVALS: Final = 3
"""An analyzer is live while its last informative result is at most so many intervals old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the threshold step says of one scope (a role, or the whole service), in the analyzer's unit.

    Attributes:
        demand: what is asked for, as far as it is known.
        hidden: what missing metrics may hide beside it.
        supply: capacity of ready replicas.
        anticipated: capacity of ready and pending replicas.
        required: capacity missing, RC.
        spare: capacity that may go, SC.
    """

    demand: float
    hidden: float = 0.0
    supply: float
    anticipated: float
    required: float
    spare: float


def threshold_step(
    demand: float, supply: float, *, anticipated: float, bounds: ScalingBounds, hidden: float = 0.0
) -> Step:
    """RC = max(0, demand / up - anticipated),  SC = max(0, supply - (demand + hidden) / down).

    Pending replicas count where capacity may be missing and not where it may go, so nothing has to be blocked while
    replicas start. What missing metrics hide is nothing when growing and all of it when shrinking: a gap in the
    metrics never asks for a replica and never lets one go.

    Source: llm-d autoscaling v0.9, internal/engines/pipeline (universal thresholds); ``hidden`` is ours.
    """
    return Step(
        demand=demand,
        hidden=hidden,
        supply=supply,
        anticipated=anticipated,
        required=max(0.0, demand / bounds.up - anticipated),
        spare=max(0.0, supply - (demand + hidden) / bounds.down),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized:
    """One variant as an analyzer sees it, in the analyzer's unit.

    Attributes:
        name: of the variant.
        role: ``prefill``, ``decode`` or ``both``.
        per_replica: PRC, capacity of one instance; 0: nobody knows.
        instances_per_replica: ranks of a data-parallel replica.
        instances: engine instances that reported.
        unreported: ready instances of which nothing is known.
        pending: instances on order.
        demand: load on the variant, as far as it is known.
        hidden: load that missing metrics may hide.
        reason: where PRC is from, in the analyzer's own words.
        informative: PRC says something.
    """

    name: str
    role: str = BOTH
    per_replica: float
    instances_per_replica: int = 1
    instances: int = 0
    unreported: int = 0
    pending: int = 0
    demand: float = 0.0
    hidden: float = 0.0
    reason: str = ""
    informative: bool = True

    @classmethod
    def of(
        cls, variant: VariantReading, per_replica: float, *, silent: int, reason: str, informative: bool
    ) -> Self:
        """A variant without known load, of whose ready instances ``silent`` tell nothing and may each be full."""
        return cls(
            name=variant.name,
            role=variant.role,
            per_replica=per_replica,
            instances_per_replica=variant.instances_per_pod,
            instances=variant.ready - silent,
            unreported=silent,
            pending=variant.pending_instances,
            hidden=silent * per_replica,
            reason=reason,
            informative=informative,
        )

    @property
    def ready(self) -> int:
        """Ready instances, reporting or not."""
        return self.instances + self.unreported

    @property
    def capacity(self) -> float:
        """Of one replica, with all its instances."""
        return self.per_replica * self.instances_per_replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """One analyzer's answer for one service.

    Attributes:
        analyzer: its name.
        variants: as it sized them, by name.
        total: the whole service.
        roles: the step by role; only ``both`` where no variant has a role of its own.
    """

    analyzer: str
    variants: Mapping[str, Sized]
    total: Step
    roles: Mapping[str, Step] = field(default_factory=dict)

    @property
    def informative(self) -> bool:
        """Whether at least one variant has a size."""
        return any(sized.informative and sized.per_replica > 0 for sized in self.variants.values())

    def within(self, bounds: Mapping[str, ScalingBounds]) -> Analysis:
        """The same with other bounds for some roles."""
        roles = {
            role: threshold_step(
                step.demand,
                step.supply,
                anticipated=step.anticipated,
                bounds=bounds[role],
                hidden=step.hidden,
            )
            if role in bounds
            else step
            for role, step in self.roles.items()
        }
        return replace(self, roles=roles)

    def signal(self, *, live: bool = True, score: float = 1.0, enabled: bool = True) -> AnalyzerSignal:
        """What the published heuristics read of it."""
        return AnalyzerSignal(
            name=self.analyzer,
            required={role: step.required for role, step in self.roles.items()},
            spare={role: step.spare for role, step in self.roles.items()},
            demand={role: step.demand for role, step in self.roles.items()},
            total_demand=self.total.demand,
            score=score,
            enabled=enabled,
            live=live,
            informative=self.informative,
            capacities={name: sized.capacity for name, sized in self.variants.items()},
        )


def analysis_of(
    analyzer: str,
    variants: Sequence[Sized],
    bounds: ScalingBounds,
    *,
    queued: float = 0.0,
    queued_by_role: Mapping[str, float] | None = None,
) -> Analysis:
    """Apply the threshold step to the whole service and to each role.

    Args:
        analyzer: name of the analyzer.
        variants: as it sized them.
        bounds: up and down.
        queued: demand of the whole service beside its variants', e.g. requests that the router holds.
        queued_by_role: the same for a role (prefill and decode shares may sum to more than ``queued``); not listed:
            ``queued``.
    """
    shares = queued_by_role or {}
    told_apart = any(sized.role != BOTH for sized in variants)
    roles = sorted({sized.role for sized in variants}) if told_apart else [BOTH]
    return Analysis(
        analyzer=analyzer,
        variants={sized.name: sized for sized in variants},
        total=_step(variants, queued, bounds),
        roles={
            role: _step([v for v in variants if v.role == role], shares.get(role, queued), bounds)
            for role in roles
        },
    )


def _step(variants: Iterable[Sized], queued: float, bounds: ScalingBounds) -> Step:
    listed = list(variants)
    return threshold_step(
        math.fsum([queued, *(sized.demand for sized in listed)]),
        math.fsum(sized.ready * sized.per_replica for sized in listed),
        anticipated=math.fsum((sized.ready + sized.pending) * sized.per_replica for sized in listed),
        hidden=math.fsum(sized.hidden for sized in listed),
        bounds=bounds,
    )


def is_live(last_informative_s: float | None, now_s: float, *, interval_s: float) -> bool:
    """Whether an analyzer may veto or permit: its last informative result is at most three intervals old.

    Source: llm-d autoscaling v0.9, internal/engines/saturation (liveness).
    """
    return last_informative_s is not None and now_s - last_informative_s <= LIVE_INTERVALS * interval_s
