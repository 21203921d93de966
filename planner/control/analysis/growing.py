"""A service as it will be: its demand times the growth that is expected, in every unit, and what is missing then.

Growth is a ratio of rates, so it holds for tokens, tokens per second and requests alike. What an engine holds and what a
replica carries are as observed.
"""

from __future__ import annotations

from dataclasses import replace

from models.autoscaling import ScalingBounds
from planner.control.analysis.ahead import Ahead
from planner.control.analysis.judging import Service
from planner.control.analysis.reading import NOBODY_KNOWS_ZERO
from planner.saturation import Analysis
from planner.saturation.published import AnalyzerSignal
from planner.saturation.step import Step, threshold_step

__all__ = ["foretold", "grown"]


def foretold(service: Service, ahead: Ahead | None) -> Service:
    """A service with its forecast; one that is expected to be used within the lead time does not sleep."""
    if ahead is None:
        return service
    if service.unused and ahead.wakes:
        reading = replace(service.reading, activity=NOBODY_KNOWS_ZERO)
        return replace(service, ahead=ahead, unused=False, reading=reading)
    return replace(service, ahead=ahead)


def grown(service: Service) -> Service:
    """The service that policies plan for; itself where no growth is expected."""
    growth = service.growth
    if growth <= 1.0:
        return service
    tokens = _times(service, service.tokens, growth)
    others = {name: _times(service, one, growth) for name, one in service.others.items()}
    arrivals = service.seen.traffic.arrival_rps
    traffic = service.seen.traffic._replace(arrival_rps=None if arrivals is None else arrivals * growth)
    return replace(
        service,
        seen=replace(service.seen, traffic=traffic),
        tokens=tokens,
        others=others,
        reading=replace(
            service.reading,
            voices=tuple(_signal(one, others.get(one.name)) for one in service.reading.voices),
        ),
    )


def _times(service: Service, analysis: Analysis, growth: float) -> Analysis:
    roles = {role: _step(step, growth, _bounds(service, role)) for role, step in analysis.roles.items()}
    return replace(analysis, total=_step(analysis.total, growth, service.seen.rules.bounds), roles=roles)


def _bounds(service: Service, role: str) -> ScalingBounds:
    rules = service.seen.roles.get(role)
    return service.seen.rules.bounds if rules is None else rules.bounds


def _step(step: Step, growth: float, bounds: ScalingBounds) -> Step:
    later = threshold_step(
        step.demand * growth, step.supply, anticipated=step.anticipated, bounds=bounds, hidden=step.hidden
    )
    # An analyzer may see more than its demand (a queue that must be served): what it misses now it misses then.
    return replace(later, required=max(step.required, later.required), spare=min(step.spare, later.spare))


def _signal(signal: AnalyzerSignal, later: Analysis | None) -> AnalyzerSignal:
    if later is None:
        return signal
    said = later.signal()
    return replace(
        signal,
        required=said.required,
        spare=said.spare,
        demand=said.demand,
        total_demand=said.total_demand,
    )
