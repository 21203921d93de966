"""One cycle of the published autoscaler over all services: from readings to targets, for the twin and for clusters alike.

V1 moves one replica at a time by the percentage analyzer; V2 sizes by the token analyzer (and whatever other analyzers
vote) and deals replicas out by cost, or by fair share where GPUs are few. The enforcer has the last word on zero.

Source: arXiv 2603.09730 (V1); llm-d autoscaling v0.9, internal/engines (V2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from models.autoscaling import ScalingBounds
from models.fleet import RunningReplica
from models.saturation import SaturationThresholds
from planner.saturation.memory import TokenMemory
from planner.saturation.percentage import analyze
from planner.saturation.published import (
    AnalyzerSignal,
    Budget,
    Grant,
    Growth,
    RescaleScope,
    ServiceState,
    Targets,
    VariantState,
    cost_aware,
    fair_share,
    limit_in_sequence,
    rescaled_fair_share,
)
from planner.saturation.readings import InstanceReading, SchedulerQueue, Traffic, VariantReading
from planner.saturation.safety import Activity, enforce
from planner.saturation.shifting import Shifting, shift_roles
from planner.saturation.signal import SaturationSignal
from planner.saturation.step import Analysis
from planner.saturation.tokens import Cycle, TokenSettings, analyze_tokens

__all__ = [
    "Judged",
    "PercentageRules",
    "ServiceReading",
    "dealt_tokens",
    "percentage_cycle",
    "token_analysis",
    "token_cycle",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReading:
    """One service as a cycle reads it.

    Attributes:
        name: unique in its namespace; what is served.
        namespace: that it runs in.
        variants: as analyzers read them.
        states: the same variants, in the same order, as the published rules read them; their sizes are filled in.
        traffic: mean lengths and prefix hits.
        queue: what the router holds.
        activity: what tells whether somebody uses it.
        may_sleep: the enforcer may put it to sleep: allowed, and watched for long enough.
        thresholds: τ and γ.
        bounds: of the threshold step.
        role_thresholds: τ and γ of roles that have their own.
        role_bounds: of the threshold step, of roles that have their own.
        voices: of further analyzers, which vote beside the token analyzer.
        priority: in fair share.
    """

    name: str
    variants: tuple[VariantReading, ...]
    states: tuple[VariantState, ...]
    namespace: str = "default"
    traffic: Traffic = field(default_factory=Traffic)
    queue: SchedulerQueue = field(default_factory=SchedulerQueue)
    activity: Activity = field(default_factory=lambda: Activity(completed=None))
    may_sleep: bool = False
    thresholds: SaturationThresholds = field(default_factory=SaturationThresholds)
    bounds: ScalingBounds = field(default_factory=ScalingBounds)
    role_thresholds: Mapping[str, SaturationThresholds] = field(default_factory=dict)
    role_bounds: Mapping[str, ScalingBounds] = field(default_factory=dict)
    voices: tuple[AnalyzerSignal, ...] = ()
    priority: float = 1.0

    @property
    def key(self) -> str:
        """``namespace/name``, as :attr:`ServiceState.key`."""
        return f"{self.namespace}/{self.name}"

    @property
    def seen(self) -> bool:
        """Whether any replica shows metrics; otherwise nothing is decided."""
        return any(variant.instances for variant in self.variants)

    def state(
        self, signals: tuple[AnalyzerSignal, ...] = (), sizes: Mapping[str, float] | None = None
    ) -> ServiceState:
        """As the published rules read it."""
        known = sizes or {}
        return ServiceState(
            name=self.name,
            namespace=self.namespace,
            variants=tuple(
                replace(one, per_replica_capacity=known.get(one.name, one.per_replica_capacity))
                for one in self.states
            ),
            signals=signals,
            priority=self.priority,
        )

    def signals(self) -> dict[str, SaturationSignal | None]:
        """The percentage analyzer's word by role; None: no replica of the role shows metrics."""
        found: dict[str, SaturationSignal | None] = {}
        for role in sorted({one.role for one in self.variants}):
            mine = [variant for variant in self.variants if variant.role == role]
            thresholds = self.role_thresholds.get(role, self.thresholds)
            shown = [
                _distance_kept(one, variant, thresholds) for variant in mine for one in variant.instances
            ]
            silent = sum(variant.unreported for variant in mine)
            found[role] = analyze(shown, thresholds, unreported=silent) if shown else None
        return found

    def enforced(self, targets: Targets) -> Targets:
        """Targets after the enforcer."""
        return enforce(self.state(), targets, activity=self.activity, scale_to_zero=self.may_sleep)


def _distance_kept(
    one: InstanceReading, variant: VariantReading, thresholds: SaturationThresholds
) -> RunningReplica:
    """One instance whose variant may have a τ of its own: as far from the τ of its role as it is from that."""
    kv, queue = one.kv_usage, one.queue
    if kv is not None and variant.tau_kv is not None:
        kv += thresholds.tau_kv - variant.tau_kv
    if queue is not None and variant.tau_queue is not None:
        queue += thresholds.tau_queue - variant.tau_queue
    # Ten thousand of them in every cycle, of figures that were checked where they were read.
    return RunningReplica.model_construct(
        nodes=(),
        kv_usage=None if kv is None else min(1.0, max(0.0, kv)),
        queue=None if queue is None else max(0.0, queue),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What a cycle says of one service.

    Attributes:
        reading: what it was told.
        targets: what is to be, by variant name.
        signals: of the percentage analyzer, by role (V1).
        analysis: of the token analyzer (V2); None in V1.
    """

    reading: ServiceReading
    targets: Targets
    signals: Mapping[str, SaturationSignal | None] = field(default_factory=dict)
    analysis: Analysis | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentageRules:
    """How V1 moves.

    Attributes:
        decided: last decisions by namespace/name of the service and name of the variant that V1 waits for, as in the
            paper's time; empty: only pending replicas make it wait.
        spills: the next variant grows where the cheapest stands at its ceiling; as published none does, although
            figure 3 of the paper shows it.
        free: free GPUs by type of each limiter in turn, None for one that cannot answer; no limiter: unconstrained.
    """

    decided: Mapping[tuple[str, str], int] = field(default_factory=dict)
    spills: bool = False
    free: Sequence[Mapping[str, int] | None] = ()


def percentage_cycle(services: Sequence[ServiceReading], rules: PercentageRules) -> tuple[Judged, ...]:
    """One cycle of V1: signal and targets by service and role, the enforcer, and GPUs by saturation if they are few.

    Returns:
        One answer for each service, in their order.
    """
    judged = [_shifted(service, rules) for service in services]
    if not rules.free:
        return tuple(judged)
    growths = [_growth(one, state) for one in judged for state in one.reading.states]
    grants = iter(limit_in_sequence(growths, rules.free))
    return tuple(_limited(one, [next(grants) for _ in one.reading.states]) for one in judged)


def token_cycle(
    services: Sequence[ServiceReading], *, memory: TokenMemory, now_s: float, budget: Budget | None = None
) -> tuple[tuple[Judged, ...], TokenMemory]:
    """One cycle of V2: capacity in tokens by service, then cost-aware, or fair share where GPUs are few; the enforcer.

    Args:
        services: as they run.
        memory: of earlier cycles.
        now_s: time of the cycle.
        budget: free GPUs; None: unconstrained.

    Returns:
        One answer for each service, in their order, and the memory for the next cycle.
    """
    analyses: list[Analysis] = []
    for service in services:
        found, memory = token_analysis(service, memory=memory, now_s=now_s)
        analyses.append(found)
    return dealt_tokens(services, analyses, budget=budget), memory


def token_analysis(
    service: ServiceReading, *, memory: TokenMemory, now_s: float
) -> tuple[Analysis, TokenMemory]:
    """What the token analyzer says of one service, each role within its bounds, and the memory for the next cycle."""
    found, memory = analyze_tokens(
        service.name,
        service.variants,
        traffic=service.traffic,
        queue=service.queue,
        memory=memory,
        cycle=Cycle(now_s=now_s, settings=_token_settings(service), namespace=service.namespace),
    )
    return (found.within(service.role_bounds) if service.role_bounds else found), memory


def dealt_tokens(
    services: Sequence[ServiceReading],
    analyses: Sequence[Analysis],
    *,
    budget: Budget | None = None,
    rescale: RescaleScope | None = None,
) -> tuple[Judged, ...]:
    """Replicas for services that were analyzed: by cost, or by fair share where GPUs are few; the enforcer.

    Args:
        services: as they run.
        analyses: of the token analyzer, in their order.
        budget: free GPUs; None: unconstrained.
        rescale: where services in contention move towards their shares first; None: nowhere.
    """
    states = [
        service.state(
            (found.signal(live=service.seen), *service.voices),
            {name: sized.capacity for name, sized in found.variants.items()},
        )
        for service, found in zip(services, analyses, strict=True)
    ]
    targets = _dealt(states, budget, rescale)
    judged = []
    for service, found in zip(services, analyses, strict=True):
        kept = targets[service.key]
        final = service.enforced(kept) if service.seen else kept
        judged.append(Judged(reading=service, targets=final, analysis=found))
    return tuple(judged)


def _token_settings(service: ServiceReading) -> TokenSettings:
    return TokenSettings(
        tau_kv=service.thresholds.tau_kv, tau_queue=service.thresholds.tau_queue, bounds=service.bounds
    )


def _dealt(
    states: Sequence[ServiceState], budget: Budget | None, rescale: RescaleScope | None
) -> Mapping[str, Targets]:
    """Targets by service key: each on its own, or out of the GPUs that there are."""
    if budget is None:
        return {state.key: cost_aware(state) for state in states}
    if rescale is not None:
        return rescaled_fair_share(states, budget, rescale)[0]
    return fair_share(states, budget)[0]


def _shifted(service: ServiceReading, rules: PercentageRules) -> Judged:
    state, signals = service.state(), service.signals()
    targets = Targets.held(state)
    if service.seen:
        shifting = [
            Shifting(state=one, desired=rules.decided.get((service.key, one.name))) for one in state.variants
        ]
        targets = service.enforced(shift_roles(shifting, signals, spill=rules.spills))
    return Judged(reading=service, targets=targets, signals=signals)


def _growth(judged: Judged, state: VariantState) -> Growth:
    signal = judged.signals.get(state.serves)
    return Growth(
        service=judged.reading.key,
        variant=state,
        target=judged.targets.replicas[state.name],
        headroom=signal.spare_kv if signal else 0.0,
    )


def _limited(judged: Judged, grants: Sequence[Grant]) -> Judged:
    cut = {one.growth.variant.name for one in grants if one.limited}
    reasons = {one.growth.variant.name: one.reason for one in grants if one.limited}
    targets = replace(
        judged.targets,
        replicas={one.growth.variant.name: one.target for one in grants},
        reasons={**judged.targets.reasons, **reasons},
        limited=frozenset(cut),
    )
    return replace(judged, targets=targets)
