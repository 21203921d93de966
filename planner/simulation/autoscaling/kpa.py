"""Knative's pod autoscaler (KPA): concurrency or rate over a stable and a panic window.

Source: Knative Serving, pkg/autoscaler/scaling/autoscaler.go and pkg/reconciler/autoscaling/kpa (scale to zero);
defaults of config-autoscaler.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from models.autoscaling import KpaSpec
from models.simulation import Observation, ReplicaState, TwinSpec
from planner.errors import ConfigurationError
from planner.simulation.autoscaling.board import Board
from planner.simulation.autoscaling.cluster import services_of
from planner.simulation.autoscaling.hpa_limits import At

__all__ = ["KpaAutoscaler", "KpaMemory", "scale"]

_LAST_BITS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class KpaMemory:
    """What one KPA remembers.

    Attributes:
        samples: (time in s, figure) of the stable window.
        panic_s: when the panic threshold was last crossed; None: no panic.
        panic_most: largest count of this panic.
        wanted: counts of the scale-down delay.
        idle_s: since when it would have nothing; None: it would not.
    """

    samples: tuple[tuple[float, float], ...] = ()
    panic_s: float | None = None
    panic_most: int = 0
    wanted: tuple[At, ...] = ()
    idle_s: float | None = None

    @classmethod
    def begun(cls, ready: int, now_s: float) -> KpaMemory:
        """A KPA that starts over several replicas starts in panic, so that it keeps them until it has seen enough."""
        return cls(panic_s=now_s if ready > 1 else None, panic_most=ready if ready > 1 else 0)


def scale(
    spec: KpaSpec, memory: KpaMemory, *, ready: int, figure: float | None, now_s: float
) -> tuple[int | None, KpaMemory]:
    """One tick.

    Args:
        spec: windows, rates and bounds.
        memory: of earlier ticks.
        ready: ready replicas.
        figure: concurrency or rate of all of them together, now; None: not known.
        now_s: time, s.

    Returns:
        Replicas, or None: no data, nothing changes.
    """
    memory = _sampled(spec, memory, figure, now_s)
    stable = _mean(memory.samples, now_s, spec.stable_window_s)
    if stable is None:
        return None, memory
    recent = _mean(memory.samples, now_s, spec.panic_window_share * spec.stable_window_s)
    there = max(1, ready)
    stable_count = _count(spec, stable, there)
    panic_count = _count(spec, stable if recent is None else recent, there)
    raw = _up((stable if recent is None else recent) / _goal(spec))
    memory = _panicking(spec, memory, now_s, over=raw / there >= spec.panic_threshold)
    count = stable_count
    if memory.panic_s is not None:
        # No replica goes while it panics.
        memory = replace(memory, panic_most=max(memory.panic_most, stable_count, panic_count))
        count = memory.panic_most
    count, memory = _delayed(spec, memory, count, now_s)
    return _bounded(spec, memory, count, now_s)


def _sampled(spec: KpaSpec, memory: KpaMemory, figure: float | None, now_s: float) -> KpaMemory:
    kept = [(at, seen) for at, seen in memory.samples if at > now_s - spec.stable_window_s]
    return replace(memory, samples=tuple(kept if figure is None else [*kept, (now_s, figure)]))


def _mean(samples: Sequence[tuple[float, float]], now_s: float, window_s: float) -> float | None:
    seen = [figure for at, figure in samples if at > now_s - window_s]
    return math.fsum(seen) / len(seen) if seen else None


def _goal(spec: KpaSpec) -> float:
    return spec.target * spec.target_utilization


def _up(count: float) -> int:
    return math.ceil(count - _LAST_BITS)


def _count(spec: KpaSpec, figure: float, there: int) -> int:
    """⌈figure / goal⌉ within what one decision may change, and at least activation-scale where there is anything."""
    wanted = _up(figure / _goal(spec))
    most = math.ceil(spec.max_scale_up_rate * there)
    least = math.floor(there / spec.max_scale_down_rate)
    count = min(max(wanted, least), most)
    return max(count, spec.activation_replicas) if wanted > 0 and spec.activation_replicas > 1 else count


def _panicking(spec: KpaSpec, memory: KpaMemory, now_s: float, *, over: bool) -> KpaMemory:
    """Panic begins and goes on while the threshold is crossed, and ends a stable window after it last was."""
    if over:
        return replace(memory, panic_s=now_s)
    if memory.panic_s is not None and memory.panic_s + spec.stable_window_s < now_s:
        return replace(memory, panic_s=None, panic_most=0)
    return memory


def _delayed(spec: KpaSpec, memory: KpaMemory, count: int, now_s: float) -> tuple[int, KpaMemory]:
    """The largest count of the scale-down delay."""
    if not spec.scale_down_delay_s:
        return count, memory
    kept = tuple(one for one in memory.wanted if one.at_s > now_s - spec.scale_down_delay_s)
    memory = replace(memory, wanted=(*kept, At(now_s, count)))
    return max(one.replicas for one in memory.wanted), memory


def _bounded(spec: KpaSpec, memory: KpaMemory, count: int, now_s: float) -> tuple[int, KpaMemory]:
    """Within min and max scale; to zero only after the grace period, or the retention period if that is longer."""
    count = max(count, spec.min_replicas)
    if spec.max_replicas:
        count = min(count, spec.max_replicas)
    if count > 0:
        return count, replace(memory, idle_s=None)
    since = now_s if memory.idle_s is None else memory.idle_s
    waited = now_s - since >= max(spec.scale_to_zero_grace_s, spec.pod_retention_s)
    return (0 if spec.scale_to_zero and waited else 1), replace(memory, idle_s=since)


class KpaAutoscaler:
    """One KPA per variant. Requests that the router holds are shared evenly by the variants of their service.

    Args:
        specs: by variant; metric ``concurrency`` or ``rps``.
        twin: whose variants these are.

    Raises:
        ConfigurationError: a variant or a metric is unknown, or the ticks differ.
    """

    def __init__(self, specs: Mapping[str, KpaSpec], twin: TwinSpec) -> None:
        self._services = services_of(twin, specs)
        unknown = sorted({spec.metric for spec in specs.values()} - {"concurrency", "rps"})
        if unknown:
            raise ConfigurationError(f"unknown metric {', '.join(unknown)}; allowed: concurrency, rps")
        if len({spec.tick_s for spec in specs.values()}) != 1:
            raise ConfigurationError("give at least one KPA, and all of them the same tick_s")
        self._specs = dict(sorted(specs.items()))
        self._memories: dict[str, KpaMemory] = {}
        self._board = Board()

    @property
    def period_s(self) -> float:
        """The tick."""
        return next(iter(self._specs.values())).tick_s

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """One tick of each KPA; a variant without data is left as it is."""
        self._board.post(observation)
        answers = {}
        for variant, spec in self._specs.items():
            ready = sum(one.state is ReplicaState.READY for one in self._board.existing(variant))
            memory = self._memories.get(variant) or KpaMemory.begun(ready, now_s)
            figure = self._figure(variant, spec.metric)
            count, self._memories[variant] = scale(spec, memory, ready=ready, figure=figure, now_s=now_s)
            if count is not None:
                answers[variant] = count
        return answers

    def _figure(self, variant: str, metric: str) -> float | None:
        service = self._services[variant]
        sharing = sum(other == service for other in self._services.values())
        if metric == "rps":
            rate = self._board.rate(service, "arrivals_total", self.period_s)
            return None if rate is None else rate / sharing
        busy = sum(one.running + one.waiting for one in self._board.existing(variant))
        return busy + self._board.service(service).router_queue / sharing
