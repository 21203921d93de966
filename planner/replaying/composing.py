"""From a scenario and a trace to runs side by side: plan, work out the fleet, replay each policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from models.problem import Problem
from models.replay import Replay
from models.scenario import Scenario
from models.simulation import RouterSpec
from models.solution import Solution, Status
from models.workload import Service
from planner.errors import ConfigurationError, Finding, TemporaryError
from planner.planning import sized, solve_with
from planner.replaying.fleet import GRACE_S, Playable, playable
from planner.replaying.running import Observers, ReplayOptions, Run, check_policies, replay, told_replay
from planner.traces import HowRead, TraceFile, open_traces

if TYPE_CHECKING:
    from planner.optimization.protocol import SolveOptions
    from planner.traces import Trace

__all__ = ["BEST_EFFORT", "Prepared", "Replayed", "prepare", "replay_all"]

BEST_EFFORT = "no plan keeps every promise: the best plan under scarcity is replayed"


@dataclass(frozen=True, slots=True)
class Replayed:
    """Runs of policies on one trace.

    Attributes:
        told: figures of all runs as one value.
        runs: one per policy, with their tables.
    """

    told: Replay
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario ready to be replayed.

    Attributes:
        playable: the fleet's pieces.
        solution: the plan that runs start from.
        notes: what a reader should know of the plan.
    """

    playable: Playable
    solution: Solution
    notes: tuple[str, ...]


def prepare(
    scenario: Scenario,
    *,
    solution: Solution | None = None,
    solver: str = "auto",
    options: SolveOptions | None = None,
    router: Callable[[Service], RouterSpec] | None = None,
    grace_s: float = GRACE_S,
) -> Prepared:
    """Size a scenario, plan it where no plan is given, and work out what its replicas do.

    Args:
        scenario: what the user states.
        solution: a plan of it; None: one is made.
        solver: by name.
        options: time, gap, threads.
        router: of each service; None: as its thresholds say, without flow control.
        grace_s: what a removed replica may take to finish.

    Raises:
        ConfigurationError: the scenario cannot be sized, a plan has candidates that it does not know, nothing says how
            fast one is, or no variant can run at all.
        TemporaryError: no plan was found in the time given.
    """
    problem = sized(scenario, allow_unserved=True)
    notes: list[str] = []
    if solution is None:
        solution, notes = _planned(problem, solver, options=options)
    unknown = sorted(set(solution.counts) - {candidate.id for candidate in problem.candidates})
    if unknown:
        raise ConfigurationError(f"the plan has candidates that the scenario does not: {', '.join(unknown)}")
    found = playable(scenario, problem, router=router, grace_s=grace_s)
    if not found.steps:
        raise ConfigurationError.from_findings(_why_nothing_runs(problem))
    return Prepared(found, solution, tuple(notes))


def _why_nothing_runs(problem: Problem) -> list[Finding]:
    """Why each variant is out."""
    return [
        Finding(
            "",
            None,
            f"{each.service}/{each.variant}" + (f"@{each.pool}" if each.pool else ""),
            f"a variant that cannot run: {each.reason.value.replace('_', ' ')}",
            "at least one variant that can be replayed ('fleetplan explain' says more)",
        )
        for each in problem.rejected
    ] or [Finding("", None, "services", "no variant that can run", "at least one")]


def _planned(scarce: Problem, solver: str, *, options: SolveOptions | None) -> tuple[Solution, list[str]]:
    """A plan that keeps every promise, else the best one under scarcity."""
    found = solve_with(scarce.but(allow_unserved=False), solver=solver, options=options).solution
    if found.has_plan:
        return found, []
    if found.status is Status.INFEASIBLE:
        found = solve_with(scarce, solver=solver, options=options).solution
        if found.has_plan:
            return found, [BEST_EFFORT]
    raise TemporaryError(f"solver {solver!r} found no plan in the time given (status {found.status.value})")


def replay_all(
    prepared: Prepared,
    trace: Trace | str | Sequence[str],
    policies: Iterable[str],
    *,
    options: ReplayOptions | None = None,
    how: HowRead | None = None,
    observers: Observers | None = None,
) -> Replayed:
    """Replay a trace under each policy.

    Args:
        prepared: the scenario.
        trace: names as :func:`~planner.traces.open_traces` takes them, or chunks that can be iterated again.
        policies: by name.
        options: of the runs.
        how: traces are read, where they are names; services are those of the scenario.
        observers: who is told.

    Raises:
        ConfigurationError: a policy or the trace is wrong.
    """
    options, wanted = options or ReplayOptions(), check_policies(tuple(policies))
    scenario = prepared.playable.scenario
    files: tuple[TraceFile, ...] = ()
    if isinstance(trace, str):
        trace = [trace]
    if isinstance(trace, Sequence) and all(isinstance(each, str) for each in trace):
        names = tuple(service.id for service in scenario.services)
        reading = replace(how or HowRead(seed=options.seed), services=names)
        trace, files = open_traces([str(each) for each in trace], reading)
    runs = tuple(
        replay(prepared.playable, prepared.solution, trace, wanted, options=options, observers=observers)  # type: ignore[arg-type]  # names were opened
    )
    if not any(run.figures.total.arrivals for run in runs):
        raise ConfigurationError(
            "the traffic holds no request: take more of it (a slice, an end) or a higher rate"
        )
    read = [f"{file.name}: {file.bad.told()}" for file in files if file.bad.told()]
    told = told_replay(
        prepared.playable,
        runs,
        traces=[file.name for file in files],
        seed=options.seed,
        notes=[*prepared.notes, *read],
    )
    return Replayed(told, runs)
