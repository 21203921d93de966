"""KEDA: an executor that wakes, rests and falls back at each poll, and the HPA that it makes for everything above zero.

Source: KEDA 2, pkg/scaling/executor/scale_scaledobjects.go, pkg/fallback, and the ScaledObject specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from models.autoscaling import FallbackBehavior, HpaSpec, KedaSpec, TargetType
from models.simulation import Observation, TwinSpec
from planner.errors import ConfigurationError
from planner.simulation.autoscaling.board import Board, check_metrics
from planner.simulation.autoscaling.cluster import services_of, target_of
from planner.simulation.autoscaling.hpa import HpaTarget, reconcile
from planner.simulation.autoscaling.hpa_limits import HpaHistory
from planner.simulation.autoscaling.timers import Timer, common_period_s

__all__ = ["KedaAutoscaler", "KedaMemory", "fall_back", "hpa_of", "poll"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaMemory:
    """What one ScaledObject remembers.

    Attributes:
        created_s: when it was made.
        active_s: when a trigger was last active; None: never.
        failures: failed readings in a row, by trigger.
        history: of its HPA.
    """

    created_s: float
    active_s: float | None = None
    failures: Mapping[str, int] = field(default_factory=dict)
    history: HpaHistory = field(default_factory=HpaHistory)


def hpa_of(spec: KedaSpec) -> HpaSpec:
    """The HPA that KEDA makes: at least one replica, the triggers as external metrics."""
    return HpaSpec(
        min_replicas=max(1, spec.min_replicas),
        max_replicas=spec.max_replicas,
        metrics=spec.triggers,
        behavior=spec.behavior,
        sync_s=spec.sync_s,
        tolerance=spec.tolerance,
    )


def poll(
    spec: KedaSpec, memory: KedaMemory, *, asked: int, figures: Mapping[str, float | None], now_s: float
) -> tuple[int, KedaMemory]:
    """One poll of the executor.

    Args:
        spec: the ScaledObject.
        memory: of earlier polls.
        asked: replicas that the scale target asks for.
        figures: by trigger; None: the trigger failed.
        now_s: time, s.

    Returns:
        Replicas, unchanged unless the target wakes, rests, falls back or is below its minimum.
    """
    failures = {
        one.name: memory.failures.get(one.name, 0) + 1 if figures.get(one.name) is None else 0
        for one in spec.triggers
    }
    memory = replace(memory, failures=failures)
    if any(_active(spec, name, figure) for name, figure in figures.items()):
        memory = replace(memory, active_s=now_s)
        resting = asked == 0 or (spec.idle_replicas is not None and asked < spec.min_replicas)
        return (max(1, spec.min_replicas) if resting else asked), memory
    if any(failures.values()):
        fallen = fall_back(spec, memory, asked=asked)
        return (asked if fallen is None else fallen), memory
    rest = spec.idle_replicas if spec.idle_replicas is not None else 0
    may_rest = spec.idle_replicas is not None or spec.min_replicas == 0
    if may_rest and asked > rest:
        return (rest if _cooled_down(spec, memory, now_s) else asked), memory
    if asked < spec.min_replicas and spec.idle_replicas is None:
        return spec.min_replicas, memory
    return asked, memory


def fall_back(spec: KedaSpec, memory: KedaMemory, *, asked: int) -> int | None:
    """Replicas of the fallback; None: there is none, or no trigger has failed often enough."""
    fallback = spec.fallback
    if fallback is None or max(memory.failures.values(), default=0) <= fallback.failure_threshold:
        return None
    return {
        FallbackBehavior.STATIC: fallback.replicas,
        FallbackBehavior.CURRENT: asked,
        FallbackBehavior.CURRENT_IF_HIGHER: max(asked, fallback.replicas),
        FallbackBehavior.CURRENT_IF_LOWER: min(asked, fallback.replicas),
    }[fallback.behavior]


def _active(spec: KedaSpec, trigger: str, figure: float | None) -> bool:
    return figure is not None and figure > spec.activations.get(trigger, 0.0)


def _cooled_down(spec: KedaSpec, memory: KedaMemory, now_s: float) -> bool:
    if memory.active_s is None:
        return memory.created_s + spec.initial_cooldown_s < now_s or spec.initial_cooldown_s == 0
    return memory.active_s + spec.cooldown_s < now_s


class KedaAutoscaler:
    """One ScaledObject per variant; polls and the HPA have their own periods.

    Args:
        specs: by variant.
        twin: whose variants these are.

    Raises:
        ConfigurationError: a variant or a metric is unknown, or periods differ between variants.
    """

    def __init__(self, specs: Mapping[str, KedaSpec], twin: TwinSpec) -> None:
        self._services = services_of(twin, specs)
        for spec in specs.values():
            check_metrics((), (one.name for one in spec.triggers))
        periods = {(spec.polling_s, spec.sync_s) for spec in specs.values()}
        if len(periods) != 1:
            raise ConfigurationError("give at least one ScaledObject, and all the same polling_s and sync_s")
        ((polling_s, sync_s),) = periods
        self._polling, self._syncing = Timer(polling_s), Timer(sync_s)
        self._specs = dict(sorted(specs.items()))
        self._hpas = {variant: hpa_of(spec) for variant, spec in specs.items()}
        self._memories: dict[str, KedaMemory] = {}
        self._board = Board()

    @property
    def period_s(self) -> float:
        """The longest time that divides both periods, s."""
        return common_period_s(self._polling.period_s, self._syncing.period_s)

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """What is due of polls and reconciliations; the HPA looks at what a poll has just decided."""
        self._board.post(observation)
        polling, syncing = self._polling.due(now_s), self._syncing.due(now_s)
        answers = {}
        for variant, spec in self._specs.items():
            memory = self._memories.get(variant, KedaMemory(created_s=now_s))
            target = target_of(self._board, variant, self._services[variant], metrics=spec.triggers)
            if polling:
                asked, memory = poll(spec, memory, asked=target.asked, figures=target.external, now_s=now_s)
                target = replace(target, asked=asked)
            answers[variant] = target.asked
            if syncing:
                shown = replace(target, external=_shown(spec, memory, target))
                found = reconcile(self._hpas[variant], memory.history, target=shown, now_s=now_s)
                answers[variant], memory = found.replicas, replace(memory, history=found.history)
            self._memories[variant] = memory
        self._board.answer(answers, now_s)
        return answers


def _shown(spec: KedaSpec, memory: KedaMemory, target: HpaTarget) -> dict[str, float | None]:
    """Figures as the HPA gets them: triggers that failed too often show what asks for the fallback's replicas."""
    fallen = fall_back(spec, memory, asked=target.asked)
    return {
        one.name: fallen * one.target
        if fallen is not None
        and target.external.get(one.name) is None
        and one.target_type is TargetType.AVERAGE_VALUE
        else target.external.get(one.name)
        for one in spec.triggers
    }
