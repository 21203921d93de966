"""Why the plan is as it is: what binds, what was passed over and why, and what cannot hold together."""

from __future__ import annotations

from typing import Final

from models.explanation import Explanation
from models.problem import Problem
from models.report import Assessment
from models.solution import Solution, Status
from planner.clock import Clock, SystemClock
from planner.optimization.explaining.conflict import conflict_of
from planner.optimization.explaining.passed_over import passed_over
from planner.optimization.explaining.relaxation import relaxations

__all__ = ["explain"]

_TIME_S: Final = 30.0


def explain(
    problem: Problem,
    solution: Solution,
    assessment: Assessment | None,
    *,
    time_limit_s: float = _TIME_S,
    clock: Clock | None = None,
) -> Explanation:
    """Reasons for a solution, from values alone.

    Args:
        problem: the question.
        solution: the answer, of any solver.
        assessment: what the referee says of it; None where there is no plan.
        time_limit_s: for the solves that an infeasible problem needs; what they do not reach is left out.
        clock: measures that time.
    """
    if solution.status is Status.INFEASIBLE:
        clock = clock or SystemClock()
        deadline = clock.monotonic_s() + time_limit_s
        conflict = conflict_of(problem, clock=clock, deadline_s=deadline)
        return Explanation(
            rejected=problem.rejected,
            conflict=conflict,
            relaxations=relaxations(problem, conflict, clock=clock, deadline_s=deadline),
        )
    if assessment is None:
        return Explanation(rejected=problem.rejected)
    binding = tuple(row.as_binding() for row in assessment.rows if row.binds)
    unused = tuple(passed_over(problem, solution, binding))
    return Explanation(binding=binding, rejected=(*problem.rejected, *unused))
