"""Policies on one trace, one after another: the fleet, the autoscaler, the run, its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from models.problem import CostUnit
from models.replay import Latency, PolicyRun, PromiseKept, Replay, ServiceRun, VariantRun
from models.simulation import Observation, Outcome, ReplicaSpec, RouterSpec, TwinSpec
from models.solution import Solution
from models.workload import Slo
from planner.errors import ConfigurationError, Finding, InternalError, nearest
from planner.replaying.fleet import Fleet, Playable
from planner.replaying.planning_loop import PlannerAutoscaler, PlannerSettings
from planner.replaying.tallying import CAUSES, EXACT_UP_TO, Spread, Tally, seen
from planner.simulation.autoscaling import AUTOSCALERS, named_autoscaler
from planner.simulation.experiment import Experiment, Happening, run_experiment
from planner.simulation.protocols import Admitting
from planner.simulation.result import in_order
from planner.traces.chunks import rechunked

if TYPE_CHECKING:
    from planner.simulation.protocols import Autoscaler
    from planner.simulation.result import Columns, Result
    from planner.traces.requests import RequestChunk, Trace

__all__ = [
    "PLANNER",
    "POLICIES",
    "Observers",
    "ReplayOptions",
    "Run",
    "Start",
    "check_policies",
    "replay",
    "told_replay",
]

PLANNER: Final = "planner"
"""The policy that plans again and again."""

POLICIES: Final = (*AUTOSCALERS, PLANNER)
"""Every policy that has a name."""


class Start(StrEnum):
    """Which replicas are there when a run begins."""

    PLAN = "plan"
    NOW = "now"
    LEAST = "least"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """How policies are replayed.

    Attributes:
        seed: of all chance.
        until_s: when each run ends; None: when every request has ended.
        start: replicas at the start.
        every_variant: whether each policy may start variants that do not run at the start.
        scrape_interval_s: metrics are read so often.
        metric_lag_s: what a decision sees was scraped at least so long before.
        happenings: what is done to the fleet in every run.
        planner: how the planner works in the loop.
        keep_requests: whether the rows of requests are kept in the result.
        exact_up_to: latencies that are kept one by one for percentiles.
    """

    seed: int = 0
    until_s: float | None = None
    start: Start = Start.PLAN
    every_variant: bool = False
    scrape_interval_s: float = 15.0
    metric_lag_s: float = 0.0
    happenings: Sequence[Happening] = ()
    planner: PlannerSettings = field(default_factory=PlannerSettings)
    keep_requests: bool = True
    exact_up_to: int = EXACT_UP_TO


@dataclass(frozen=True, slots=True, kw_only=True)
class Observers:
    """Who is told of runs while they go on.

    Attributes:
        told: is given the policy and the simulated time after every scrape.
        sink_of: for a policy and its fleet, who takes rows of requests as they end.
    """

    told: Callable[[str, float], None] | None = None
    sink_of: Callable[[str, TwinSpec], Callable[[Columns], None]] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One policy's run.

    Attributes:
        figures: in values.
        result: tables over time, replicas, and (where they were kept) requests.
        over_time: requests and times to first token over time, see :class:`~planner.replaying.tallying.OverTime`.
        twin: the fleet that was replayed.
        notes: what a reader should know.
    """

    figures: PolicyRun
    result: Result
    over_time: Mapping[str, Any]
    twin: TwinSpec
    notes: tuple[str, ...]


def check_policies(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once.

    Raises:
        ConfigurationError: some are unknown; all of them.
    """
    findings = [
        Finding("", None, "--policy", repr(name), ", ".join(POLICIES), nearest(name, POLICIES))
        for name in names
        if name not in POLICIES
    ]
    if not names:
        findings.append(Finding("", None, "--policy", "no policy", ", ".join(POLICIES)))
    if findings:
        raise ConfigurationError.from_findings(findings)
    return tuple(dict.fromkeys(names))


def replay(
    playable: Playable,
    solution: Solution,
    trace: Trace,
    policies: Sequence[str],
    *,
    options: ReplayOptions | None = None,
    observers: Observers | None = None,
) -> Iterator[Run]:
    """Run policies one after another; equal arguments give equal bytes.

    Args:
        playable: the scenario.
        solution: the plan.
        trace: can be iterated again for each policy.
        policies: names of :data:`POLICIES`.
        options: how.
        observers: who is told.

    Raises:
        ConfigurationError: a policy or the trace is wrong.
    """
    options, observers = options or ReplayOptions(), observers or Observers()
    for policy in check_policies(policies):
        yield _run(playable, solution, trace, policy, options=options, observers=observers)


def told_replay(
    playable: Playable, runs: Sequence[Run], *, traces: Sequence[str], seed: int, notes: Sequence[str] = ()
) -> Replay:
    """Runs as one value."""
    problem = playable.problem
    used = {each.variant for run in runs for each in run.figures.variants if each.started}
    every = [*notes, *(note for run in runs for note in run.notes)]
    return Replay(
        scenario=playable.scenario.name,
        derived_from=playable.scenario.fingerprint,
        traces=tuple(traces),
        seed=seed,
        cost_unit="USD/h" if problem.cost_unit is CostUnit.USD_PER_H else "relative",
        runs=tuple(run.figures for run in runs),
        steps=tuple(each for each in playable.sources if each.variant in used),
        notes=tuple(dict.fromkeys(every)),
    )


def _run(
    playable: Playable,
    solution: Solution,
    trace: Trace,
    policy: str,
    *,
    options: ReplayOptions,
    observers: Observers,
) -> Run:
    fleet = _fleet(playable, solution, policy, options)
    tally = Tally(fleet.twin.services, exact_up_to=options.exact_up_to)
    kept: list[Columns] = []
    takers: list[Callable[[Columns], None]] = [tally]
    if options.keep_requests:
        takers.append(kept.append)
    if observers.sink_of is not None:
        takers.append(observers.sink_of(policy, fleet.twin))

    def sink(rows: Columns) -> None:
        for taker in takers:
            taker(rows)

    autoscaler = _Counting(_autoscaler(policy, playable, fleet.twin, options))
    told = observers.told
    result = run_experiment(
        _experiment(fleet.twin, options),
        _hosted(trace, playable),
        () if policy == "static" else (autoscaler,),
        progress=None if told is None else (lambda at_s: told(policy, at_s)),
        sink=sink,
    )
    if tally.rows != sum(result.arrivals.values()):
        raise InternalError(f"{sum(result.arrivals.values())} requests arrived, {tally.rows} have a row")
    if kept:
        result = replace(result, requests=in_order(kept))
        result.check_conservation()
    figures = _figures(policy, playable, result, tally, autoscaler.changes)
    return Run(figures, result, tally.over_time.table(), fleet.twin, (*fleet.notes, *_without_room(result)))


def _without_room(result: Result) -> Iterator[str]:
    """Replicas that were to be there at the start and found no GPUs."""
    for spec in result.spec.replicas:
        there = sum(life.variant == spec.variant and life.created_s == 0 for life in result.replicas)
        if there < spec.initial_replicas:
            missing = spec.initial_replicas - there
            yield f"{missing} of {spec.initial_replicas} replicas of {spec.variant} found no room at the start"


def _experiment(twin: TwinSpec, options: ReplayOptions) -> Experiment:
    return Experiment(
        twin,
        seed=options.seed,
        until_s=options.until_s,
        scrape_interval_s=options.scrape_interval_s,
        metric_lag_s=options.metric_lag_s,
        happenings=options.happenings,
    )


def _fleet(playable: Playable, solution: Solution, policy: str, options: ReplayOptions) -> Fleet:
    """The fleet of a policy: autoscalers find what runs now or in the plan, the planner every variant."""
    free = options.every_variant or policy == PLANNER
    running = [c.id for c in playable.problem.candidates if c.current and c.id in playable.steps]
    return playable.fleet(
        _counts(playable, solution, options.start),
        nodes_added={str(pool): n for pool, n in solution.nodes_added.items()} if policy == "static" else {},
        also=frozenset(playable.deployable if free else running),
    )


def _counts(playable: Playable, solution: Solution, start: Start) -> dict[str, int]:
    candidates = playable.problem.candidates
    if start is Start.NOW:
        return {c.id: c.current for c in candidates if c.current}
    if start is Start.LEAST:
        return {c.id: c.min_replicas for c in candidates if c.min_replicas and not c.unrated}
    return {str(name): count for name, count in solution.counts.items() if count}


def _autoscaler(policy: str, playable: Playable, twin: TwinSpec, options: ReplayOptions) -> Autoscaler:
    if policy != PLANNER:
        return named_autoscaler(policy, twin)
    return PlannerAutoscaler(
        playable.scenario,
        frozenset(replica.variant for replica in twin.replicas),
        {service.name: service.router for service in twin.services},
        in_flight=playable.in_flight,
        settings=options.planner,
    )


class _Counting:
    """An autoscaler whose changes of counts are counted."""

    def __init__(self, inner: Autoscaler) -> None:
        self._inner = inner
        self.changes = 0

    @property
    def period_s(self) -> float:
        """Of the autoscaler."""
        return self._inner.period_s

    def decide(self, observation: Observation, now_s: float) -> Mapping[str, int]:
        """What the autoscaler decides."""
        decided = self._inner.decide(observation, now_s)
        self.changes += sum(observation.desired.get(name) != count for name, count in decided.items())
        return decided

    def admissions(self) -> Mapping[str, RouterSpec]:
        """What the autoscaler says of routers, if it does."""
        inner = self._inner
        return inner.admissions() if isinstance(inner, Admitting) else {}


def _hosted(trace: Trace, playable: Playable) -> Iterator[RequestChunk]:
    """Requests of services without replicas of their own go to those of the service whose replicas they share."""
    hosts = np.array(playable.hosts, np.int32)
    if np.array_equal(hosts, np.arange(len(hosts))):
        return rechunked(trace)
    priorities = np.array([service.priority for service in playable.scenario.services], np.int32)
    return rechunked(_to_hosts(trace, hosts, priorities))


def _to_hosts(trace: Trace, hosts: Any, priorities: Any) -> Iterator[RequestChunk]:  # noqa: ANN401 - int32 arrays
    for chunk in trace:
        service = np.zeros(len(chunk), np.int32) if chunk.service is None else chunk.service
        yield replace(
            chunk,
            service=hosts[service],
            priority=priorities[service] if chunk.priority is None else chunk.priority,
        )


def _figures(policy: str, playable: Playable, result: Result, tally: Tally, changes: int) -> PolicyRun:
    promises: dict[str, Slo] = {service.id: service.slo for service in playable.scenario.services}
    names = [service.name for service in result.spec.services]
    services = tuple(
        _service(name, tally, k, result.duration_s).but(promises=_promises(promises[name], tally, k))
        for k, name in enumerate(names)
        if playable.hosts[k] == k
    )
    return PolicyRun(
        policy=policy,
        duration_s=result.duration_s,
        total=_service("", tally, -1, result.duration_s),
        services=services,
        variants=tuple(_variant(spec, playable, result) for spec in result.spec.replicas),
        decisions=changes,
        exact=tally.exact,
    )


def _service(name: str, tally: Tally, index: int, duration_s: float) -> ServiceRun:
    one = tally.service(index)
    total, length_s = int(one.outcomes.sum()), max(duration_s, 1e-9)
    unfinished = int(one.outcomes[Outcome.UNFINISHED])
    done = int(one.outcomes[Outcome.DONE])
    return ServiceRun(
        service=name,
        arrivals=total,
        done=done,
        failed={
            cause: int(one.outcomes[outcome]) for outcome, cause in CAUSES.items() if one.outcomes[outcome]
        },
        unfinished=unfinished,
        attainment=one.good / (total - unfinished) if total > unfinished else None,
        goodput_rps=one.good / length_s,
        throughput_rps=done / length_s,
        output_tokens_per_s=one.output_tokens / length_s,
        preemptions=one.preemptions,
        prefix_hit_share=min(1.0, one.hit_tokens / one.input_tokens) if one.input_tokens else 0.0,
        ttft=_latency(one.ttft),
        itl=_latency(one.itl),
        e2e=_latency(one.e2e),
    )


def _latency(spread: Spread) -> Latency:
    return Latency(
        mean_s=spread.mean_s(),
        p50_s=spread.percentile_s(50),
        p95_s=spread.percentile_s(95),
        p99_s=spread.percentile_s(99),
    )


def _promises(slo: Slo, tally: Tally, index: int) -> tuple[PromiseKept, ...]:
    one, at = tally.service(index), "mean" if slo.at == "mean" else f"p{slo.at:g}"
    kept = []
    for name, target_s, spread in (
        ("ttft_s", slo.ttft_s, one.ttft),
        ("itl_s", slo.itl_s, one.itl),
        ("e2e_s", slo.e2e_s, one.e2e),
    ):
        if target_s is not None:
            found = seen(spread, at)
            ok = None if found is None else found <= target_s
            kept.append(PromiseKept(name=name, at=at, target_s=target_s, seen_s=found, kept=ok))
    return tuple(kept)


def _variant(spec: ReplicaSpec, playable: Playable, result: Result) -> VariantRun:
    name, there = spec.variant, result.there(spec.variant)
    mine = replace(result, replicas=tuple(life for life in result.replicas if life.variant == name))
    known = playable.power[name] is not None
    return VariantRun(
        variant=name,
        started=len(mine.replicas),
        mean_replicas=sum(map(mine.life_s, mine.replicas)) / max(result.duration_s, 1e-9),
        most_replicas=max(spec.initial_replicas, int(there.max()) if len(there) else 0),
        replica_hours=mine.replica_hours,
        gpu_hours=mine.gpu_hours,
        cost=mine.cost_usd,
        energy_kwh=mine.energy_kwh if known else None,
    )
