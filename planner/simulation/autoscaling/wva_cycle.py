"""One cycle of WVA over all services: from what the board shows to replicas by variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.fleet import RunningReplica
from models.simulation import ReplicaObservation, ReplicaState
from planner.saturation import (
    Activity,
    Cycle,
    InstanceReading,
    SaturationSignal,
    SchedulerQueue,
    Shifting,
    TokenMemory,
    TokenSettings,
    Traffic,
    VariantReading,
    analyze,
    analyze_tokens,
    enforce,
    shift_roles,
)
from planner.saturation.published import (
    Budget,
    Growth,
    ServiceState,
    Targets,
    VariantState,
    cost_aware,
    fair_share,
    greedy_by_saturation,
    used_gpus,
)
from planner.simulation.autoscaling.board import Board
from planner.simulation.autoscaling.wva_settings import WvaSettings, WvaVariant

__all__ = ["WvaMemory", "decide_percentage", "decide_tokens"]

_MEANS_OVER_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaMemory:
    """What WVA remembers: of the token analyzer, and its last decision."""

    tokens: TokenMemory = field(default_factory=TokenMemory)
    decided: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView:
    """One service on the board, as WVA sees it.

    Attributes:
        board: what was observed.
        name: of the service.
        variants: that WVA looks at, by name.
        settings: of WVA.
    """

    board: Board
    name: str
    variants: tuple[WvaVariant, ...]
    settings: WvaSettings

    def ready(self, variant: str) -> list[ReplicaObservation]:
        """Replicas that show metrics: those that do not start any more."""
        return [one for one in self.board.existing(variant) if one.state is not ReplicaState.STARTING]

    @property
    def seen(self) -> bool:
        """Whether any replica shows metrics; otherwise nothing is decided."""
        return any(self.ready(one.name) for one in self.variants)

    def states(self, sizes: Mapping[str, float]) -> tuple[VariantState, ...]:
        """The variants as the published rules read them."""
        return tuple(
            one.state(
                asked=self.board.asked(one.name),
                ready=len(self.ready(one.name)),
                per_replica=sizes.get(one.name, 0.0),
            )
            for one in self.variants
        )

    def signals(self) -> dict[str, SaturationSignal | None]:
        """The percentage analyzer's word by role; None: no replica of the role shows metrics."""
        found: dict[str, SaturationSignal | None] = {}
        for role in sorted({one.role for one in self.variants}):
            shown = [
                RunningReplica(kv_usage=min(1.0, one.kv_usage_max_1m), queue=one.waiting_max_1m)
                for variant in self.variants
                if variant.role == role
                for one in self.ready(variant.name)
            ]
            found[role] = analyze(shown, self.settings.thresholds) if shown else None
        return found

    def readings(self) -> list[VariantReading]:
        """The variants as the token analyzer reads them."""
        return [
            VariantReading(
                name=variant.name,
                accelerator=variant.accelerator,
                role=variant.role,
                gpus=variant.gpus,
                instances=tuple(
                    InstanceReading(
                        kv_usage=one.kv_usage_max_1m,
                        queue=float(one.waiting_max_1m),
                        kv_tokens=one.kv_blocks * one.block_size,
                    )
                    for one in self.ready(variant.name)
                ),
                pending=max(0, self.board.asked(variant.name) - len(self.ready(variant.name))),
                limits=variant.limits,
            )
            for variant in self.variants
        ]

    def traffic(self) -> Traffic:
        """Mean lengths of the requests that ended in the last five minutes, and prefix hits."""
        done = self.board.since(self.name, "completions_total", _MEANS_OVER_S)
        if done <= 0:
            return Traffic()
        mine = [one for one in self.board.latest.replicas if one.service == self.name]
        asked = sum(one.prefix_query_tokens_total for one in mine)
        hits = sum(one.prefix_hit_tokens_total for one in mine)
        return Traffic(
            input_tokens=self.board.since(self.name, "input_tokens_total", _MEANS_OVER_S) / done,
            output_tokens=self.board.since(self.name, "output_tokens_total", _MEANS_OVER_S) / done,
            hit_share=hits / asked if asked else 0.0,
            arrival_rps=self.board.rate(self.name, "arrivals_total"),
        )

    def queue(self) -> SchedulerQueue:
        """What the router holds."""
        now = self.board.service(self.name)
        return SchedulerQueue.of_tokens(now.router_queue, now.router_queue_tokens)

    def enforced(self, state: ServiceState, targets: Targets) -> Targets:
        """Targets after the enforcer."""
        now, retention = self.board.service(self.name), self.settings.retention_s
        activity = Activity(
            completed=self.board.since(self.name, "completions_total", retention),
            arrivals=self.board.since(self.name, "arrivals_total", retention),
            in_flight=float(now.in_flight),
            queued=float(now.router_queue),
        )
        # Until it has watched for the whole retention time nobody can say that a service is idle.
        watched = self.board.latest.at_s - self.board.before(retention).at_s >= retention
        allowed = self.settings.scale_to_zero and watched
        return enforce(state, targets, activity=activity, scale_to_zero=allowed)


def views_of(
    board: Board, fleet: Mapping[str, Sequence[WvaVariant]], settings: WvaSettings
) -> list[ServiceView]:
    """The services of a fleet, with the variants that WVA sees."""
    return [
        ServiceView(
            board=board,
            name=service,
            variants=tuple(one for one in variants if settings.visible_at_zero or board.asked(one.name) > 0),
            settings=settings,
        )
        for service, variants in sorted(fleet.items())
    ]


def decide_percentage(
    board: Board, fleet: Mapping[str, Sequence[WvaVariant]], *, settings: WvaSettings, memory: WvaMemory
) -> tuple[dict[str, int], WvaMemory]:
    """One cycle of V1: signal and targets by service and role, the enforcer, and GPUs by saturation if they are few."""
    decided: dict[str, int] = {}
    growths: list[Growth] = []
    services: list[ServiceState] = []
    for view in views_of(board, fleet, settings):
        states, signals = view.states({}), view.signals()
        kept = memory.decided if settings.keeps_decisions else {}
        shifting = [Shifting(state=one, desired=kept.get(one.name)) for one in states]
        service = ServiceState(name=view.name, variants=states, signals=())
        targets = Targets.held(service)
        if view.seen:
            targets = view.enforced(service, shift_roles(shifting, signals, spill=settings.spills))
        services.append(service)
        for one in states:
            decided[one.name] = targets.replicas[one.name]
            signal = signals.get(one.serves)
            growths.append(
                Growth(
                    service=view.name,
                    variant=one,
                    target=targets.replicas[one.name],
                    headroom=signal.spare_kv if signal else 0.0,
                )
            )
    if settings.gpus is not None:
        free = _free(settings.gpus, services)
        decided = {one.growth.variant.name: one.target for one in greedy_by_saturation(growths, free)}
    return decided, WvaMemory(tokens=memory.tokens, decided={**memory.decided, **decided})


def decide_tokens(
    board: Board, fleet: Mapping[str, Sequence[WvaVariant]], *, settings: WvaSettings, memory: WvaMemory
) -> tuple[dict[str, int], WvaMemory]:
    """One cycle of V2: capacity in tokens by service, then cost-aware, or fair share where GPUs are few; the enforcer."""
    tokens = memory.tokens
    cycle = Cycle(
        now_s=board.latest.at_s,
        settings=TokenSettings(
            tau_kv=settings.thresholds.tau_kv,
            tau_queue=settings.thresholds.tau_queue,
            bounds=settings.bounds,
        ),
    )
    views, services = views_of(board, fleet, settings), []
    for view in views:
        found, tokens = analyze_tokens(
            view.name,
            view.readings(),
            traffic=view.traffic(),
            queue=view.queue(),
            memory=tokens,
            cycle=cycle,
        )
        sizes = {name: sized.per_replica for name, sized in found.variants.items()}
        services.append(
            ServiceState(
                name=view.name,
                variants=view.states(sizes),
                signals=(found.signal(live=view.seen),),
                priority=settings.priorities.get(view.name, 1.0),
            )
        )
    targets = _dealt(services, settings)
    decided: dict[str, int] = {}
    for view, service in zip(views, services, strict=True):
        kept = targets[service.key]
        decided |= view.enforced(service, kept).replicas if view.seen else kept.replicas
    return decided, WvaMemory(tokens=tokens, decided={**memory.decided, **decided})


def _dealt(services: Sequence[ServiceState], settings: WvaSettings) -> Mapping[str, Targets]:
    """Targets by service key: each on its own, or out of the GPUs that there are."""
    if settings.gpus is None:
        return {service.key: cost_aware(service) for service in services}
    return fair_share(services, Budget(_free(settings.gpus, services)))[0]


def _free(gpus: Mapping[str, int], services: Sequence[ServiceState]) -> dict[str, int]:
    """GPUs that managed replicas leave, by type."""
    used = used_gpus(services)
    return {kind: max(0, number - used.get(kind, 0)) for kind, number in gpus.items()}
