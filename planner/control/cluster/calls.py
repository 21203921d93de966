"""Calls that are repeated while there is hope, and within a limit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from planner.clock import Clock
from planner.control.calling import jittered
from planner.control.cluster.answers import object_of
from planner.control.cluster.faults import PASSING, ClusterFault, Rule, Trouble
from planner.control.cluster.reading import Object
from planner.control.cluster.tally import Tally
from planner.control.cluster.transport import Call, Transport

__all__ = ["Limits", "Way", "called"]

_TOO_MANY: Final = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how often.

    Attributes:
        timeout_s: of one call, s.
        within_s: of a call with all its repetitions, s.
        tries: of a call that may succeed in a moment.
        first_s: wait before the second try, doubled for each further one, s.
        conflicts: how often a write is worked out again because the object changed.
        page: objects of one page.
        most: objects of one listing.
    """

    timeout_s: float = 10.0
    within_s: float = 30.0
    tries: int = 5
    first_s: float = 0.25
    conflicts: int = 5
    page: int = 500
    most: int = 500_000


@dataclass(frozen=True, slots=True)
class Way:
    """What carries calls, by which clock and in which limits, and who counts them."""

    transport: Transport
    clock: Clock
    limits: Limits
    tally: Tally = field(default_factory=Tally)


def _leaves_open(call: Call, fault: ClusterFault) -> bool:
    """Whether a write may have been done in spite of a fault."""
    silent = fault.trouble in {Trouble.TIMEOUT, Trouble.UNREACHABLE, Trouble.GARBLED}
    broke = fault.trouble is Trouble.BUSY and fault.status != _TOO_MANY
    return (silent or broke) and call.method != "GET" and "dryRun" not in call.query


def called(
    way: Way, call: Call, rule: Rule, *, passing: frozenset[Trouble] = PASSING, once: bool = False
) -> Object:
    """The object that answers a call; repeated after faults of the kinds in ``passing``.

    Args:
        way: to the API.
        call: its timeout is that of the limits, or what is left of the time.
        rule: what it needs, for the message where it is denied.
        passing: faults that may be gone in a moment.
        once: it may have been done already after any fault but 429, and is not repeated then.

    Raises:
        ClusterFault: the last fault.
    """
    clock, limits = way.clock, way.limits
    end_s = clock.monotonic_s() + limits.within_s
    for tried in range(1, limits.tries + 1):
        left_s = end_s - clock.monotonic_s()
        try:
            timeout_s = max(0.05, min(limits.timeout_s, left_s))
            found = object_of(way.transport.call(replace(call, timeout_s=timeout_s)), rule)
        except ClusterFault as fault:
            way.tally.count(rule, fault.trouble)
            fault.unsure = _leaves_open(call, fault)
            wait_s = max(jittered(limits.first_s * 2.0 ** (tried - 1)), fault.after_s or 0.0)
            late = clock.monotonic_s() + wait_s >= end_s
            undone = fault.trouble in passing and (not once or fault.status == _TOO_MANY)
            if not undone or tried == limits.tries or late:
                raise
        else:
            way.tally.count(rule, None, dry_run="dryRun" in call.query)
            return found
        clock.sleep(wait_s)
    raise AssertionError("unreachable: the last try returns or raises")
