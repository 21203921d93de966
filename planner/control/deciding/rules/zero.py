"""Zero is apart: a service goes there only where nobody uses it, and never by accident.

Whether somebody uses it is told by arrivals, requests in engines and requests in routers, watched for the whole retention
time (:mod:`planner.control.analysis.quiet`); never by completions, and never by what is not known.
"""

from __future__ import annotations

from planner.control.deciding.rules.way import Code, Context, ServiceWays, Way

__all__ = ["never_by_accident", "to_zero"]


def to_zero(asked: ServiceWays, context: Context) -> ServiceWays:
    """Put a service to sleep that may sleep and that nobody uses; all its variants, or none."""
    service = asked.service
    rules = service.seen.rules
    allowed = rules.scale_to_zero and service.unused and context.complete
    if not allowed or any(way.fixed and way.wanted > 0 for way in asked.ways):
        return asked
    if any(way.seen.observed.min_replicas > 0 for way in asked.ways if way.seen.resolved):
        return asked
    message = f"nobody used the service for {rules.retention_s:g} s"
    return asked.but(
        [
            way.to(0, Code.SCALED_TO_ZERO, message, fixed=True)
            for way in asked.ways
            if not way.fixed and (way.wanted > 0 or way.target > 0)
        ]
    )


def never_by_accident(asked: ServiceWays, context: Context) -> ServiceWays:
    """Keep one replica of each role that has some: of what runs, the cheapest."""
    kept = [
        _cheapest(running).to(1, Code.KEPT_ONE, "the last replica of its role stays: the service is in use")
        for ways in asked.by_role().values()
        if not any(way.fixed and way.code is Code.SCALED_TO_ZERO for way in ways)
        and sum(way.target for way in ways) == 0
        and (running := [way for way in ways if way.shrinks])
    ]
    return asked.but(kept)


def _cheapest(ways: list[Way]) -> Way:
    return min(ways, key=lambda way: (way.seen.observed.ready == 0, way.seen.observed.cost, way.seen.ref))
