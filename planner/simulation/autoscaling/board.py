"""What autoscalers can ask of observations by name: figures of pods, and figures of a variant or its service.

Rates and means need two readings, so the board remembers observations of the last minutes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from models.simulation import Observation, ReplicaObservation, ReplicaState, ServiceObservation
from planner.errors import ConfigurationError, Finding, nearest
from planner.simulation.autoscaling.hpa_metrics import PodFigure, PodPhase

__all__ = ["EXTERNAL_METRICS", "POD_METRICS", "SATURATION", "Board", "check_metrics", "pool_saturation"]

SATURATION: Final = "saturation"

POD_METRICS: Final[Mapping[str, Callable[[ReplicaObservation], float]]] = {
    "kv_usage": lambda one: one.kv_usage,
    "kv_usage_max_1m": lambda one: one.kv_usage_max_1m,
    "running": lambda one: float(one.running),
    "waiting": lambda one: float(one.waiting),
    "waiting_max_1m": lambda one: float(one.waiting_max_1m),
    "in_flight": lambda one: float(one.running + one.waiting),
}
"""Figures of one pod."""

EXTERNAL_METRICS: Final = (
    "arrival_rps",
    "completion_rps",
    "concurrency",
    "router_queue",
    "router_queue_tokens",
    "running",
    SATURATION,
    "waiting",
)
"""Figures of the whole target: running, waiting and saturation are the variant's, the others its service's."""

_EXISTING: Final = frozenset({ReplicaState.STARTING, ReplicaState.READY, ReplicaState.PAUSED})
_REMEMBERED_S: Final = 660.0
_RATE_WINDOW_S: Final = 60.0


def check_metrics(pods: Iterable[str], external: Iterable[str]) -> None:
    """Refuse metrics that nobody measures.

    Raises:
        ConfigurationError: names every one of them, with the nearest that there is.
    """
    findings = [
        Finding(
            file="",
            line=None,
            path=f"metrics[{name}]",
            found=f"unknown metric {name!r} of source {source}",
            allowed=", ".join(known),
            suggestion=nearest(name, known),
        )
        for source, names, known in (
            ("Pods", pods, tuple(POD_METRICS)),
            ("External", external, EXTERNAL_METRICS),
        )
        for name in names
        if name not in known
    ]
    if findings:
        raise ConfigurationError.from_findings(findings)


def pool_saturation(replicas: Iterable[ReplicaObservation], *, queue: float = 5.0, kv: float = 0.8) -> float:
    """Mean over ready replicas of max(waiting / queue, KV usage / kv); 1 with none: a pool of nobody is full.

    Source: gateway-api-inference-extension, flow control's saturation detector (utilization).
    """
    ready = [one for one in replicas if one.state is ReplicaState.READY]
    if not ready:
        return 1.0
    return math.fsum(max(one.waiting / queue, one.kv_usage / kv) for one in ready) / len(ready)


class Board:
    """Observations of the last eleven minutes."""

    def __init__(self) -> None:
        self._seen: deque[Observation] = deque()
        self._answered_s = -math.inf
        self._answers: Mapping[str, int] = {}

    def answer(self, answers: Mapping[str, int], now_s: float) -> None:
        """Note what was just asked for: late observations do not tell of it, the scale target does."""
        self._answers, self._answered_s = {**self._answers, **answers}, now_s

    def asked(self, variant: str) -> int:
        """Replicas that the scale target asks for."""
        if self._answered_s >= self.latest.at_s and variant in self._answers:
            return self._answers[variant]
        return self.latest.desired.get(variant, len(self.existing(variant)))

    def post(self, observation: Observation) -> None:
        """Take in an observation; one that is no newer than the last is not taken twice."""
        if self._seen and observation.at_s <= self._seen[-1].at_s:
            return
        self._seen.append(observation)
        while len(self._seen) > 1 and self._seen[1].at_s <= observation.at_s - _REMEMBERED_S:
            self._seen.popleft()

    @property
    def latest(self) -> Observation:
        """The newest observation.

        Raises:
            IndexError: nothing was posted.
        """
        return self._seen[-1]

    def before(self, window_s: float) -> Observation:
        """The newest observation that is at least ``window_s`` older than the latest, else the oldest there is."""
        since = self.latest.at_s - window_s
        found = self._seen[0]
        for observation in self._seen:
            if observation.at_s > since:
                break
            found = observation
        return found

    def existing(self, variant: str) -> list[ReplicaObservation]:
        """Replicas of a variant that start, are ready or pause; those that end are gone for an autoscaler."""
        return [one for one in self.latest.replicas if one.variant == variant and one.state in _EXISTING]

    def pods(self, variant: str, metric: str) -> list[PodFigure]:
        """Figures by replica; a starting one runs and has no metric yet, one without GPUs is a pending pod."""
        read, existing = POD_METRICS[metric], self.existing(variant)
        figures = [PodFigure(None if one.state is ReplicaState.STARTING else read(one)) for one in existing]
        waiting = max(0, self.asked(variant) - len(existing))
        return [*figures, *[PodFigure(None, PodPhase.PENDING)] * waiting]

    def service(self, name: str, *, window_s: float = 0.0) -> ServiceObservation:
        """Counters of a service, now or ``window_s`` ago."""
        observation = self.before(window_s) if window_s else self.latest
        return next(one for one in observation.services if one.name == name)

    def since(self, name: str, counter: str, window_s: float) -> float:
        """How much a counter of a service grew within a window."""
        before, now = self.service(name, window_s=window_s), self.service(name)
        return float(getattr(now, counter) - getattr(before, counter))

    def rate(self, name: str, counter: str, window_s: float = _RATE_WINDOW_S) -> float | None:
        """Growth per second of a counter of a service; None: only one reading."""
        seconds = self.latest.at_s - self.before(window_s).at_s
        return self.since(name, counter, window_s) / seconds if seconds > 0 else None

    def external(self, variant: str, service: str, metric: str) -> float | None:
        """One figure for the whole target; None: it cannot be told yet."""
        mine, existing = self.service(service), self.existing(variant)
        if metric == "arrival_rps":
            return self.rate(service, "arrivals_total")
        if metric == "completion_rps":
            return self.rate(service, "completions_total")
        if metric == SATURATION:
            return pool_saturation(existing)
        if metric == "concurrency":
            busy = sum(one.running + one.waiting for one in self.latest.replicas if one.service == service)
            return float(busy + mine.router_queue)
        if metric in {"router_queue", "router_queue_tokens"}:
            return float(getattr(mine, metric))
        return math.fsum(POD_METRICS[metric](one) for one in existing)
