"""Which points say something about a replica that works, and which about one that is full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from models.calibration import LeftOut
from models.load import Arrivals, LoadPoint

__all__ = ["batch_seen", "left_out", "reasons_against"]

_ERRORS: Final = 0.05
"""More failures than this and the answered requests are a selection."""
_KV_FULL: Final = 0.95
"""From here on vLLM preempts requests and computes them again."""
_QUEUE: Final = 1.0
"""As many wait as are served: the time to first token tells of the queue, not of the replica."""
_PAST_PEAK: Final = 0.95
"""Share of the best rate at a lower load: noise stays above it, a replica that thrashes falls below."""
_MORE_LOAD: Final = 1.05


def batch_seen(point: LoadPoint) -> float | None:
    """Requests in the batch as one request sees it, itself included; None: unknown.

    In a closed loop that is the number in flight. In an open loop a request meets the mean number and adds
    itself: for a service time that is linear in the number, this is exact in the queueing model.
    """
    replicas = point.origin.replicas or 1
    # Requests in flight count only while nothing is known of a queue in front of the batch.
    among = point.running if point.running is not None else point.in_flight
    if among is None:
        return None
    return among / replicas + (1.0 if point.arrivals is Arrivals.OPEN else 0.0)


def reasons_against(
    points: Sequence[LoadPoint], *, max_batch: int | None = None
) -> tuple[LeftOut | None, ...]:
    """For each point why it cannot be fitted; None: it can.

    Args:
        points: of one replica.
        max_batch: requests that the engine serves at once; None: unknown.
    """
    best = _best_rates(points)
    return tuple(
        left_out(point, best_below=best[index], max_batch=max_batch) for index, point in enumerate(points)
    )


def left_out(point: LoadPoint, *, best_below: float = 0.0, max_batch: int | None = None) -> LeftOut | None:
    """Why a point cannot be fitted; None: it can.

    Args:
        point: one load level.
        best_below: best rate of the same shape at a lower load, req/s; 0: none.
        max_batch: requests that the engine serves at once; None: unknown.
    """
    batch = batch_seen(point)
    if batch is None:
        return LeftOut.NO_LOAD
    if point.error_share > _ERRORS:
        return LeftOut.ERRORS
    if point.kv_usage is not None and point.kv_usage >= _KV_FULL:
        return LeftOut.KV_FULL
    if point.waiting is not None and point.waiting > _QUEUE * max(1.0, point.running or 0.0):
        return LeftOut.QUEUE
    if max_batch is not None and point.running is None and batch > max_batch + 1:
        return LeftOut.BEYOND_BATCH
    return LeftOut.PAST_PEAK if point.achieved_rps < _PAST_PEAK * best_below else None


def _best_rates(points: Sequence[LoadPoint]) -> Mapping[int, float]:
    """For each point the best rate of its shape at a load that is clearly lower."""
    loads = [batch_seen(point) or 0.0 for point in points]
    best: dict[int, float] = {}
    for index, point in enumerate(points):
        below = [
            other.achieved_rps
            for load, other in zip(loads, points, strict=True)
            if other.shape == point.shape and load * _MORE_LOAD < loads[index]
        ]
        best[index] = max(below, default=0.0)
    return best
