"""HPA and static counts as autoscalers of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from models.autoscaling import HpaMetric, HpaSpec, MetricSource
from models.simulation import Observation, ReplicaState, TwinSpec
from planner.errors import ConfigurationError, Finding, nearest
from planner.simulation.autoscaling.board import Board, check_metrics
from planner.simulation.autoscaling.hpa import HpaDecision, HpaTarget, reconcile
from planner.simulation.autoscaling.hpa_limits import HpaHistory

__all__ = ["HpaAutoscaler", "StaticAutoscaler", "reconcile_all", "services_of", "target_of"]

_NEVER_S: Final = 3600.0


def services_of(twin: TwinSpec, variants: Mapping[str, object]) -> dict[str, str]:
    """Service of each variant that an autoscaler is told of.

    Raises:
        ConfigurationError: names every variant that the twin does not have.
    """
    known = {replica.variant: replica.service for replica in twin.replicas}
    unknown = sorted(set(variants) - set(known))
    if unknown:
        raise ConfigurationError.from_findings(
            Finding(
                file="",
                line=None,
                path=f"autoscaler[{name}]",
                found=f"unknown variant {name!r}",
                allowed=", ".join(sorted(known)),
                suggestion=nearest(name, known),
            )
            for name in unknown
        )
    return {name: known[name] for name in sorted(variants)}


def target_of(board: Board, variant: str, service: str, *, metrics: tuple[HpaMetric, ...]) -> HpaTarget:
    """What an HPA sees of a variant on the board."""
    existing = board.existing(variant)
    return HpaTarget(
        asked=board.asked(variant),
        existing=max(len(existing), board.asked(variant)),
        ready=sum(one.state is ReplicaState.READY for one in existing),
        pods={one.name: board.pods(variant, one.name) for one in metrics if one.source is MetricSource.PODS},
        external={
            one.name: board.external(variant, service, one.name)
            for one in metrics
            if one.source is MetricSource.EXTERNAL
        },
    )


def reconcile_all(
    specs: Mapping[str, HpaSpec],
    decisions: Mapping[str, HpaDecision],
    *,
    see: Callable[[str], HpaTarget],
    now_s: float,
) -> dict[str, HpaDecision]:
    """One reconciliation of each HPA, which remembers what its decision before did; ``see`` shows its target."""
    return {
        variant: reconcile(
            spec,
            decisions[variant].history if variant in decisions else HpaHistory(),
            target=see(variant),
            now_s=now_s,
        )
        for variant, spec in specs.items()
    }


class StaticAutoscaler:
    """The same counts all the time."""

    def __init__(self, replicas: Mapping[str, int], *, period_s: float = _NEVER_S) -> None:
        self._replicas = dict(replicas)
        self._period_s = period_s

    @property
    def period_s(self) -> float:
        """Seconds between two decisions, which are all the same."""
        return self._period_s

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """The counts that it was given."""
        return dict(self._replicas)


class HpaAutoscaler:
    """One HPA per variant, all in step.

    Args:
        specs: by variant.
        twin: whose variants these are.

    Raises:
        ConfigurationError: a variant or a metric is unknown, or the sync periods differ.
    """

    def __init__(self, specs: Mapping[str, HpaSpec], twin: TwinSpec) -> None:
        self._services = services_of(twin, specs)
        for spec in specs.values():
            check_metrics(
                (one.name for one in spec.metrics if one.source is MetricSource.PODS),
                (one.name for one in spec.metrics if one.source is MetricSource.EXTERNAL),
            )
        if len({spec.sync_s for spec in specs.values()}) != 1:
            raise ConfigurationError("give at least one HPA, and all of them the same sync_s")
        self._specs = dict(sorted(specs.items()))
        self._board = Board()
        self.decisions: dict[str, HpaDecision] = {}

    @property
    def period_s(self) -> float:
        """The sync period."""
        return next(iter(self._specs.values())).sync_s

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """One reconciliation of each HPA."""
        self._board.post(observation)
        self.decisions = reconcile_all(self._specs, self.decisions, see=self._target, now_s=now_s)
        answers = {variant: found.replicas for variant, found in self.decisions.items()}
        self._board.answer(answers, now_s)
        return answers

    def _target(self, variant: str) -> HpaTarget:
        metrics = self._specs[variant].metrics
        return target_of(self._board, variant, self._services[variant], metrics=metrics)
