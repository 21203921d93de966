"""A plan in hand outweighs a solver's word: where an engine finds none, or says that there is none, greedy is asked.

Its plan counts only when the referee finds nothing wrong with it, promises included.
"""

from __future__ import annotations

from typing import Final

from models.problem import Problem
from models.solution import Level, Proof, Solution, Status
from models.workload import Routing
from planner.optimization.heuristics.answer import HeuristicSolver
from planner.optimization.protocol import SolveOptions
from planner.referee import assess

__all__ = ["rescued"]

_MOST_SHARES: Final = 4_000
"""Shares of buckets up to which an exact simplex takes a moment."""


_GREEDY_S: Final = 1.2e-4
"""Wall time of the greedy heuristic per candidate, as it was measured on fleets of 20 to 1,000 services, s."""

_ANYHOW_S: Final = 0.25
"""Wall time that it may take where none is left, s."""


def rescued(problem: Problem, solution: Solution, options: SolveOptions) -> Solution:
    """The solution itself when it has a plan or greedy has none that holds; else greedy's plan, as FEASIBLE.

    Greedy knows counts alone. The referee's exact simplex routes buckets over them, and would pass the time limit where
    there are thousands of shares; greedy itself would pass it where there are thousands of candidates.

    Args:
        problem: the question.
        solution: what the solver says.
        options: with the time that is left.
    """
    if solution.has_plan or not _in_time(problem, options.time_limit_s):
        return solution
    greedy = HeuristicSolver("greedy")(problem, options).solution
    assessment = assess(problem, greedy)
    if assessment.violations:
        return solution
    said = {
        Status.INFEASIBLE: "said that there is no plan, which is not true",
        Status.TIMED_OUT: "found no plan in time",
    }.get(solution.status, "failed")
    levels = (
        Level(name="unserved", value=assessment.unserved_rps, unit="req/s"),
        Level(name="cost", value=assessment.cost, unit=problem.cost_unit),
    )
    note = f"{solution.proof.solver} {said}; this is the greedy plan, with nothing proven"
    return greedy.but(
        proof=Proof(solver=solution.proof.solver, levels=levels, notes=(*solution.proof.notes, note))
    )


def _in_time(problem: Problem, left_s: float) -> bool:
    """Whether greedy and its referee are done soon enough."""
    return _shares(problem) <= _MOST_SHARES and _GREEDY_S * len(problem.candidates) <= max(left_s, _ANYHOW_S)


def _shares(problem: Problem) -> int:
    """Shares that routing by length decides."""
    return sum(
        len(candidate.by_bucket)
        for demand in problem.demands
        if demand.routing is Routing.BY_LENGTH
        for candidate in problem.candidates_of[demand.service]
    )
