"""One solve in a process of its own, so that memory is its own: a task as JSON in, a record as JSON out."""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from models.problem import Problem
from models.solution import Solution
from planner.door import solve_again
from planner.optimization import solve
from planner.optimization.protocol import ProgressEvent, SolveOptions, SolveResult
from planner.optimization.warm import WarmStart
from planner.referee import assess
from tests.benchmarks.melange import by_slices
from tests.benchmarks.records import Event, LevelEnd, Record, Task
from tests.benchmarks.registry import Family, Instance, drifted

__all__ = ["MELANGE", "REPLAN", "REPLANS", "load", "measured"]

MELANGE: Final = "melange"
REPLAN: Final = "replan"
REPLANS: Final[dict[str, Family]] = {REPLAN: Family.TIGHT} | {
    f"{REPLAN}-{family}": family
    for family in (
        Family.AMPLE,
        Family.PLACEMENT,
        Family.QUOTA,
        Family.POWER,
        Family.POOLS_30,
        Family.PREFILL_DECODE,
        Family.BUCKETS,
    )
}
"""Fleets that are planned, and planned again after every demand drifted by up to 2 %."""

_WARM_UPS: Final = (Instance(Family.AMPLE, 2), Instance(Family.AMPLE, 20))
"""Small enough for the engine of small programs, and large enough for column generation: both are loaded then."""

_RATHER_NOT: Final = 3.0
_MIB: Final = 1024.0


def measured(task: Task) -> Record:
    """Build, warm up, solve, judge."""
    start = time.perf_counter()
    family = REPLANS.get(task.family) or Family(task.family)
    problem = Instance(family, task.size, task.seed).problem()
    record = Record(task, "", len(problem.candidates), build_s=time.perf_counter() - start)
    if task.solver == MELANGE:
        return _sliced(record, problem)
    load(task.solver)
    return _replanned(record, problem) if task.family in REPLANS else _solved(record, problem)


def load(solver: str) -> None:
    """Load libraries and compile kernels: that happens once per machine or process and is no part of a solve."""
    for instance in _WARM_UPS:
        solve(instance.problem(), solver=solver, options=SolveOptions(time_limit_s=_RATHER_NOT, gap=0.05))


def _options(task: Task) -> SolveOptions:
    return SolveOptions(time_limit_s=task.seconds, gap=task.gap, threads=task.threads, seed=task.seed)


def _solved(record: Record, problem: Problem) -> Record:
    start = time.perf_counter()
    events = list[Event]()

    def hear(event: ProgressEvent) -> None:
        events.append(Event(time.perf_counter() - start, event.level, event.value, event.bound))

    result = solve(problem, solver=record.task.solver, options=_options(record.task), progress=hear)
    total_s = time.perf_counter() - start
    found = replace(record, formulate_s=result.formulate_s, total_s=total_s, events=tuple(events))
    return _judged(found, problem, result.solution)


def _judged(record: Record, problem: Problem, solution: Solution) -> Record:
    start = time.perf_counter()
    figures = assess(problem, solution) if solution.has_plan else None
    return replace(
        record,
        status=str(solution.status),
        check_s=time.perf_counter() - start,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB,
        levels=tuple(LevelEnd(level.name, level.value, level.bound) for level in solution.proof.levels),
        notes=solution.proof.notes,
        unserved_rps=None if figures is None else figures.unserved_rps,
        cost=None if figures is None else figures.cost,
        violations=0 if figures is None else len(figures.violations),
    )


def _replanned(record: Record, problem: Problem) -> Record:
    """The first plan, then the drifted problem from nothing and from what the first plan left, each solved and judged.

    All values of the drifted problem are made anew both times, as whoever sizes it every few seconds makes them.
    """
    later = drifted(problem, record.task.seed).model_dump_json()
    first = _again(problem, None, record.task)
    (cold_s, cold), (warm_s, warm) = (
        _timed(Problem.model_validate_json(later), before, record.task) for before in (None, first.warm)
    )
    found = replace(record, formulate_s=cold.formulate_s, total_s=cold_s)
    again = {"cold_s": cold_s, "warm_s": warm_s, "cold_gap": _worst(cold), "warm_gap": _worst(warm)}
    return replace(_judged(found, Problem.model_validate_json(later), warm.solution), again=again)


def _again(problem: Problem, warm: WarmStart | None, task: Task) -> SolveResult:
    return solve_again(problem, warm, solver=task.solver, options=_options(task))


def _timed(problem: Problem, warm: WarmStart | None, task: Task) -> tuple[float, SolveResult]:
    start = time.perf_counter()
    result = _again(problem, warm, task)
    return time.perf_counter() - start, result


def _worst(result: SolveResult) -> float:
    """The largest gap of the levels up to the cost; infinite where there is no plan, or no bound."""
    levels = result.solution.proof.levels
    names = [level.name for level in levels]
    if "cost" not in names:
        return inf
    return max(inf if level.gap is None else level.gap for level in levels[: names.index("cost") + 1])


def _sliced(record: Record, problem: Problem) -> Record:
    answer = by_slices(problem, seconds=record.task.seconds, gap=record.task.gap)
    total_s = answer.formulate_s + answer.solve_s
    status = "OPTIMAL" if answer.proven else "TIMED_OUT" if answer.cost is None else "FEASIBLE"
    return replace(
        record,
        status=status,
        formulate_s=answer.formulate_s,
        total_s=total_s,
        cost=answer.cost,
        peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MIB,
        levels=()
        if answer.cost is None
        else (LevelEnd("unserved", 0.0, 0.0), LevelEnd("cost", answer.cost, None)),
        notes=("the optimum of its slices" if answer.proven else "cut",),
    )


if __name__ == "__main__":
    print(json.dumps(asdict(measured(Task(**json.loads(sys.argv[1]))))))
