"""Pages over time -> maxima, means and rates, as Prometheus works them out: resets of counters count from zero."""

from __future__ import annotations

import math
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from planner.control.collectors.names import How, Measure, Way

__all__ = ["Ledger"]

_FINE_S: Final = 60.0
"""Every reading of so long is kept, for maxima; older ones at least :data:`_COARSE_S` apart, for growth."""
_COARSE_S: Final = 15.0
_MOST_FINE: Final = 240
_GAP_S: Final = 300.0
"""Two readings further apart tell no rate of now."""

Moment: TypeAlias = "tuple[float, array[float]]"


@dataclass(slots=True)
class _History:
    """What one place said over time: moments (s) with a value for each of ``series``, oldest first."""

    series: tuple[str, ...]
    started_s: float | None
    old: deque[Moment] = field(default_factory=deque)
    fine: deque[Moment] = field(default_factory=deque)

    def add(self, at_s: float, values: array[float], keep_s: float) -> None:
        if self.fine and at_s <= self.fine[-1][0]:
            # The same page again, or a clock that was set back: what is known stays.
            return
        self.fine.append((at_s, values))
        while self.fine[0][0] < at_s - _FINE_S or len(self.fine) > _MOST_FINE:
            moment = self.fine.popleft()
            if not self.old or moment[0] >= self.old[-1][0] + _COARSE_S:
                self.old.append(moment)
        while self.old and self.old[0][0] < at_s - keep_s - _COARSE_S:
            self.old.popleft()

    def become(self, series: tuple[str, ...], at_first: Callable[[str], float]) -> None:
        """Go on with other series; what was not there before is as ``at_first`` says."""
        at = [self.series.index(name) if name in self.series else None for name in series]
        for moments in (self.old, self.fine):
            for index, (time_s, values) in enumerate(moments):
                moved = (
                    at_first(name) if where is None else values[where]
                    for name, where in zip(series, at, strict=True)
                )
                moments[index] = (time_s, array("d", moved))
        self.series = series

    def since(self, start_s: float) -> list[Moment]:
        """Moments from ``start_s`` on, and the newest one before."""
        moments = [*self.old, *self.fine]
        first = next((at for at, (time_s, _) in enumerate(moments) if time_s > start_s), len(moments))
        return moments[max(0, first - 1) :]


class Ledger:
    """Keeps what places said, and answers with measures.

    Args:
        measures: what is asked for.
        windows: of measures in place of their own, s, by field.
    """

    def __init__(self, measures: Sequence[Measure], windows: Mapping[str, float] | None = None) -> None:
        self._windows = {each.field: (windows or {}).get(each.field, each.window_s) for each in measures}
        self._measures = measures
        self._counters = frozenset(
            name
            for measure in measures
            for way in measure.ways
            if measure.how_of(way) in {How.MEAN, How.RATE, How.GROWTH}
            for name in way.series
        )
        self._keep_s = max(_GAP_S, *self._windows.values())
        self._histories: dict[object, _History] = {}

    def add(
        self,
        key: object,
        at_s: float,
        values: Mapping[str, float],
        *,
        started_s: float | None = None,
        before_s: float | None = None,
    ) -> None:
        """Note what a place says.

        Args:
            key: the place.
            at_s: when, seconds of the epoch.
            values: by series.
            started_s: start of its process, seconds of the epoch; None: unknown.
            before_s: when the page that this is from was read the last time: counters that were not on it then began
                at zero since; None: never.
        """
        series = tuple(sorted(values))
        history = self._histories.get(key)
        if history is None:
            history = self._histories[key] = _History(series, started_s)
            if before_s is not None and before_s < at_s:
                history.fine.append((before_s, array("d", map(self._at_first, series))))
        elif history.series != series:
            history.become(series, self._at_first)
        if started_s is not None:
            if history.started_s is not None and started_s > history.started_s:
                # Maxima are those of the process that runs now; counters start again at zero by themselves.
                history.old.extend(history.fine)
                history.fine.clear()
            history.started_s = started_s
        history.add(at_s, array("d", (values[name] for name in series)), self._keep_s)

    def _at_first(self, series: str) -> float:
        """The value of a series before it was there."""
        return 0.0 if series in self._counters else math.nan

    def drop(self, key: object) -> None:
        """Forget a place."""
        self._histories.pop(key, None)

    def __iter__(self) -> Iterator[object]:
        """The places that are known."""
        return iter(tuple(self._histories))

    def measured(self, key: object) -> dict[str, float]:
        """Values of a place by field; NaN where a mean is over nothing; absent where its series are."""
        history = self._histories[key]
        found: dict[str, float] = {}
        for measure in self._measures:
            for way in measure.ways:
                value = self._value(history, measure, way)
                if value is not None:
                    found[measure.field] = value
                    break
        return found

    def _value(self, history: _History, measure: Measure, way: Way) -> float | None:
        try:
            at = [history.series.index(name) for name in way.series]
        except ValueError:
            return None
        latest_s, latest = history.fine[-1]
        window_s = self._windows[measure.field]
        match measure.how_of(way):
            case How.NOW | How.SIZE:
                return latest[at[0]]
            case How.PEAK:
                values = [v[at[0]] for time_s, v in history.fine if time_s > latest_s - window_s]
                return max((value for value in values if not math.isnan(value)), default=math.nan)
            case How.MEAN:
                moments = history.since(latest_s - window_s)
                over, under = (_growth(moments, each) for each in at)
                return over / under if under > 0 else math.nan
            case How.RATE:
                moments = [
                    each for each in history.since(latest_s - window_s) if each[0] >= latest_s - _GAP_S
                ]
                span_s = latest_s - moments[0][0]
                return _growth(moments, at[0]) / span_s if span_s > 0 else math.nan
            case How.GROWTH:
                return _growth_in_full(history, at[0], latest_s - window_s)


def _growth(moments: Sequence[Moment], at: int) -> float:
    """By how much a counter grew; where it fell it was set back to zero in between. NaN where it is not known."""
    if len(moments) < 2:  # noqa: PLR2004 - growth is between two
        return math.nan
    grown = 0.0
    for (_, before), (_, after) in pairwise(moments):
        grown += after[at] - before[at] if after[at] >= before[at] else after[at]
    return grown


def _growth_in_full(history: _History, at: int, start_s: float) -> float | None:
    """Growth since a time, where it is known from then on; else what is known, unless that is nothing.

    No growth in a part of the time does not mean none in all of it.
    """
    moments = history.since(start_s)
    first_s, first = moments[0]
    grown = _growth(moments, at)
    if first_s <= start_s:
        return grown
    if history.started_s is not None and start_s <= history.started_s <= first_s:
        # All that this process ever counted is in the time asked for.
        return first[at] + (0.0 if math.isnan(grown) else grown)
    return grown if grown > 0 else None
