"""Who is not decided on: no target, people said so, nobody wished anything, or nothing is known of it.

A held variant keeps what it has, or what was decided and has not arrived yet: a broken metrics pipeline scales nothing in
and takes nothing back.
"""

from __future__ import annotations

from planner.control.deciding.rules.way import Code, Context, ServiceWays, Way

__all__ = ["hold"]


def hold(asked: ServiceWays, context: Context) -> ServiceWays:
    """Fix those that may not be decided on at what they have."""
    return asked.but([_held(way, asked, context) for way in asked.ways])


def _held(way: Way, asked: ServiceWays, context: Context) -> Way:
    seen = way.seen
    last = context.decided.get(seen.ref)
    if not seen.resolved:
        # Nothing runs there; what was last said stands until somebody puts the target back.
        kept = seen.observed.min_replicas if last is None else last
        target = seen.observed.target
        return way.to(
            kept, Code.TARGET_NOT_FOUND, f"there is no {target.kind} {target.name} to scale", fixed=True
        )
    if seen.paused:
        return way.to(way.wanted, Code.PAUSED, "people asked that nothing is changed", fixed=True)
    kept = way.kept(last)
    if way.proposed is None:
        return way.to(kept, Code.FAILED, "its policy came to no answer", fixed=True)
    if seen.observed.ready and not seen.speaks:
        return way.to(kept, Code.METRICS, "none of its ready replicas shows usable metrics", fixed=True)
    if not any(one.speaks for one in asked.service.seen.variants) and way.target < way.wanted:
        return way.to(kept, Code.METRICS, "no replica of its service shows usable metrics")
    return way
