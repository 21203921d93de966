"""Forecasts of services that ask for one: a past that is kept, methods that are tried seldom, forecasts in turn.

Trying all methods on the past of one service takes tens of milliseconds, a forecast by the method that was best less than
one. So forecasts are made anew once a step, methods are chosen anew once an hour, the oldest first, and both stop when the
time that a cycle has for them is over. A service whose forecast is too old is planned by what is observed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from models.controller import ControllerSettings, ForecastSettings, Rules
from planner.clock import Clock
from planner.control.analysis import Ahead, Service
from planner.control.deciding.starting import StartTimes
from planner.forecasting import Choice, History, Series, chosen, looked_again

__all__ = ["Foresight"]

_CHOSEN_FOR: Final = 60
"""Steps after which methods are tried anew, sooner where the past has grown by a tenth; and a service that went away is forgotten."""
_OLD: Final = 5
"""Steps after which a forecast does not count any more, where the lead time is not longer."""
_LONGEST_WORDS: Final = 200
_NO_HISTORY: Final = "there is no history yet"


class _Asked(NamedTuple):
    """What a forecast is asked for."""

    lead_s: float
    season_s: float
    quantile: float


@dataclass(slots=True)
class _Kept:
    """What is kept of one service between cycles."""

    choice: Choice = field(default_factory=Choice)
    chosen_s: float = -math.inf
    known: int = 0
    season_s: float = 0.0
    rate: float | None = None
    method: str = ""
    why_not: str = ""
    made_s: float = -math.inf
    seen_s: float = -math.inf


@dataclass(frozen=True, slots=True)
class _One:
    """One service of a cycle."""

    key: str
    unit: str
    observed: float | None
    asked: _Asked
    service: Service


@dataclass(slots=True)
class Foresight:
    """Looks ahead, cycle after cycle. It is lost with the process: the next one begins without a past.

    Args:
        clock: for the time that a cycle has.
    """

    clock: Clock
    starts: StartTimes = field(default_factory=StartTimes)
    _settings: ForecastSettings = field(default_factory=ForecastSettings)
    _history: History = field(init=False)
    _kept: dict[str, _Kept] = field(init=False)

    def __post_init__(self) -> None:
        self._begin(self._settings)

    def look(
        self,
        services: Sequence[Service],
        settings: ControllerSettings,
        *,
        now_s: float,
        reactive: Collection[str] = (),
    ) -> dict[str, Ahead]:
        """What is expected of every service that asks for a forecast, by its key.

        Args:
            services: as they were analyzed.
            settings: as they are now.
            now_s: seconds of the epoch.
            reactive: policies that have no use for it.
        """
        asking = [one for one in services if one.seen.rules.forecast]
        wanted = settings.rules.forecast or any(one.forecast for one in settings.overrides)
        # A cycle in which nothing is seen is no reason to forget.
        if settings.forecasting != self._settings or not wanted:
            self._begin(settings.forecasting)
        if not asking:
            return {}
        self.starts.note((v.observed for one in asking for v in one.seen.variants), now_s)
        ones = [self._one(one, settings, now_s) for one in asking]
        useful = [one for one in ones if one.service.seen.rules.policy not in reactive]
        self._history.note({one.key: one.observed for one in useful}, now_s)
        for one in useful:
            self._of(one).seen_s = now_s
        gone_s = now_s - _CHOSEN_FOR * settings.forecasting.step_s
        self._kept = {key: kept for key, kept in self._kept.items() if kept.seen_s >= gone_s}
        self._refresh(useful, now_s)
        return {one.service.seen.key: self._ahead(one, now_s, reactive) for one in ones}

    def _begin(self, settings: ForecastSettings) -> None:
        self._settings = settings
        self._history = History(step_s=settings.step_s, steps=round(settings.history_s / settings.step_s))
        self._kept = {}

    def _one(self, service: Service, settings: ControllerSettings, now_s: float) -> _One:
        """A service, and how far is to be looked: until what the *next* cycle orders is there."""
        unit, observed = _observed(service)
        rules = service.seen.rules
        lead_s = rules.forecast_lead_s
        if lead_s is None:
            lead_s = self.starts.slowest_s(
                one.ref for one in service.seen.variants if one.observed.max_replicas != 0
            )
        # The past is known until the last whole step.
        reach_s = now_s % settings.forecasting.step_s + lead_s + settings.cycle_s
        asked = _Asked(reach_s, rules.forecast_season_s, rules.forecast_quantile)
        return _One(f"{service.seen.key}|{unit}", unit, observed, asked, service)

    def _refresh(self, ones: Iterable[_One], now_s: float) -> None:
        """Forecasts, then choices, the oldest first, until the time is over; one of each at least, so that it goes on."""
        settings = self._settings
        end_s = self.clock.monotonic_s() + settings.budget_s
        known = [one for one in ones if one.observed is not None]
        due = [
            one
            for one in known
            if not math.isinf((kept := self._of(one)).chosen_s) and now_s - kept.made_s >= settings.step_s
        ]
        due.sort(key=lambda one: self._of(one).made_s)
        for place, one in enumerate(due):
            if place and self.clock.monotonic_s() >= end_s:
                break
            self._forecast(one, self._series(one, now_s), now_s)
        self._choose(self._unchosen(known, now_s), now_s, end_s)

    def _of(self, one: _One) -> _Kept:
        return self._kept.setdefault(one.key, _Kept())

    def _unchosen(self, ones: Iterable[_One], now_s: float) -> list[_One]:
        """Services whose method is to be chosen: those that were never chosen for first, then the oldest."""
        step_s = self._settings.step_s
        found: list[tuple[float, int, _One]] = []
        for one in ones:
            kept = self._of(one)
            lasts_s = step_s * min(_CHOSEN_FOR, max(1, kept.known // 10))
            if now_s - kept.chosen_s >= lasts_s or kept.season_s != one.asked.season_s:
                found.append((kept.chosen_s, len(found), one))
        return [one for _, _, one in sorted(found, key=lambda each: each[:2])]

    def _choose(self, ones: Iterable[_One], now_s: float, end_s: float) -> None:
        done = 0
        for one in ones:
            if done and self.clock.monotonic_s() >= end_s:
                return
            kept, series = self._of(one), self._series(one, now_s)
            if series is None:
                continue
            done += 1
            kept.choice = chosen(series, **one.asked._asdict())
            kept.chosen_s, kept.known, kept.season_s = now_s, series.known, one.asked.season_s
            self._forecast(one, series, now_s)

    def _forecast(self, one: _One, series: Series | None, now_s: float) -> None:
        kept = self._of(one)
        # What is observed is looked at in every cycle, so that the forecast alone is kept.
        found = looked_again(kept.choice, series, observed=0.0, **one.asked._asdict())
        usable = bool(found.method) and math.isfinite(found.rate)
        kept.rate = found.rate if usable else None
        kept.method = found.method if usable else ""
        kept.why_not = "" if usable else found.why_not or "the forecast is no number"
        kept.made_s = now_s

    def _series(self, one: _One, now_s: float) -> Series | None:
        return self._history.series(one.key, now_s)

    def _ahead(self, one: _One, now_s: float, reactive: Collection[str]) -> Ahead:
        kept, rules = self._kept.get(one.key, _Kept()), one.service.seen.rules
        why_not = self._why_not(one, kept, rules, now_s, reactive)
        return Ahead(
            namespace=one.service.seen.namespace,
            model=one.service.seen.model,
            unit=one.unit,
            observed=one.observed,
            expected=None if why_not else kept.rate,
            most=rules.forecast_most,
            lead_s=one.asked.lead_s,
            method="" if why_not else kept.method,
            why_not=why_not[:_LONGEST_WORDS],
        )

    def _why_not(self, one: _One, kept: _Kept, rules: Rules, now_s: float, reactive: Collection[str]) -> str:
        if rules.policy in reactive:
            return f"policy {rules.policy} looks at no demand"
        if one.observed is None:
            return "nobody tells what is asked for now"
        if math.isinf(kept.made_s):
            return _NO_HISTORY if self._series(one, now_s) is None else "its turn has not come yet"
        age_s = now_s - kept.made_s
        if age_s > max(_OLD * self._settings.step_s, one.asked.lead_s) or age_s < 0:
            return f"its last forecast is {age_s:.0f} s old"
        return kept.why_not


def _observed(service: Service) -> tuple[str, float | None]:
    """Unit, and what is asked for now; None: nobody tells, or it is the rest of what clients gave up."""
    rate = service.seen.traffic.arrival_rps
    if rate is not None:
        usable = math.isfinite(rate) and rate >= 0 and not service.stuck
        return "req/s", rate if usable else None
    step = service.tokens.total
    speaks = any(one.speaks for one in service.seen.variants)
    whole = speaks and step.hidden <= 0 and not service.stuck and math.isfinite(step.demand)
    return "token", step.demand if whole else None
