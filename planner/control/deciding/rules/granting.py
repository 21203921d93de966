"""Growth gets accelerators that really exist: the more important service first, then the fuller one."""

from __future__ import annotations

from collections.abc import Sequence

from planner.control.deciding.room import Room
from planner.control.deciding.rules.way import Code, ServiceWays, Way

__all__ = ["granted"]


def granted(all_ways: Sequence[ServiceWays], room: Room) -> list[ServiceWays]:
    """Cut growth to what there is room for now.

    Replicas up to a minimum are asked for like all others: where nothing has room for them they would only wait.
    """
    growing = [(asked, way) for asked in all_ways for way in asked.ways if way.grows]
    growing.sort(key=lambda pair: (*_urgency(*pair), pair[1].seen.ref))
    cut: dict[int, list[Way]] = {}
    for asked, way in growing:
        wish = way.target - way.wanted
        taken = room.take(way.seen.observed, wish)
        if taken.replicas < wish:
            short = wish - taken.replicas
            what = "the quota of its namespace" if taken.limit == "quota" else "free accelerators"
            message = f"{what} leave{'s' * (taken.limit == 'quota')} room for {taken.replicas} of {wish} replicas more"
            moved = way.to(way.wanted + taken.replicas, Code.CONSTRAINED, message, short=short)
            cut.setdefault(id(asked), []).append(moved)
    return [asked.but(cut[id(asked)]) if id(asked) in cut else asked for asked in all_ways]


def _urgency(asked: ServiceWays, way: Way) -> tuple[float, float, float]:
    service = asked.service
    step = service.step(service.tokens, way.role)
    full = step.demand / step.supply if step is not None and step.supply > 0 else float(way.target > 0)
    return -service.seen.rules.priority, -full, way.seen.observed.cost
