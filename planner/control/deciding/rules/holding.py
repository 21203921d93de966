"""Who is not decided on: no target, people said so, its size changes, nobody wished anything, or nothing is known of it.

A held variant keeps what it has, or what was decided and has not arrived yet: a broken metrics pipeline scales nothing in
and takes nothing back. While an elastic deployment changes its size, and until its experts have moved and the metrics look
back on nothing of it, its figures mean nothing: it is left as it is, and no other variant of its service scales in.
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
    why = seen.unsettled(context.now_s)
    if why:
        return way.to(way.wanted, Code.RESIZING, why, fixed=True)
    return _unknown(way, way.kept(last), asked, context)


def _unknown(way: Way, kept: int, asked: ServiceWays, context: Context) -> Way:
    """Held because nobody wished anything, or because what is seen does not mean anything."""
    seen, others = way.seen, asked.service.seen.variants
    if way.proposed is None:
        return way.to(kept, Code.FAILED, "its policy came to no answer", fixed=True)
    if seen.observed.ready and not seen.speaks:
        return way.to(kept, Code.METRICS, "none of its ready replicas shows usable metrics", fixed=True)
    if way.target >= way.wanted:
        return way
    if not any(one.speaks for one in others):
        return way.to(kept, Code.METRICS, "no replica of its service shows usable metrics")
    if any(one.unsettled(context.now_s) for one in others):
        return way.to(way.wanted, Code.RESIZING, "another variant of its service changes its size")
    return way
