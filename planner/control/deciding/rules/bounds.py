"""Least and most replicas, as people wrote them on the scaler; never more than anybody has."""

from __future__ import annotations

from planner.control.analysis.reading import most_replicas
from planner.control.deciding.rules.way import Code, Context, ServiceWays, Way

__all__ = ["within_bounds"]


def within_bounds(asked: ServiceWays, context: Context) -> ServiceWays:
    """Raise to the minimum, lower to the maximum; the minimum goes first where they contradict one another."""
    return asked.but([_bounded(way) for way in asked.ways if not way.fixed])


def _bounded(way: Way) -> Way:
    least, most = way.seen.observed.min_replicas, most_replicas(way.seen.observed)
    if way.target > most >= least:
        stated = most == way.seen.observed.max_replicas
        message = f"its maximum is {most}" if stated else f"nobody has more than {most} replicas"
        return way.to(
            most, Code.MAXIMUM, message, short=way.target - max(most, way.wanted) if way.grows else 0
        )
    if way.target < least:
        return way.to(least, Code.MINIMUM, f"its minimum is {least}")
    return way
