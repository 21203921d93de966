"""Near-optimal alternatives: a plan that costs little more and moves little. Solving is handed in."""

from __future__ import annotations

from collections.abc import Callable

from models.problem import CostUnit, Problem
from models.scenario import ObjectiveLevel
from models.solution import Solution
from planner.errors import ConfigurationError
from planner.referee import assess

__all__ = ["SolveAgain", "fewest_moves", "fewest_moves_problem"]

SolveAgain = Callable[[Problem], Solution]
"""Whatever solves a problem; composed where optimization and rollout may meet."""


def fewest_moves_problem(problem: Problem, solution: Solution, within: float = 0.01) -> Problem:
    """The problem whose answer changes the fewest replicas at almost the cost of a solution.

    With costs in $/h: nothing more stays unserved, then the fewest changes, then cost, under a budget of ``1 + within``
    times what the solution spends (or the budget that there is, where it is less). The budget knows replicas and nodes
    alone: starts are no spend, and fewer changes only make them cheaper.

    Relative costs have no budget. There cost stays before changes and the tolerance in which a level is held becomes
    ``within``. It is measured from the cost that is solved anew, switching cost included, and holds for every level: of
    a demand that cannot all be served, up to ``within`` of the unserved share more may stay unserved.

    Raises:
        ConfigurationError: ``within`` is no share, or the solution has no plan.
    """
    if not 0 <= within <= 1:
        raise ConfigurationError(
            f"A plan within {within} of the cost means nothing; give a share from 0 to 1."
        )
    if not solution.has_plan:
        raise ConfigurationError(f"There is nothing near: the solution is {solution.status} and has no plan.")
    unserved, cost, power, changes = (
        ObjectiveLevel.UNSERVED,
        ObjectiveLevel.COST,
        ObjectiveLevel.POWER,
        ObjectiveLevel.CHANGES,
    )
    if problem.cost_unit is CostUnit.RELATIVE:
        objective = problem.objective.but(levels=(unserved, cost, changes, power), tolerance=within)
        return problem.but(objective=objective)
    figures = assess(problem, solution)
    budget = (figures.cost - figures.switching_cost) * (1 + within)
    if problem.spend_usd_per_h is not None:
        budget = min(budget, max(problem.spend_usd_per_h, figures.cost - figures.switching_cost))
    objective = problem.objective.but(levels=(unserved, changes, cost, power))
    return problem.but(objective=objective, spend_usd_per_h=budget)


def fewest_moves(
    problem: Problem, solution: Solution, solve_again: SolveAgain, *, within: float = 0.01
) -> Solution | None:
    """A solution of almost the same cost that changes fewer replicas; None: there is none that is any better.

    Args:
        problem: the question.
        solution: an answer.
        solve_again: solves the derived problem.
        within: how much more it may cost.
    """
    other = solve_again(fewest_moves_problem(problem, solution, within))
    if not other.has_plan or assess(problem, other).changes >= assess(problem, solution).changes:
        return None
    return other.but(derived_from=problem.fingerprint)
