"""llm-d's Workload Variant Autoscaler in a run: an analyzer decides, one HPA per variant carries it out.

The analyzers are the ones of :mod:`planner.saturation`. What they decide becomes the metric ``wva_desired_replicas``, which
each variant's HPA reads as an external metric with AverageValue 1, as late as metrics are: so the HPA's windows, policies
and bounds hold for WVA too.

Source: arXiv 2603.09730 (V1); llm-d autoscaling v0.9 (V2).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from models.autoscaling import HpaMetric, HpaSpec, MetricSource
from models.simulation import Observation, TwinSpec
from planner.errors import ConfigurationError
from planner.simulation.autoscaling.board import Board
from planner.simulation.autoscaling.cluster import reconcile_all, services_of, target_of
from planner.simulation.autoscaling.hpa import HpaDecision, HpaTarget
from planner.simulation.autoscaling.timers import Timer, common_period_s
from planner.simulation.autoscaling.wva_cycle import WvaMemory, decide_percentage, decide_tokens
from planner.simulation.autoscaling.wva_settings import Analyzer, WvaSettings, WvaVariant

__all__ = ["DESIRED", "WvaAutoscaler", "wva_hpa"]

DESIRED: Final = "wva_desired_replicas"

_METRIC: Final = HpaMetric(name=DESIRED, source=MetricSource.EXTERNAL, target=1.0)
_LAST_BITS: Final = 1e-9


def wva_hpa(spec: HpaSpec) -> HpaSpec:
    """An HPA with bounds, behavior and period of ``spec`` whose only metric is WVA's decision."""
    return spec.but(metrics=(_METRIC,))


class WvaAutoscaler:
    """WVA above HPAs.

    Args:
        variants: what WVA knows of each variant: cost, accelerator, bounds.
        hpas: by variant; their metrics are replaced by WVA's decision, their bounds are WVA's too.
        twin: whose variants these are.
        settings: of the analyzer; None: V1 as shipped.

    Raises:
        ConfigurationError: a variant is unknown or has no HPA, or the sync periods differ.
    """

    def __init__(
        self,
        variants: Sequence[WvaVariant],
        hpas: Mapping[str, HpaSpec],
        *,
        twin: TwinSpec,
        settings: WvaSettings | None = None,
    ) -> None:
        self._services = services_of(twin, {one.name: one for one in variants})
        lacking = sorted(set(self._services) ^ set(hpas))
        if lacking or len({spec.sync_s for spec in hpas.values()}) != 1:
            named = f" (look at {', '.join(lacking)})" if lacking else ""
            raise ConfigurationError(f"give every variant one HPA, and all of them the same sync_s{named}")
        bounded = [one.within(hpas[one.name].min_replicas, hpas[one.name].max_replicas) for one in variants]
        self._fleet = _by_service(bounded, self._services)
        self._settings = settings or WvaSettings()
        self._hpas = {name: wva_hpa(hpas[name]) for name in sorted(hpas)}
        self._deciding = Timer(self._settings.interval_s)
        self._syncing = Timer(next(iter(hpas.values())).sync_s)
        self._board, self._memory = Board(), WvaMemory()
        self._emitted: deque[tuple[float, Mapping[str, int]]] = deque()
        self.decisions: dict[str, HpaDecision] = {}

    @property
    def period_s(self) -> float:
        """The longest time that divides the interval of the analyzer and the sync period, s."""
        return common_period_s(self._deciding.period_s, self._syncing.period_s)

    @property
    def desired(self) -> Mapping[str, int]:
        """What the analyzer last decided, by variant; empty: nothing yet."""
        return dict(self._emitted[-1][1]) if self._emitted else {}

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """What is due: a cycle of the analyzer, then the HPAs with what they can read of it."""
        self._board.post(observation)
        if self._deciding.due(now_s):
            cycle = decide_tokens if self._settings.analyzer is Analyzer.TOKENS else decide_percentage
            decided, self._memory = cycle(
                self._board, self._fleet, settings=self._settings, memory=self._memory
            )
            self._emitted.append((now_s, decided))
        return self._sync(now_s) if self._syncing.due(now_s) else {}

    def _readable(self, now_s: float) -> Mapping[str, int]:
        """The newest decision that has come through to the HPAs."""
        known_s = now_s - self._settings.metric_lag_s + _LAST_BITS
        while len(self._emitted) > 1 and self._emitted[1][0] <= known_s:
            self._emitted.popleft()
        return self._emitted[0][1] if self._emitted and self._emitted[0][0] <= known_s else {}

    def _sync(self, now_s: float) -> dict[str, int]:
        readable = self._readable(now_s)

        def see(variant: str) -> HpaTarget:
            target = target_of(self._board, variant, self._services[variant], metrics=())
            return replace(target, external={DESIRED: readable.get(variant)})

        self.decisions = reconcile_all(self._hpas, self.decisions, see=see, now_s=now_s)
        answers = {variant: found.replicas for variant, found in self.decisions.items()}
        self._board.answer(answers, now_s)
        return answers


def _by_service(
    variants: Sequence[WvaVariant], services: Mapping[str, str]
) -> dict[str, tuple[WvaVariant, ...]]:
    grouped: dict[str, list[WvaVariant]] = defaultdict(list)
    for one in sorted(variants, key=lambda one: one.name):
        grouped[services[one.name]].append(one)
    return {service: tuple(members) for service, members in sorted(grouped.items())}
