"""Against thrashing: changes too small to make, windows that wishes are looked back on, and steps.

The windows are those of a HorizontalPodAutoscaler (KEP-853): up to the lowest wish of one window, down to the highest of the
other. A variant that is seen for the first time is taken to have been wished for as it is, so that a controller that lost
its memory scales nothing in before the window is over.
"""

from __future__ import annotations

from planner.control.analysis import VariantRef
from planner.control.deciding.rules.way import Code, Context, ServiceWays, Way
from planner.control.deciding.state import Wish

__all__ = ["in_steps", "outside_dead_band", "remembered", "stabilized"]


def outside_dead_band(asked: ServiceWays, context: Context) -> ServiceWays:
    """Leave out changes of a smaller share than the dead band; one from or to zero is never small."""
    return asked.but([_banded(way) for way in asked.ways if way.grows or way.shrinks])


def _banded(way: Way) -> Way:
    band = way.seen.rules.dead_band
    change = abs(way.target - way.wanted)
    below = way.wanted < way.seen.observed.min_replicas
    if not way.wanted or not way.target or below or change > band * way.wanted:
        return way
    share = f"{100 * change / way.wanted:.3g} %"
    return way.to(
        way.wanted, Code.DEAD_BAND, f"a change by {share} is inside of the dead band of {100 * band:.3g} %"
    )


def remembered(way: Way, context: Context) -> tuple[Wish, ...]:
    """The wishes of a variant with that of now; equal ones in a row are one, at the time of the last."""
    rules, now = way.seen.rules, Wish(context.now_s, way.target)
    reach = context.now_s - max(rules.stabilize_up_s, rules.stabilize_down_s)
    before = context.wishes.get(way.seen.ref)
    if before is None:
        before = (Wish(context.now_s, way.wanted),) if way.seen.resolved else ()
    kept = [wish for wish in before if reach < wish.at_s <= context.now_s]
    if kept and kept[-1].replicas == now.replicas:
        kept.pop()
    return (*kept, now)


def stabilized(
    asked: ServiceWays, context: Context
) -> tuple[ServiceWays, dict[VariantRef, tuple[Wish, ...]]]:
    """Follow wishes up and down only as far as those of the windows agree.

    Returns:
        The ways, and the wishes that the next cycle looks back on.
    """
    wishes = {way.seen.ref: remembered(way, context) for way in asked.ways}
    moved = [
        _looked_back(way, wishes[way.seen.ref], context) for way in asked.ways if way.grows or way.shrinks
    ]
    return asked.but(moved), wishes


def _looked_back(way: Way, wishes: tuple[Wish, ...], context: Context) -> Way:
    rules = way.seen.rules
    least, most = way.seen.observed.min_replicas, way.seen.observed.max_replicas
    if way.grows:
        window = rules.stabilize_up_s
        agreed = min([way.target, *_within(wishes, context.now_s - window)] if window else [way.target])
        target = max(way.wanted, agreed, least)
        message = f"the lowest wish of the last {window:g} s is followed up"
    else:
        window = rules.stabilize_down_s
        agreed = max([way.target, *_within(wishes, context.now_s - window)] if window else [way.target])
        target = min(way.wanted, agreed)
        if most is not None and most >= least:
            target = min(target, max(most, way.target))
        message = f"the highest wish of the last {window:g} s is followed down"
    return way.to(target, Code.STABILIZED, message)


def _within(wishes: tuple[Wish, ...], since_s: float) -> list[int]:
    return [wish.replicas for wish in wishes if wish.at_s > since_s]


def in_steps(asked: ServiceWays, context: Context) -> ServiceWays:
    """Add and take no more replicas in one cycle than the step; up to the minimum at once."""
    return asked.but([_stepped(way) for way in asked.ways if way.grows or way.shrinks])


def _stepped(way: Way) -> Way:
    up, down = way.seen.rules.step_up, way.seen.rules.step_down
    if way.grows and up and way.target - way.wanted > up:
        target = max(way.wanted + up, min(way.target, way.seen.observed.min_replicas))
        return way.to(target, Code.STEP, f"at most {up} are added in a cycle")
    if way.shrinks and down and way.wanted - way.target > down:
        return way.to(way.wanted - down, Code.STEP, f"at most {down} are taken in a cycle")
    return way
