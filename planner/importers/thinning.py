"""Fewer rows of a profile table without losing what plans are made from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from models.performance import MeasuredPoint

__all__ = ["for_planning"]

_QUICK_TTFT_S: Final = 0.5
_QUICK_ITL_S: Final = 0.02
_SLOW_TTFT_S: Final = 10.0
_SLOW_ITL_S: Final = 0.1


def for_planning(points: Iterable[MeasuredPoint]) -> tuple[MeasuredPoint, ...]:
    """The points that decide a plan with interactive promises, in their order.

    Left out are points slower than any such promise (TTFT above 10 s or ITL above 100 ms) and points
    that another one of the same setup and shape makes pointless: it carries at least as much, and each of
    its latencies is no worse or quick enough for everybody (TTFT 0.5 s, ITL 20 ms). A promise tighter than
    those needs the whole table.
    """
    fair = [point for point in points if point.ttft_s <= _SLOW_TTFT_S and point.itl_s <= _SLOW_ITL_S]
    groups: dict[object, list[MeasuredPoint]] = {}
    for point in fair:
        groups.setdefault(_setup(point), []).append(point)
    return tuple(point for point in fair if not _pointless(point, groups[_setup(point)]))


def _setup(point: MeasuredPoint) -> object:
    return (
        point.llm, point.accelerator, point.engine, point.engine_version, point.precision, point.kv_precision,
        point.parallelism, point.role, point.input_tokens, point.output_tokens, point.at,
    )  # fmt: skip


def _pointless(point: MeasuredPoint, group: list[MeasuredPoint]) -> bool:
    # Of two that make each other pointless the later one goes: `is` finds the first of equals.
    place = next(index for index, other in enumerate(group) if other is point)
    return any(
        _as_good(other, point) and (index < place or not _as_good(point, other))
        for index, other in enumerate(group)
        if index != place
    )


def _as_good(one: MeasuredPoint, other: MeasuredPoint) -> bool:
    return (
        one.rps >= other.rps
        and one.ttft_s <= max(_QUICK_TTFT_S, other.ttft_s)
        and one.itl_s <= max(_QUICK_ITL_S, other.itl_s)
    )
