"""The planner in the loop: at each period it sizes the demand that is seen, solves, and asks for the counts of the plan.

What it looks at is what any autoscaler may: arrivals, tokens, queues and replicas as scraped. Demand of a service is the
largest of the rates over the last minutes, what it will be when a replica that starts now is ready (where the rate
rises by more than chance), and what must be served to drain what waits. Falling demand counts after a time only, so
counts do not follow noise. Lengths are those of requests that ended lately; where they are not what the problem was sized
for, the scenario is sized again.

Where no plan serves all, the router is told to hold requests in order of priority and to give up on those whose first
token would be late anyway: what is admitted keeps its promise, instead of everything being late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from models.problem import Demand, DemandBucket, Problem
from models.scenario import Scenario
from models.simulation import Admission, Observation, ReplicaObservation, ReplicaState, RouterSpec
from models.solution import Solution
from models.workload import Bucket, Service
from planner.optimization.protocol import SolveOptions
from planner.planning import judge, sized, solve_with
from planner.replaying.watching import Watch

__all__ = ["PlannerAutoscaler", "PlannerSettings"]

_LENGTHS_WITHIN: Final = 1.1
"""Lengths that differ by less are taken to be the same."""

_TOLERANCE: Final = 1e-3
"""Share of the demand that may stay unserved before requests are held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSettings:
    """How the planner works in the loop.

    Attributes:
        period_s: between two plans.
        window_s: over which a rate is taken.
        hold_s: how long a rate that has been counts on; before so much was seen no replica goes.
        drain_s: time in which requests that wait are to be served.
        lead_s: how far ahead a rising rate is followed; None: the longest start-up.
        solver: by name.
        options: time, gap, threads of each solve.
        admits: whether it sets admission where capacity cannot grow.
        late_share: share of the time to first token that a request may wait in the router then.
    """

    period_s: float = 15.0
    window_s: float = 60.0
    hold_s: float = 300.0
    drain_s: float = 60.0
    lead_s: float | None = None
    solver: str = "auto"
    options: SolveOptions = field(default_factory=lambda: SolveOptions(time_limit_s=5.0))
    admits: bool = True
    late_share: float = 0.5


class PlannerAutoscaler:
    """Plans again and again; remembers what it saw, reads no clock.

    Args:
        scenario: what the user states; its rates of arrival are not looked at once requests are seen.
        variants: candidates that can run, by name; others are not asked for.
        routers: of each service as they are; admission goes back to them.
        in_flight: requests in flight on a replica at its rated rate, by candidate, where it is known.
        settings: how it works.
    """

    def __init__(
        self,
        scenario: Scenario,
        variants: frozenset[str],
        routers: Mapping[str, RouterSpec],
        *,
        in_flight: Mapping[str, float] | None = None,
        settings: PlannerSettings | None = None,
    ) -> None:
        self._scenario, self._variants, self._routers = scenario, variants, dict(routers)
        self._in_flight = dict(in_flight or {})
        self._settings = settings or PlannerSettings()
        starts = [v.startup_s for service in scenario.services for v in service.variants]
        given = self._settings
        lead_s = max(starts, default=0.0) if given.lead_s is None else given.lead_s
        self._watches: dict[str, Watch] = {
            service.id: Watch(given.window_s, given.hold_s, given.drain_s, lead_s)
            for service in scenario.services
        }
        self._sized: dict[tuple[tuple[int, int] | None, ...], Problem] = {}
        self._held: dict[str, bool] = {}
        self._changes: dict[str, RouterSpec] = {}
        self._short: dict[str, int] = {}
        self._service_of: dict[str, str] = {}
        self._first_s: float | None = None
        self.plans: int = 0

    @property
    def period_s(self) -> float:
        """Simulated seconds between two plans."""
        return self._settings.period_s

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """Counts of the plan for what is seen; nothing before the first requests are."""
        demands = {
            each.name: self._watches[each.name].demand_rps(each, observation) for each in observation.services
        }
        if not any(rate > 0 for rate in demands.values()):
            return {}
        problem = self._problem(observation, demands)
        result = solve_with(problem, solver=self._settings.solver, options=self._settings.options)
        if not result.solution.has_plan:
            return {}
        self.plans += 1
        if self._settings.admits:
            self._admit(problem, result.solution)
        return self._counts(observation, {str(k): n for k, n in result.solution.counts.items()})

    def admissions(self) -> Mapping[str, RouterSpec]:
        """Routers that are to change now, by service; each is told once."""
        changes, self._changes = self._changes, {}
        return changes

    def _problem(self, observation: Observation, demands: Mapping[str, float]) -> Problem:
        """The sized problem with the demand that is seen, what runs, and scarcity allowed."""
        lengths = tuple(self._lengths(service) for service in self._scenario.services)
        if lengths not in self._sized:
            self._sized[lengths] = sized(_with_lengths(self._scenario, lengths), allow_unserved=True)
        base, there = self._sized[lengths], _counted(observation.replicas)
        self._service_of = {each.id: each.service for each in base.candidates}
        candidates = []
        for each in base.candidates:
            ready, starting = there.get(each.id, (0, 0))
            changes = {"current": ready, "pending": starting, "scale_in_permitted": True}
            if each.id not in self._variants:
                changes |= {"min_replicas": 0, "max_replicas": 0}
            candidates.append(each.but(**changes))
        scaled = tuple(_at_rate(demand, demands.get(demand.service, 0.0)) for demand in base.demands)
        return base.but(candidates=tuple(candidates), demands=scaled, incumbents=())

    def _lengths(self, service: Service) -> tuple[int, int] | None:
        """Lengths that are seen, on a coarse scale; None: as stated."""
        found = self._watches[service.id].lengths()
        if found is None or _near(service, found):
            return None
        return _coarse(found[0]), _coarse(found[1])

    def _counts(self, observation: Observation, plan: Mapping[str, int]) -> dict[str, int]:
        """Counts of the plan; what a service loses goes when what it gains is ready, or finds no room."""
        there = _counted(observation.replicas)
        wanted = {name: plan.get(name, 0) for name in sorted(self._variants & self._service_of.keys())}
        for name, count in wanted.items():
            started = sum(there.get(name, (0, 0)))
            short = observation.desired.get(name, 0) > started and count > started
            self._short[name] = self._short.get(name, 0) + 1 if short else 0
        service_of = self._service_of
        if self._first_s is None:
            self._first_s = observation.at_s
        if observation.at_s - self._first_s < self._settings.hold_s:
            # Nothing is known yet of what the replicas at the start are for.
            return {name: max(count, sum(there.get(name, (0, 0)))) for name, count in wanted.items()}
        growing = {service_of[name] for name, count in wanted.items() if count > there.get(name, (0, 0))[0]}
        stuck = {service_of[name] for name, times in self._short.items() if times > 1}
        held = growing - stuck
        return {
            name: max(count, sum(there.get(name, (0, 0)))) if service_of[name] in held else count
            for name, count in wanted.items()
        }

    def _admit(self, problem: Problem, solution: Solution) -> None:
        """Hold requests of services that no plan can serve in full; let go where one can again."""
        judged = judge(problem, self._settings.solver, solution).assessment
        for each in judged.services if judged is not None else ():
            short = each.unserved_share > _TOLERANCE
            if short != self._held.get(each.service, False):
                self._held[each.service] = short
                own = self._routers[each.service]
                self._changes[each.service] = self._holding(each.service, own, solution) if short else own

    def _holding(self, service_id: str, own: RouterSpec, solution: Solution) -> RouterSpec:
        """Requests wait while replicas have what they carry within the promises, and not past the first token's time."""
        service = next(each for each in self._scenario.services if each.id == service_id)
        first_s = service.slo.ttft_s or service.slo.e2e_s
        wait_s = own.queue_timeout_s if first_s is None else self._settings.late_share * first_s
        thresholds = service.thresholds
        # One limit is for replicas of all variants: what they have on the mean.
        counted = {
            name: count
            for name, count in solution.counts.items()
            if self._service_of.get(name) == service_id and name in self._in_flight
        }
        replicas = sum(counted.values())
        mean = sum(self._in_flight[name] * count for name, count in counted.items()) / max(1, replicas)
        return own.but(
            admission=Admission.QUEUE,
            queue_timeout_s=wait_s,
            saturated_kv=thresholds.tau_kv if mean else thresholds.tau_kv - thresholds.gamma_kv,
            max_in_flight=max(1, int(mean)) if mean else own.max_in_flight,
        )


def _counted(replicas: tuple[ReplicaObservation, ...]) -> dict[str, tuple[int, int]]:
    """(ready, starting) by candidate."""
    found: dict[str, tuple[int, int]] = {}
    for each in replicas:
        ready, starting = found.get(each.variant, (0, 0))
        if each.state is ReplicaState.STARTING:
            starting += 1
        elif each.state in (ReplicaState.READY, ReplicaState.PAUSED):
            ready += 1
        found[each.variant] = ready, starting
    return found


def _coarse(tokens: float) -> int:
    """On a scale of steps of 10 %, so that noise sizes nothing again."""
    step = round(math.log(max(1.0, tokens)) / math.log(_LENGTHS_WITHIN))
    return max(1, round(_LENGTHS_WITHIN**step))


def _near(service: Service, seen: tuple[float, float]) -> bool:
    """Whether what is seen is what the service states, on the mean."""
    rate = service.arrival_rps
    if rate <= 0:
        return False
    for found, name in zip(seen, ("input_tokens", "output_tokens"), strict=True):
        stated = sum(bucket.arrival_rps * getattr(bucket, name) for bucket in service.buckets) / rate
        if abs(math.log(found / stated)) > math.log(_LENGTHS_WITHIN):
            return False
    return True


def _with_lengths(scenario: Scenario, lengths: tuple[tuple[int, int] | None, ...]) -> Scenario:
    """The scenario with one shape of these lengths for each service where they are known."""
    services = tuple(
        service if seen is None else service.but(buckets=(_seen_bucket(service, seen),))
        for service, seen in zip(scenario.services, lengths, strict=True)
    )
    return scenario.but(services=services)


def _seen_bucket(service: Service, seen: tuple[int, int]) -> Bucket:
    return Bucket(
        id="seen",
        arrival_rps=max(service.arrival_rps, 1.0),
        input_tokens=seen[0],
        output_tokens=seen[1],
        cached_share=service.buckets[0].cached_share,
    )


def _at_rate(demand: Demand, rps: float) -> Demand:
    """The demand at another rate, its shapes in the same shares; three digits, so that equal traffic gives equal plans."""
    total, wanted = demand.arrival_rps, float(f"{rps:.3g}")
    share = 1 / len(demand.buckets)
    buckets: tuple[DemandBucket, ...] = tuple(
        bucket.but(arrival_rps=wanted * (bucket.arrival_rps / total if total > 0 else share))
        for bucket in demand.buckets
    )
    return demand.but(buckets=buckets)
