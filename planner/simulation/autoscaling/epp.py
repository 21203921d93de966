"""The router's own saturation as a trigger of KEDA: no analyzer in between.

Source: llm-d autoscaling, docs/benchmark.md (the arm "EPP saturation + KEDA"); its target is not published. 1 is a pool
that is full on average, so the default of 0.8 grows before that.
"""

from __future__ import annotations

from typing import Final

from models.autoscaling import HpaBehavior, HpaMetric, KedaSpec, MetricSource, TargetType
from planner.simulation.autoscaling.board import SATURATION

__all__ = ["DEFAULT_SATURATION", "epp_saturation"]

DEFAULT_SATURATION: Final = 0.8


def epp_saturation(
    max_replicas: int,
    *,
    min_replicas: int = 1,
    target: float = DEFAULT_SATURATION,
    behavior: HpaBehavior | None = None,
    polling_s: float = 5.0,
) -> KedaSpec:
    """A ScaledObject that keeps the pool's saturation at a target: ⌈ready × saturation / target⌉ replicas.

    Saturation is a mean over replicas and falls as they are added, so the target type Value does not compound here.
    """
    return KedaSpec(
        min_replicas=min_replicas,
        max_replicas=max_replicas,
        triggers=(
            HpaMetric(
                name=SATURATION,
                source=MetricSource.EXTERNAL,
                target_type=TargetType.VALUE,
                target=target,
            ),
        ),
        behavior=behavior,
        polling_s=polling_s,
    )
