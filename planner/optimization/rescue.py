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


def rescued(problem: Problem, solution: Solution, options: SolveOptions) -> Solution:
    """The solution itself when it has a plan or greedy has none that holds; else greedy's plan, as FEASIBLE.

    Greedy knows counts alone. The referee's exact simplex routes buckets over them, and would pass the time limit where
    there are thousands of shares.
    """
    if solution.has_plan or _shares(problem) > _MOST_SHARES:
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


def _shares(problem: Problem) -> int:
    """Shares that routing by length decides."""
    return sum(
        len(candidate.by_bucket)
        for demand in problem.demands
        if demand.routing is Routing.BY_LENGTH
        for candidate in problem.candidates_of[demand.service]
    )
