"""A run from beginning to end: a twin, autoscalers that are called at their own periods, and who looks on."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.errors import ConfigurationError, Finding
from planner.simulation.protocols import Admitting
from planner.simulation.twin import Twin

if TYPE_CHECKING:
    from models.simulation import Observation, TwinSpec
    from planner.simulation.protocols import Autoscaler
    from planner.simulation.result import Columns, Result
    from planner.traces.requests import Trace

__all__ = ["Experiment", "Happening", "run_experiment"]


@dataclass(frozen=True, slots=True)
class Happening:
    """Something done to the twin at a time: a node fails, a router changes, a deployment is resized."""

    at_s: float
    act: Callable[[Twin], None]


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is replayed, and how it is looked at.

    Attributes:
        spec: the fleet.
        seed: of all chance in the run.
        until_s: when the run ends; None: when every request has ended.
        scrape_interval_s: metrics are read so often.
        metric_lag_s: what a decision sees was scraped at least so long before.
        happenings: what is done to the fleet, in any order.
    """

    spec: TwinSpec
    seed: int = 0
    until_s: float | None = None
    scrape_interval_s: float = 15.0
    metric_lag_s: float = 0.0
    happenings: Sequence[Happening] = ()


_HAPPENING, _SCRAPE, _DECISION = range(3)


def run_experiment(
    experiment: Experiment,
    trace: Trace,
    autoscalers: Sequence[Autoscaler] = (),
    *,
    progress: Callable[[float], None] | None = None,
    sink: Callable[[Columns], None] | None = None,
) -> Result:
    """Replay a trace to its end.

    At equal times happenings come first, then the scrape, then decisions in the order of the autoscalers, so that a
    decision without lag sees what was scraped at that moment.

    Args:
        experiment: what and how.
        trace: requests in order of arrival.
        autoscalers: each decides on its own variants.
        progress: told the simulated time after every scrape.
        sink: takes tables of requests that ended, so that they need not be kept; the result then has none.

    Raises:
        ConfigurationError: intervals that are not positive, all at once.
    """
    _check(experiment, autoscalers)
    twin = Twin(experiment.spec, trace, seed=experiment.seed, sink=sink)
    scraped: deque[Observation] = deque()
    agenda = [(h.at_s, _HAPPENING, k) for k, h in enumerate(experiment.happenings)]
    agenda += [(0.0, _SCRAPE, 0)] + [(a.period_s, _DECISION, k) for k, a in enumerate(autoscalers)]
    heapq.heapify(agenda)
    while not _over(experiment, twin, agenda[0][0]):
        at_s, what, k = heapq.heappop(agenda)
        twin.advance(at_s)
        if what == _HAPPENING:
            experiment.happenings[k].act(twin)
        elif what == _SCRAPE:
            scraped.append(twin.observe())
            heapq.heappush(agenda, (at_s + experiment.scrape_interval_s, _SCRAPE, 0))
            if progress is not None:
                progress(at_s)
        else:
            _decide(twin, autoscalers[k], _seen(scraped, at_s - experiment.metric_lag_s), at_s)
            heapq.heappush(agenda, (at_s + autoscalers[k].period_s, _DECISION, k))
    if experiment.until_s is not None:
        twin.advance(experiment.until_s)
    return twin.finish()


def _check(experiment: Experiment, autoscalers: Sequence[Autoscaler]) -> None:
    values = [("scrape_interval_s", experiment.scrape_interval_s)]
    values += [
        (f"autoscalers[{k}].period_s", autoscaler.period_s) for k, autoscaler in enumerate(autoscalers)
    ]
    findings = [Finding("", None, name, f"{value:g}", "above 0 s") for name, value in values if not value > 0]
    if experiment.metric_lag_s < 0:
        findings.append(Finding("", None, "metric_lag_s", f"{experiment.metric_lag_s:g}", "at least 0 s"))
    if findings:
        raise ConfigurationError.from_findings(findings)


def _over(experiment: Experiment, twin: Twin, next_s: float) -> bool:
    if experiment.until_s is not None:
        return next_s > experiment.until_s
    return twin.idle


def _seen(scraped: deque[Observation], latest_s: float) -> Observation:
    """The newest observation that is old enough; the first one where none is. Older ones are forgotten."""
    while len(scraped) > 1 and scraped[1].at_s <= latest_s:
        scraped.popleft()
    return scraped[0]


def _decide(twin: Twin, autoscaler: Autoscaler, seen: Observation, now_s: float) -> None:
    for variant, desired in autoscaler.decide(seen, now_s).items():
        if desired != twin.desired(variant):
            twin.scale(variant, desired)
    if isinstance(autoscaler, Admitting):
        for service, router in autoscaler.admissions().items():
            twin.admit(service, router)
