"""Why the plan is as it is: what binds, what was passed over and why, and what cannot hold together."""

from __future__ import annotations

from typing import Final

from models.explanation import Explanation
from models.problem import Problem
from models.report import Assessment
from models.solution import Solution, Status
from planner.clock import Clock, SolvingClock
from planner.optimization.explaining.conflict import conflict_of
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.limits import Rerate
from planner.optimization.explaining.passed_over import passed_over
from planner.optimization.explaining.relaxation import relaxations
from planner.optimization.explaining.runners_up import runners_up
from planner.optimization.explaining.together import together
from planner.optimization.explaining.worth import worth_of

__all__ = ["explain", "look_closer", "promising_all"]

_TIME_S: Final = 30.0
_CONFLICT: Final = 0.5
_RUNNERS_UP: Final = 0.3
"""Shares of the time for what is done first."""


def explain(
    problem: Problem,
    solution: Solution,
    assessment: Assessment | None,
    *,
    time_limit_s: float = _TIME_S,
    clock: Clock | None = None,
    rerate: Rerate | None = None,
) -> Explanation:
    """Reasons for a solution, from values alone.

    Where there is no plan, or the plan leaves demand unserved, what stands against serving all is a part of them.

    Args:
        problem: the question.
        solution: the answer, of any solver.
        assessment: what the referee says of it; None where there is no plan.
        time_limit_s: for the solves that need; what they do not reach is left out.
        clock: measures that time.
        rerate: sizes again with looser latency promises; None: that is not tried.
    """
    clock = clock or SolvingClock()
    oracle = Oracle(clock=clock, deadline_s=clock.monotonic_s() + time_limit_s)
    if solution.status is Status.INFEASIBLE:
        return Explanation(rejected=problem.rejected).but(**_against(problem, oracle, rerate))
    if assessment is None:
        return Explanation(rejected=problem.rejected)
    binding = tuple(row.as_binding() for row in assessment.rows if row.binds)
    unused = tuple(passed_over(problem, solution, binding))
    found = Explanation(binding=binding, rejected=(*problem.rejected, *unused))
    if assessment.unserved_rps > 0 and not assessment.violations:
        return found.but(**_against(promising_all(problem), oracle, rerate))
    return found


def look_closer(
    problem: Problem,
    solution: Solution,
    *,
    time_limit_s: float = _TIME_S,
    clock: Clock | None = None,
    rerate: Rerate | None = None,
    worth: bool = False,
) -> Explanation:
    """The runners-up of a plan and, if asked for, what a little more of each limit is worth; nothing else.

    Args:
        problem: the question.
        solution: the answer, of any solver; without a plan there is nothing to say.
        time_limit_s: for all the solves that this needs; what they do not reach is left out, or estimated.
        clock: measures that time.
        rerate: sizes again with looser latency promises; None: they are not asked for.
        worth: whether to find what more is worth.
    """
    if not solution.has_plan:
        return Explanation()
    clock = clock or SolvingClock()
    oracle = Oracle(clock=clock, deadline_s=clock.monotonic_s() + time_limit_s)
    close = runners_up(problem, solution, oracle.until(_RUNNERS_UP if worth else 1.0))
    more = worth_of(problem, oracle, rerate=rerate, hint=solution.counts) if worth else ()
    return Explanation(runners_up=close, worth=more)


def promising_all(problem: Problem) -> Problem:
    """The problem with every demand as a promise."""
    demands = tuple(demand.but(best_effort=False) for demand in problem.demands)
    return problem.but(allow_unserved=False, demands=demands)


def _against(problem: Problem, oracle: Oracle, rerate: Rerate | None) -> dict[str, object]:
    """What conflicts, each limit whose move alone would do, and where there is none those that do together."""
    conflict = conflict_of(problem, oracle.until(_CONFLICT))
    single = relaxations(problem, conflict, oracle, rerate=rerate)
    enough = any(each.verified for each in single)
    return {
        "conflict": conflict,
        "relaxations": single,
        "together": () if enough else together(problem, conflict, oracle, rerate=rerate),
    }
