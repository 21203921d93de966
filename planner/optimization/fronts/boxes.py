"""Every point of a staircase, or the ones that tell most, by halving boxes between neighbors.

Between two neighbors a (left, high) and b (right, low) the box is cut at half its height. The leftmost point of the
lower half and the lowest point left of that one are new neighbors, or the old ones: then the box is empty. (N. Boland,
H. Charkhgard, M. Savelsbergh, "A criterion space search algorithm for biobjective integer programming: the balanced box
method", INFORMS J. Computing 27, 2015.) The largest box is cut first, so that few points already show the shape.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

__all__ = ["Found", "Staircase", "staircase"]


class Found(Protocol):
    """A point in whole numbers, both to be made small."""

    @property
    def place(self) -> tuple[int, int]:
        """Its two numbers."""
        ...


P = TypeVar("P", bound=Found)
Best = Callable[[int | None], P | None]
"""The best point in one number, then in the other, where the other is at most so large (None: any); None: not found."""


@dataclass
class Staircase(Generic[P]):
    """Points from left to right, and whether any may be missing."""

    points: list[P] = field(default_factory=list)
    complete: bool = False


def _untold(points: list[P]) -> None:
    """Nobody wants to hear of points as they are found."""


def staircase(
    leftmost: Best[P], lowest: Best[P], *, most: int, told: Callable[[list[P]], None] = _untold
) -> Staircase[P]:
    """Points none of which is better than another in both numbers; both ends, and at most ``most`` in all.

    Args:
        leftmost: the smallest x where y is at most so large, then the smallest y.
        lowest: the smallest y where x is at most so large, then the smallest x.
        most: points at most, at least the two ends.
        told: is given the stairs so far, from left to right, whenever there is another point.
    """
    first = leftmost(None)
    if first is None:
        return Staircase()
    last = lowest(None)
    if last is None:
        return Staircase([first])
    found = {each.place: each for each in (first, last)}
    told(_undominated(list(found.values())))
    complete, boxes = True, _Boxes(first, last)
    boxes.add(first, last)
    while boxes.heap and len(found) < most:
        left, right = boxes.largest()
        middle = (left.place[1] + right.place[1]) // 2
        lower = leftmost(middle)
        if lower is None or not _inside(lower, left, right) or lower.place[1] > middle:
            complete = False
            continue
        found[lower.place] = lower
        told(_undominated(list(found.values())))
        boxes.add(lower, right)
        upper = lowest(lower.place[0] - 1) if len(found) < most else None
        if upper is None or not _inside(upper, left, lower):
            complete = False
            continue
        found[upper.place] = upper
        told(_undominated(list(found.values())))
        boxes.add(left, upper)
    return Staircase(_undominated(list(found.values())), complete and not boxes.heap)


def _inside(point: P, left: P, right: P) -> bool:
    """Whether a point is a corner of a box or in it; it is not where a proof was not finished."""
    x, y = point.place
    return left.place[0] <= x <= right.place[0] and right.place[1] <= y <= left.place[1]


class _Boxes(Generic[P]):
    """Boxes between neighbors by their area, in parts of the whole."""

    def __init__(self, first: P, last: P) -> None:
        self._width = max(1, last.place[0] - first.place[0])
        self._height = max(1, first.place[1] - last.place[1])
        self.heap: list[tuple[float, tuple[int, int], P, P]] = []

    def add(self, left: P, right: P) -> None:
        """A box, unless nothing fits between its corners."""
        width, height = right.place[0] - left.place[0], left.place[1] - right.place[1]
        if width > 1 and height > 1:
            area = width / self._width * height / self._height
            heapq.heappush(self.heap, (-area, left.place, left, right))

    def largest(self) -> tuple[P, P]:
        """Take the largest box."""
        *_, left, right = heapq.heappop(self.heap)
        return left, right


def _undominated(points: list[P]) -> list[P]:
    """From left to right; a point that is not lower than one left of it is left out."""
    kept: list[P] = []
    for point in sorted(points, key=lambda point: point.place):
        if not kept or point.place[1] < kept[-1].place[1]:
            kept.append(point)
    return kept
