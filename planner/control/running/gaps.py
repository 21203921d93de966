"""Times in which nobody watched: a restart, a pause of the machine, a clock that was set.

Windows of stabilization, quiet times and growth on its way are counted by the time of day, since they survive a restart. Where
that time went on and no cycle looked, nothing is known of it: a window that seems to be over was never watched.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from models.observation import Finding
from planner.clock import Clock
from planner.control.analysis.memory import AnalysisMemory
from planner.control.deciding.state import DecidingState
from planner.control.running.memory import LoopMemory

__all__ = ["UNWATCHED_S", "Gap", "Gaps", "counted_anew"]

UNWATCHED_S: Final = 120.0
"""Longest time between two cycles that counts as watched, s; or three cycles, where these are longer."""
_CYCLES: Final = 3
_SET_S: Final = 5.0
"""Clocks that are corrected by less are corrected all the time."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Time that nobody watched.

    Attributes:
        finding: what is to be said of it.
        off_s: by how much the clock was set, s.
    """

    finding: Finding
    off_s: float = 0.0


def counted_anew(memory: LoopMemory, off_s: float) -> LoopMemory:
    """The memory without what counts only where somebody watched all the time; every window begins now.

    Args:
        memory: of the cycle before.
        off_s: by how much the clock was set; times that others keep, such as an HPA that follows, are set as well.
    """
    known = memory.deciding
    analysis = AnalysisMemory(tokens=known.analysis.tokens, learning=known.analysis.learning)
    deciding = DecidingState(analysis=analysis, decided=known.decided, warm=known.warm)
    sent = {ref: each._replace(at_s=each.at_s + off_s) for ref, each in memory.sent.items()}
    woken = {ref: at_s + off_s for ref, at_s in memory.woken.items()}
    return replace(memory, deciding=deciding, sent=sent, woken=woken)


@dataclass(slots=True)
class Gaps:
    """Notices gaps between cycles.

    Args:
        clock: whose time of day may be set, and whose other time only goes on.
    """

    clock: Clock
    _day_s: float | None = None
    _steady_s: float = 0.0
    _from_before: float | None = field(default=None)

    def after_restart(self, at_s: float) -> None:
        """Count from when the process before wrote down what it remembered, seconds of the epoch; 0: it did not."""
        self._from_before = at_s or None

    def noticed(self, cycle_s: float) -> Gap | None:
        """The gap since the last cycle; None: that time was watched.

        Args:
            cycle_s: between cycles, as set.
        """
        day_s, steady_s = self.clock.unix_s(), self.clock.monotonic_s()
        last_s, self._day_s = self._day_s, day_s
        since_s, self._steady_s = steady_s - self._steady_s, steady_s
        before_s, self._from_before = self._from_before, None
        longest_s = max(UNWATCHED_S, _CYCLES * cycle_s)
        if last_s is None:
            return _unwatched(day_s - before_s, longest_s) if before_s is not None else None
        off_s = day_s - last_s - since_s
        if abs(off_s) > _SET_S:
            problem = f"the clock of this machine was set by {off_s:+.0f} s, or it stood still; windows of time begin anew"
            return Gap(Finding(subject="clock", problem=problem, remedy="keep it by NTP"), off_s)
        return _unwatched(since_s, longest_s)


def _unwatched(since_s: float, longest_s: float) -> Gap | None:
    if 0 <= since_s <= longest_s:
        return None
    problem = f"no cycle looked for {since_s:.0f} s; windows of time begin anew"
    return Gap(Finding(subject="controller", problem=problem))
