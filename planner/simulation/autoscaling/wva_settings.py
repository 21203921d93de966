"""What WVA is told: the variants of each service, and how its analyzer works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from models.autoscaling import ScalingBounds
from models.saturation import SaturationThresholds
from models.simulation import ReplicaSpec, TwinSpec
from planner.saturation import EngineLimits
from planner.saturation.published import VariantState
from planner.saturation.published.enforcer import DEFAULT_COST

__all__ = ["Analyzer", "WvaSettings", "WvaVariant", "wva_variants"]


class Analyzer(StrEnum):
    """Which analyzer decides."""

    PERCENTAGE = "v1"
    TOKENS = "v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaVariant:
    """What WVA knows of a variant.

    Attributes:
        name: of the variant.
        service: that it serves.
        cost: of one replica, in any unit that all variants share; 10 where nobody says.
        accelerator: GPU type.
        role: ``prefill``, ``decode`` or ``both``.
        gpus: of one replica.
        limits: what its engine takes into one step.
        min_replicas: least replicas.
        max_replicas: most replicas; None: any number.
    """

    name: str
    service: str
    cost: float = DEFAULT_COST
    accelerator: str = ""
    role: str = "both"
    gpus: int = 1
    limits: EngineLimits | None = None
    min_replicas: int = 0
    max_replicas: int | None = None

    @classmethod
    def of(cls, spec: ReplicaSpec) -> WvaVariant:
        """As the twin has it; its price is the cost, or 10 without one."""
        return cls(
            name=spec.variant,
            service=spec.service,
            cost=spec.price_usd_per_h or DEFAULT_COST,
            accelerator=spec.gpu_type,
            role=spec.role.value,
            gpus=spec.gpus,
            limits=EngineLimits(spec.max_num_batched_tokens, spec.max_num_seqs),
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
        )

    def within(self, least: int, most: int) -> WvaVariant:
        """With the narrower of its own bounds and those of its HPA, which is where WVA finds them."""
        return replace(
            self,
            min_replicas=max(self.min_replicas, least),
            max_replicas=most if self.max_replicas is None else min(self.max_replicas, most),
        )

    def state(self, *, asked: int, ready: int, per_replica: float = 0.0) -> VariantState:
        """As the published rules read it, with so many replicas asked for and ready."""
        return VariantState(
            name=self.name,
            accelerator=self.accelerator,
            cost=self.cost,
            per_replica_capacity=per_replica,
            current=asked,
            role=self.role,
            pending=max(0, asked - ready),
            min_replicas=self.min_replicas,
            max_replicas=self.max_replicas,
            gpus_per_replica=self.gpus,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaSettings:
    """How WVA is set up.

    Attributes:
        analyzer: V1 or V2.
        thresholds: τ and γ; V2 reads τ alone.
        bounds: of V2's threshold step.
        interval_s: time between two decisions.
        metric_lag_s: how old the HPA's reading of a decision is (scrape and adapter), s.
        keeps_decisions: V1 waits until an earlier decision has been carried out, as in the paper's time; otherwise
            only pending replicas make it wait.
        spills: V1 grows the next variant where the cheapest stands at its ceiling; as published it grows none, although
            figure 3 of the paper shows it.
        visible_at_zero: variants without replicas take part (the original does not see them).
        scale_to_zero: the enforcer may put a service to sleep.
        retention_s: time without use after which it does, at most 600 s.
        gpus: GPUs by type in the constrained mode; None: unconstrained.
        priorities: of services in V2's fair share; not listed: 1.
    """

    analyzer: Analyzer = Analyzer.PERCENTAGE
    thresholds: SaturationThresholds = field(default_factory=SaturationThresholds)
    bounds: ScalingBounds = field(default_factory=ScalingBounds)
    interval_s: float = 15.0
    metric_lag_s: float = 0.0
    keeps_decisions: bool = True
    spills: bool = False
    visible_at_zero: bool = False
    scale_to_zero: bool = False
    retention_s: float = 600.0
    gpus: Mapping[str, int] | None = None
    priorities: Mapping[str, float] = field(default_factory=dict)


def wva_variants(twin: TwinSpec) -> tuple[WvaVariant, ...]:
    """All variants of a twin, as WVA knows them."""
    return tuple(WvaVariant.of(spec) for spec in twin.replicas)
