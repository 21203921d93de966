"""One cycle of WVA over all services of a run: readings off the board, and what the shared cycle makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.simulation import ReplicaObservation, ReplicaState
from planner.saturation import (
    Activity,
    InstanceReading,
    Judged,
    PercentageRules,
    SchedulerQueue,
    ServiceReading,
    TokenMemory,
    Traffic,
    VariantReading,
    percentage_cycle,
    token_cycle,
)
from planner.saturation.published import Budget, used_gpus
from planner.simulation.autoscaling.board import Board
from planner.simulation.autoscaling.wva_settings import WvaSettings, WvaVariant

__all__ = ["WvaMemory", "decide_percentage", "decide_tokens"]

_MEANS_OVER_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WvaMemory:
    """What WVA remembers: of the token analyzer, and its last decision."""

    tokens: TokenMemory = field(default_factory=TokenMemory)
    decided: Mapping[str, int] = field(default_factory=dict)


def decide_percentage(
    board: Board, fleet: Mapping[str, Sequence[WvaVariant]], *, settings: WvaSettings, memory: WvaMemory
) -> tuple[dict[str, int], WvaMemory]:
    """One cycle of V1."""
    services = _readings(board, fleet, settings)
    kept = memory.decided if settings.keeps_decisions else {}
    rules = PercentageRules(
        decided={
            (one.key, state.name): kept[state.name]
            for one in services
            for state in one.states
            if state.name in kept
        },
        spills=settings.spills,
        free=() if settings.gpus is None else (_free(settings.gpus, services),),
    )
    decided = _targets(percentage_cycle(services, rules))
    return decided, WvaMemory(tokens=memory.tokens, decided={**memory.decided, **decided})


def decide_tokens(
    board: Board, fleet: Mapping[str, Sequence[WvaVariant]], *, settings: WvaSettings, memory: WvaMemory
) -> tuple[dict[str, int], WvaMemory]:
    """One cycle of V2."""
    services = _readings(board, fleet, settings)
    budget = None if settings.gpus is None else Budget(_free(settings.gpus, services))
    judged, tokens = token_cycle(services, memory=memory.tokens, now_s=board.latest.at_s, budget=budget)
    decided = _targets(judged)
    return decided, WvaMemory(tokens=tokens, decided={**memory.decided, **decided})


def _targets(judged: Sequence[Judged]) -> dict[str, int]:
    return {name: count for one in judged for name, count in one.targets.replicas.items()}


def _free(gpus: Mapping[str, int], services: Sequence[ServiceReading]) -> dict[str, int]:
    """GPUs that managed replicas leave, by type."""
    used = used_gpus([one.state() for one in services])
    return {kind: max(0, number - used.get(kind, 0)) for kind, number in gpus.items()}


def _readings(
    board: Board, fleet: Mapping[str, Sequence[WvaVariant]], settings: WvaSettings
) -> list[ServiceReading]:
    """The services of a fleet, with the variants that WVA sees."""
    found = []
    for service, variants in sorted(fleet.items()):
        seen = [one for one in variants if settings.visible_at_zero or board.asked(one.name) > 0]
        found.append(_reading(board, service, variants=seen, settings=settings))
    return found


def _reading(
    board: Board, service: str, *, variants: Sequence[WvaVariant], settings: WvaSettings
) -> ServiceReading:
    # Until it has watched for the whole retention time nobody can say that a service is idle.
    watched = board.latest.at_s - board.before(settings.retention_s).at_s >= settings.retention_s
    now = board.service(service)
    return ServiceReading(
        name=service,
        variants=tuple(_variant(board, one) for one in variants),
        states=tuple(
            one.state(asked=board.asked(one.name), ready=len(_ready(board, one.name))) for one in variants
        ),
        traffic=_traffic(board, service),
        queue=SchedulerQueue.of_tokens(now.router_queue, now.router_queue_tokens),
        activity=_activity(board, service, settings.retention_s),
        may_sleep=settings.scale_to_zero and watched,
        thresholds=settings.thresholds,
        bounds=settings.bounds,
        priority=settings.priorities.get(service, 1.0),
    )


def _ready(board: Board, variant: str) -> list[ReplicaObservation]:
    """Replicas that show metrics: those that do not start any more."""
    return [one for one in board.existing(variant) if one.state is not ReplicaState.STARTING]


def _variant(board: Board, variant: WvaVariant) -> VariantReading:
    ready = _ready(board, variant.name)
    return VariantReading(
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
            for one in ready
        ),
        pending=max(0, board.asked(variant.name) - len(ready)),
        limits=variant.limits,
    )


def _traffic(board: Board, service: str) -> Traffic:
    """Mean lengths of the requests that ended in the last five minutes, and prefix hits."""
    done = board.since(service, "completions_total", _MEANS_OVER_S)
    if done <= 0:
        return Traffic()
    mine = [one for one in board.latest.replicas if one.service == service]
    asked = sum(one.prefix_query_tokens_total for one in mine)
    hits = sum(one.prefix_hit_tokens_total for one in mine)
    return Traffic(
        input_tokens=board.since(service, "input_tokens_total", _MEANS_OVER_S) / done,
        output_tokens=board.since(service, "output_tokens_total", _MEANS_OVER_S) / done,
        hit_share=hits / asked if asked else 0.0,
        arrival_rps=board.rate(service, "arrivals_total"),
    )


def _activity(board: Board, service: str, retention_s: float) -> Activity:
    now = board.service(service)
    return Activity(
        completed=board.since(service, "completions_total", retention_s),
        arrivals=board.since(service, "arrivals_total", retention_s),
        in_flight=float(now.in_flight),
        queued=float(now.router_queue),
    )
