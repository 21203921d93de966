"""From one metric to a count of replicas, as the Kubernetes HPA controller computes it.

Figures are compared in thousandths, as the controller does, so that 1.1 / 0.1 is 11 and not a bit more.

Source: Kubernetes, pkg/controller/podautoscaler/replica_calculator.go, and "Horizontal Pod Autoscaling", algorithm details.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, NamedTuple

__all__ = ["PodFigure", "PodPhase", "Tolerances", "average_value", "per_pod", "value"]

_THOUSANDTHS: Final = 1000
_LAST_BITS: Final = 1e-6


class PodPhase(Enum):
    """What the controller makes of a pod."""

    RUNNING = "running"
    PENDING = "pending"
    """Not started yet: set aside, and idle where one would scale up."""


class PodFigure(NamedTuple):
    """One pod: its figure (None: no metric) and phase. Terminating and failed pods are not listed at all."""

    value: float | None
    phase: PodPhase = PodPhase.RUNNING


class Tolerances(NamedTuple):
    """How far the ratio of a figure to its target may be from 1, below and above, and change nothing."""

    down: float = 0.1
    up: float = 0.1

    def contain(self, ratio: float) -> bool:
        """Whether a ratio changes nothing."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def per_pod(
    figures: Sequence[PodFigure], target: float, *, current: int, tolerances: Tolerances
) -> int | None:
    """Replicas for a metric of pods with a target average.

    The mean over pods that have the metric sets a ratio; pods without it then count as at the target where the ratio
    says down and as idle where it says up, pending ones as idle where it says up. An answer that turns round after
    that, or comes into the tolerance, changes nothing. (A mean of exactly the target counts as up, so that silent pods
    are idle then and may be removed: a quirk of the controller, kept.)

    Returns:
        The count; None where no running pod has the metric.
    """
    seen = [_milli(one.value) for one in figures if one.phase is PodPhase.RUNNING and one.value is not None]
    missing = sum(one.phase is PodPhase.RUNNING and one.value is None for one in figures)
    pending = sum(one.phase is PodPhase.PENDING for one in figures)
    if not seen:
        return None
    goal = _milli(target)
    ratio = _mean(seen) / goal
    idle = pending if ratio > 1.0 else 0
    if not idle and not missing:
        return current if tolerances.contain(ratio) else math.ceil(ratio * len(seen))
    filled = [*seen, *[goal if ratio < 1.0 else 0] * missing, *[0] * idle]
    again = _mean(filled) / goal
    if tolerances.contain(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return current
    count = math.ceil(again * len(filled))
    turned = (again < 1.0 and count > current) or (again > 1.0 and count < current)
    return current if turned else count


def average_value(total: float, target: float, *, existing: int, tolerances: Tolerances) -> int:
    """Replicas for an external metric with an AverageValue target: ⌈total / target⌉ outside the tolerance.

    Args:
        total: sum over the series of the metric.
        target: per replica.
        existing: pods there are, ready or not.
        tolerances: of total / (target × existing).
    """
    figure, goal = _milli(total), _milli(target)
    if existing and tolerances.contain(figure / (goal * existing)):
        return existing
    return math.ceil(figure / goal)


def value(total: float, target: float, *, current: int, ready: int, tolerances: Tolerances) -> int:
    """Replicas for an external metric with a Value target: ⌈ready × total / target⌉ outside the tolerance.

    From zero the ratio itself is the count. A figure that does not fall as replicas are added compounds: 2 at a target
    of 1 asks for 4, then 8.
    """
    ratio = _milli(total) / _milli(target)
    if current == 0:
        return math.ceil(ratio)
    return current if tolerances.contain(ratio) else math.ceil(ratio * ready)


def _milli(amount: float) -> int:
    """Thousandths, rounded up as Kubernetes quantities are."""
    return math.ceil(amount * _THOUSANDTHS - _LAST_BITS)


def _mean(thousandths: Iterable[int]) -> int:
    """The controller's own mean: whole thousandths."""
    listed = list(thousandths)
    return sum(listed) // len(listed)
