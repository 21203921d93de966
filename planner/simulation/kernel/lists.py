"""Doubly linked lists of slots: waiting and running requests of a replica, the queue of a service.

A list is two neighboring columns of a row, head and tail; 0 stands for nobody, so slots are stored plus one.
"""

from __future__ import annotations

from planner.simulation.kernel import slot
from planner.simulation.kernel.compiling import compiled
from planner.simulation.kernel.state import Ints

__all__ = ["insert_by_priority", "push_back", "push_front", "unlink"]


@compiled
def _insert_after(slots: Ints, row: Ints, head: int, s: int, before: int) -> None:
    """Put ``s`` after ``before`` (plus one; 0: first)."""
    after = slots[before - 1, slot.NEXT] if before else row[head]
    slots[s, slot.PREV], slots[s, slot.NEXT] = before, after
    if before:
        slots[before - 1, slot.NEXT] = s + 1
    else:
        row[head] = s + 1
    if after:
        slots[after - 1, slot.PREV] = s + 1
    else:
        row[head + 1] = s + 1


@compiled
def push_back(slots: Ints, row: Ints, head: int, s: int) -> None:
    """Make ``s`` the last."""
    _insert_after(slots, row, head, s, row[head + 1])


@compiled
def push_front(slots: Ints, row: Ints, head: int, s: int) -> None:
    """Make ``s`` the first."""
    _insert_after(slots, row, head, s, 0)


@compiled
def insert_by_priority(slots: Ints, row: Ints, head: int, s: int) -> None:
    """Put ``s`` behind all of its priority or a higher one."""
    before = row[head + 1]
    while before and slots[before - 1, slot.PRIORITY] < slots[s, slot.PRIORITY]:
        before = slots[before - 1, slot.PREV]
    _insert_after(slots, row, head, s, before)


@compiled
def unlink(slots: Ints, row: Ints, head: int, s: int) -> None:
    """Take ``s`` out."""
    before, after = slots[s, slot.PREV], slots[s, slot.NEXT]
    if before:
        slots[before - 1, slot.NEXT] = after
    else:
        row[head] = after
    if after:
        slots[after - 1, slot.PREV] = before
    else:
        row[head + 1] = before
    slots[s, slot.PREV], slots[s, slot.NEXT] = 0, 0
