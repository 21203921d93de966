"""HiGHS as it has to be asked: quietly, for a time of this run alone, and twice where it says that there is nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import highspy
import numpy as np

from planner.optimization.backends.floating import power_of_two
from planner.optimization.backends.greeting import let_highs_greet
from planner.optimization.program import Key, Row
from planner.optimization.protocol import Cancelled, never

__all__ = ["Listener", "add_row", "has_point", "quiet_highs", "run_for", "says_none", "scaled"]

_LARGEST: Final = 1e6
"""Rows with larger coefficients are scaled down: tolerances of HiGHS are absolute."""

_NONE: Final = (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible)
_FEASIBLE: Final = 2
"""kSolutionStatusFeasible of HiGHS."""

_CALLBACKS: Final = highspy.cb.HighsCallbackType


def unheard(value: float) -> None:
    """Values for nobody."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Who hears of a run on its way, and may end it.

    Attributes:
        told: the goal of every better point.
        cancelled: asked often; when it says so the run ends with what it has.
        unit: the goal of one unit of what HiGHS makes small.
    """

    told: Callable[[float], None] = unheard
    cancelled: Cancelled = never
    unit: float = 1.0

    def listen_to(self, highs: highspy.Highs) -> None:
        """Hear of all runs from now on."""
        wanted = [_CALLBACKS.kCallbackMipImprovingSolution] if self.told is not unheard else []
        wanted += [_CALLBACKS.kCallbackMipInterrupt] if self.cancelled is not never else []
        if wanted:
            highs.setCallback(self._hear, None)
        for kind in wanted:
            highs.startCallback(kind)

    def _hear(self, kind: object, _message: str, found: Any, answer: Any, _data: object) -> None:  # noqa: ANN401 - highspy
        if kind == _CALLBACKS.kCallbackMipImprovingSolution:
            self.told(found.mip_primal_bound * self.unit)
        elif self.cancelled():
            answer.user_interrupt = True


def quiet_highs() -> highspy.Highs:
    """A HiGHS that prints nothing."""
    let_highs_greet()
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    highs.setOptionValue("output_flag", False)
    return highs


def run_for(highs: highspy.Highs, seconds: float) -> highspy.HighsModelStatus:
    """Run for at most so many seconds; HiGHS itself adds up what its runs take."""
    highs.setOptionValue("time_limit", highs.getRunTime() + seconds if seconds < inf else highspy.kHighsInf)
    highs.run()
    return highs.getModelStatus()


def says_none(highs: highspy.Highs, seconds: float) -> bool:
    """Run for at most so many seconds; whether there is no point at all.

    Presolve of HiGHS 1.16 was seen to call a feasible program infeasible, so such a word needs a second one without it.
    """
    end = highs.getRunTime() + seconds
    highs.setOptionValue("presolve", "choose")
    if run_for(highs, seconds) not in _NONE:
        return False
    highs.setOptionValue("presolve", "off")
    return run_for(highs, max(0.0, end - highs.getRunTime())) in _NONE


def has_point(highs: highspy.Highs) -> bool:
    """Whether the last run left a point."""
    return int(highs.getInfo().primal_solution_status) == _FEASIBLE


def add_row(highs: highspy.Highs, row: Row, place: Mapping[Key, int]) -> None:
    """A row, scaled; ``place`` is the number of each of its columns."""
    lower, upper, values = scaled(row)
    places = np.array([place[key] for key in row.terms], dtype=np.int32)
    highs.addRow(lower, upper, len(places), places, np.array(values))


def scaled(row: Row) -> tuple[float, float, list[float]]:
    """Sides of a row, open ones infinite, and its coefficients, in a size that suits HiGHS."""
    scale = power_of_two(row.terms.values(), _LARGEST)
    return (
        -highspy.kHighsInf if row.lower is None else row.lower / scale,
        highspy.kHighsInf if row.upper is None else row.upper / scale,
        [value / scale for value in row.terms.values()],
    )
