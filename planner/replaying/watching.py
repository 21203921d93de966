"""What a planner in the loop makes of counters that are scraped: the demand to plan for, and mean lengths."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from models.simulation import Observation, ServiceObservation

__all__ = ["Watch"]

_SURE: Final = 2.0
"""Deviations of a Poisson count by which a rate must rise before it counts as rising."""

_ENOUGH: Final = 30
"""Requests that must have ended before their mean lengths are believed."""

_CLEARLY_LESS: Final = 0.9
"""Share of the rate planned for below which demand is taken to have fallen."""

_LAST_BITS: Final = 1e-6


@dataclass(frozen=True, slots=True)
class _Row:
    """Counters at one moment."""

    at_s: float
    arrivals: int
    done: int
    input_tokens: int
    output_tokens: int


@dataclass(slots=True)
class Watch:
    """Remembers the counters of one service.

    Attributes:
        window_s: over which a rate is taken.
        hold_s: how long a rate that has been counts on.
        drain_s: time in which requests that wait are to be served.
        lead_s: how far ahead a rising rate is followed.
    """

    window_s: float
    hold_s: float
    drain_s: float
    lead_s: float
    _planned_rps: float = 0.0
    _rows: deque[_Row] = field(default_factory=deque)
    _rates: deque[tuple[float, float]] = field(default_factory=deque)

    def demand_rps(self, service: ServiceObservation, observation: Observation) -> float:
        """What is to be served, req/s: the largest rate lately, what it rises to, and what drains the queues."""
        at_s = observation.at_s
        self._note(service, at_s)
        span_s, arrivals = self._since(at_s)
        if span_s <= 0:
            return 0.0
        rate = arrivals / span_s
        self._rates.append((at_s, rate))
        while self._rates[0][0] < at_s - self.hold_s:
            self._rates.popleft()
        held = max(rate for _, rate in self._rates)
        waiting = service.router_queue + sum(
            each.waiting for each in observation.replicas if each.service == service.name
        )
        return self._settled(max(held, self._risen(at_s, rate)) + waiting / self.drain_s)

    def _settled(self, rps: float) -> float:
        """The rate that is planned for: it follows more demand at once, and less of it where it is clearly less."""
        if rps > self._planned_rps or rps < _CLEARLY_LESS * self._planned_rps:
            self._planned_rps = rps
        return self._planned_rps

    def lengths(self) -> tuple[float, float] | None:
        """Mean input and output tokens of requests that ended lately; None: too few did."""
        first, last = self._rows[0], self._rows[-1]
        done = last.done - first.done
        if done < _ENOUGH:
            return None
        return (last.input_tokens - first.input_tokens) / done, (
            last.output_tokens - first.output_tokens
        ) / done

    def _note(self, service: ServiceObservation, at_s: float) -> None:
        row = _Row(
            at_s,
            service.arrivals_total,
            service.completions_total,
            service.input_tokens_total,
            service.output_tokens_total,
        )
        # With a lag the same scrape may be seen twice.
        if not self._rows or self._rows[-1].at_s < at_s:
            self._rows.append(row)
        oldest_s = at_s - self.hold_s - 2 * self.window_s
        while self._rows[0].at_s < oldest_s:
            self._rows.popleft()

    def _since(self, until_s: float) -> tuple[float, int]:
        """(seconds, arrivals) of the window that ends then; shorter where less is known."""
        inside = [
            row
            for row in self._rows
            if until_s - self.window_s - _LAST_BITS <= row.at_s <= until_s + _LAST_BITS
        ]
        if not inside:
            return 0.0, 0
        return inside[-1].at_s - inside[0].at_s, inside[-1].arrivals - inside[0].arrivals

    def _risen(self, at_s: float, rate: float) -> float:
        """The rate when a replica that starts now is ready, where it rises by more than chance."""
        span_s, before = self._since(at_s - self.window_s)
        if span_s < self.window_s / 2:
            return rate
        earlier = before / span_s
        chance = _SURE * math.sqrt(rate / self.window_s + earlier / span_s)
        if rate - earlier <= chance:
            return rate
        return rate + (rate - earlier) / self.window_s * self.lead_s
