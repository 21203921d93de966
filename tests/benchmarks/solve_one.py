"""One solve in a process of its own, so that memory is its own: a task as JSON in, a record as JSON out."""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from models.problem import Problem
from models.solution import Solution
from planner.optimization import solve
from planner.optimization.protocol import ProgressEvent, SolveOptions
from planner.referee import assess
from tests.benchmarks.melange import by_slices
from tests.benchmarks.records import Event, LevelEnd, Record, Task
from tests.benchmarks.registry import Family, Instance, drifted

__all__ = ["MELANGE", "REPLAN", "measured"]

MELANGE: Final = "melange"
REPLAN: Final = "replan"
"""Family of its own: tight fleets, planned, and planned again after every demand drifted by up to 2 %."""

_WARM_UP: Final = Instance(Family.AMPLE, 2)
_RATHER_NOT: Final = 3.0
_MIB: Final = 1024.0


def measured(task: Task) -> Record:
    """Build, warm up, solve, judge."""
    start = time.perf_counter()
    family = Family.TIGHT if task.family == REPLAN else Family(task.family)
    problem = Instance(family, task.size, task.seed).problem()
    record = Record(task, "", len(problem.candidates), build_s=time.perf_counter() - start)
    if task.solver == MELANGE:
        return _sliced(record, problem)
    # Loading libraries and compiling kernels happens once per machine or process and is no part of a solve.
    solve(_WARM_UP.problem(), solver=task.solver, options=SolveOptions(time_limit_s=_RATHER_NOT, gap=0.05))
    return _replanned(record, problem) if task.family == REPLAN else _solved(record, problem)


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
    """The first plan, then the drifted problem from nothing and from what the first plan left."""
    later = drifted(problem, record.task.seed)
    first = solve(problem, solver=record.task.solver, options=_options(record.task))
    cold = _solved(record, later)
    warm = getattr(first, "warm", None)
    options = replace(_options(record.task), warm=warm) if warm is not None else _options(record.task)
    start = time.perf_counter()
    result = solve(later, solver=record.task.solver, options=options)
    again = {"cold_s": cold.total_s, "warm_s": time.perf_counter() - start}
    return replace(_judged(cold, later, result.solution), again=again)


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
