"""Seconds of the stages of a resize, fitted to the published downtimes and totals.

What was published is six downtimes and six totals, not stages. Where each stage stands in configuration A, B and C says
which sums of stages these are, so the stages follow by least squares (relative, so that 0.82 s weighs as much as 99 s).
Starting joiners and moving weights to them are never apart in these sums: their sum is fitted.

Source: vLLM's article on Elastic EP with NIXL EP: DeepSeek V4 Pro, GB200, TP 1, 16 and 20 ranks, weights on shared
Lustre, warm kernel caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Final

import numpy as np

from models.elastic import MeasuredResize, ResizeMode

__all__ = ["PUBLISHED", "RESTARTED", "Residual", "StageSeconds", "fit_stages", "published_stages"]

_SOURCE: Final = "vLLM, Elastic EP with NIXL EP: DeepSeek V4 Pro, GB200"


def _measured(mode: ResizeMode, ranks: tuple[int, int], downtime_s: float, total_s: float) -> MeasuredResize:
    return MeasuredResize(
        mode=mode,
        from_ranks=ranks[0],
        to_ranks=ranks[1],
        downtime_s=downtime_s,
        total_s=total_s,
        source=_SOURCE,
    )


_UP, _DOWN = (16, 20), (20, 16)
PUBLISHED: Final = (
    _measured(ResizeMode.BLOCKING, _UP, 99.62, 99.72),
    _measured(ResizeMode.ASYNC, _UP, 58.04, 97.27),
    _measured(ResizeMode.ASYNC_GRAPH_REUSE, _UP, 0.82, 92.34),
    _measured(ResizeMode.BLOCKING, _DOWN, 56.25, 56.21),
    _measured(ResizeMode.ASYNC, _DOWN, 44.07, 51.46),
    _measured(ResizeMode.ASYNC_GRAPH_REUSE, _DOWN, 1.96, 9.32),
)
"""Each downtime and each total was measured on its own, so one total is a little shorter than its downtime."""

RESTARTED: Final = _measured(ResizeMode.RESTART, _UP, 197.0, 197.0)
"""The same deployment, ended and started anew with 20 ranks."""

_PAUSED: Final[Mapping[tuple[ResizeMode, bool], tuple[str, ...]]] = {
    (ResizeMode.BLOCKING, True): ("join_s", "prepare_s", "warm_workers_s", "activate_s"),
    (ResizeMode.ASYNC, True): ("warm_workers_s", "activate_s"),
    (ResizeMode.ASYNC_GRAPH_REUSE, True): ("activate_s",),
    (ResizeMode.BLOCKING, False): ("prepare_s", "recapture_s", "leave_s"),
    (ResizeMode.ASYNC, False): ("recapture_s", "leave_s"),
    (ResizeMode.ASYNC_GRAPH_REUSE, False): ("leave_s",),
}
_BEFORE: Final[Mapping[tuple[ResizeMode, bool], tuple[str, ...]]] = {
    (ResizeMode.BLOCKING, True): (),
    (ResizeMode.ASYNC, True): ("join_s", "prepare_s"),
    (ResizeMode.ASYNC_GRAPH_REUSE, True): ("join_s", "prepare_s", "warm_joiners_s"),
    (ResizeMode.BLOCKING, False): (),
    (ResizeMode.ASYNC, False): ("prepare_s",),
    (ResizeMode.ASYNC_GRAPH_REUSE, False): ("prepare_s",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSeconds:
    """Seconds of each stage.

    Attributes:
        join_s: joiners start and get weights that are not of experts.
        prepare_s: new communication groups are made beside the old ones.
        warm_joiners_s: joiners warm up and capture graphs.
        warm_workers_s: existing workers do so in a grow, joiners beside them.
        recapture_s: existing workers do so in a shrink.
        activate_s: the commit of a grow.
        leave_s: the commit of a shrink, experts moving off the ranks that leave.
    """

    join_s: float
    prepare_s: float
    warm_joiners_s: float
    warm_workers_s: float
    recapture_s: float
    activate_s: float
    leave_s: float

    def paused_s(self, mode: ResizeMode, *, grow: bool) -> float:
        """Downtime of one way, s."""
        return sum(float(getattr(self, name)) for name in _PAUSED[mode, grow])

    def total_s(self, mode: ResizeMode, *, grow: bool) -> float:
        """From the call to its end, s."""
        before = sum(float(getattr(self, name)) for name in _BEFORE[mode, grow])
        return before + self.paused_s(mode, grow=grow)


_NAMES: Final = tuple(field.name for field in fields(StageSeconds))


@dataclass(frozen=True, slots=True)
class Residual:
    """How far a fitted figure is from the one that was measured."""

    measured: MeasuredResize
    figure: str
    measured_s: float
    fitted_s: float

    @property
    def error_s(self) -> float:
        """Fitted less measured, s."""
        return self.fitted_s - self.measured_s


def fit_stages(measured: Sequence[MeasuredResize]) -> tuple[StageSeconds, tuple[Residual, ...]]:
    """Stage seconds by relative least squares, none of them negative, and what is left over.

    Args:
        measured: resizes A, B or C of one deployment, both ways.

    Raises:
        ValueError: a kind of resize is among them that has no stages, or they do not fix every stage.
    """
    rows, values = [], []
    for each in measured:
        key = (each.mode, each.to_ranks > each.from_ranks)
        if key not in _PAUSED:
            raise ValueError(f"a resize by {each.mode.value} has no stages; give A, B and C")
        paused, before = _PAUSED[key], _BEFORE[key]
        for names, value in ((paused, each.downtime_s), ((*before, *paused), each.total_s)):
            rows.append([float(name in names) for name in _NAMES])
            values.append(value)
    matrix, wanted = np.array(rows), np.array(values)
    weight = 1.0 / np.maximum(wanted, 1e-3)
    if np.linalg.matrix_rank(matrix) < len(_NAMES):
        raise ValueError("these resizes do not fix every stage; give A, B and C, growing and shrinking")
    found = np.linalg.lstsq(matrix * weight[:, None], wanted * weight, rcond=None)[0]
    seconds = StageSeconds(
        **{name: max(0.0, float(value)) for name, value in zip(_NAMES, found, strict=True)}
    )
    return seconds, tuple(_residuals(measured, seconds))


def _residuals(measured: Sequence[MeasuredResize], seconds: StageSeconds) -> list[Residual]:
    left = []
    for each in measured:
        grow = each.to_ranks > each.from_ranks
        left.append(Residual(each, "downtime", each.downtime_s, seconds.paused_s(each.mode, grow=grow)))
        left.append(Residual(each, "total", each.total_s, seconds.total_s(each.mode, grow=grow)))
    return left


@cache
def published_stages() -> tuple[StageSeconds, tuple[Residual, ...]]:
    """The stages behind :data:`PUBLISHED`, and the residuals."""
    return fit_stages(PUBLISHED)
