"""A plan in hand outweighs a solver's word: where an engine finds none, or says that there is none, greedy is asked.

Its plan counts only when the referee finds nothing wrong with it, promises included.
"""

from __future__ import annotations

from models.problem import Problem
from models.solution import Level, Proof, Solution, Status
from planner.optimization.heuristics.answer import HeuristicSolver
from planner.optimization.protocol import SolveOptions
from planner.referee import assess

__all__ = ["rescued"]


def rescued(problem: Problem, solution: Solution, options: SolveOptions) -> Solution:
    """The solution itself when it has a plan or greedy has none that holds; else greedy's plan, as FEASIBLE."""
    if solution.has_plan:
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
