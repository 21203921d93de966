"""Fleet and solution in, plan out."""

from __future__ import annotations

from models.plan import Plan, WaveLimits
from models.problem import Problem
from models.solution import Solution
from planner.rollout.judge import Tick, never
from planner.rollout.resizing import changes_of, roll_out_changes
from planner.rollout.slack import Question, find_order, why_stuck
from planner.rollout.writing import plan_of

__all__ = ["roll_out"]


def roll_out(
    problem: Problem, solution: Solution, *, limits: WaveLimits | None = None, tick: Tick = never
) -> Plan:
    """Ordered waves from the fleet that runs and is on order to the solution.

    Each wave's two states, while it runs and after it, are judged by the referee's rows (see `planner.rollout.judge`
    for what "not worse" means). Steps only move toward the solution: nothing is started for a while that the solution
    does not want, and nothing is drained that it keeps.

    Args:
        problem: the question, with what runs now.
        solution: the answer to be reached; it need not keep every limit.
        limits: how much may change at once; None: no limits but those of the problem.
        tick: called before each judgement. There is no time limit here; raise from it to have one.

    Returns:
        The plan. Where no order is found it ends early, and ``stuck`` says why and what would do.

    Raises:
        ConfigurationError: the solution has no plan or is of another problem, or no step can be as small as is asked.
    """
    changes = changes_of(problem, solution)
    if changes:

        def others(between: Problem, goal: Solution) -> Plan:
            return _roll_out(Question(between, goal, limits or WaveLimits(), tick))

        plan = roll_out_changes(problem, solution, changes, roll_out=others)
        return plan.but(derived_from=solution.fingerprint)
    return _roll_out(Question(problem, solution, limits or WaveLimits(), tick))


def _roll_out(question: Question) -> Plan:
    judge = question.judge()
    order = find_order(judge)
    plan = plan_of(judge.task, order, question.limits).but(derived_from=question.solution.fingerprint)
    return plan if order.done else plan.but(stuck=why_stuck(question, judge, order))
