"""The whole integer program, answered by one engine level by level."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from models.ids import CandidateId
from models.problem import Problem
from models.report import EngineWork
from models.scenario import ObjectiveLevel
from models.solution import Proof, Solution, Status
from planner.clock import Clock, SolvingClock
from planner.collecting import collection_paused
from planner.optimization.backends.engine import Engine, Termination
from planner.optimization.backends.race import works
from planner.optimization.decoding import solution_at
from planner.optimization.fairness import minimize_unserved
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.formulation.goals import GOAL_INPUTS, changes_goal, cost_goal, power_goal
from planner.optimization.formulation.index import Index, replicas
from planner.optimization.levels import AGAIN, AGAIN_S, Descent
from planner.optimization.program import Goal, Key
from planner.optimization.protocol import Progress, SolveOptions, SolveResult, silent
from planner.optimization.rescue import rescued
from planner.optimization.warm import WarmStart, recognized

__all__ = ["GOALS", "Hint", "Rescue", "WholeProgram", "descend"]

Hint = Callable[[Problem], Mapping[CandidateId, int]]
"""Counts by candidate to start from."""

Rescue = Callable[[Problem, Solution, SolveOptions], Solution]
"""What is asked before a solution without a plan is handed out, with the options and what is left of their time."""

GOALS: Final[dict[ObjectiveLevel, Callable[[Index], Goal]]] = {
    ObjectiveLevel.COST: cost_goal,
    ObjectiveLevel.POWER: power_goal,
    ObjectiveLevel.CHANGES: changes_goal,
}
"""What each level makes small; unserved demand is more than one goal."""

_NOT_LAST: Final = 0.8
"""Share of the time left that a level may take while others wait."""

_ENDING_S: Final = 1.5e-5
"""Wall time per candidate that passes after the last level, s."""

_ENDING_AGAIN_S: Final = 4e-6
"""The same where candidates were named before."""

_MOST_ENDING: Final = 0.2
"""Share of the time that is kept for it at most."""

_NO_PLAN: Final = {
    Termination.INFEASIBLE: Status.INFEASIBLE,
    Termination.TIMED_OUT: Status.TIMED_OUT,
}


def descend(descent: Descent, index: Index, levels: Sequence[ObjectiveLevel], *, last: bool = True) -> None:
    """Solve levels in turn and hold each.

    Args:
        descent: is moved on; it has no values where there is no plan, or no time to find one.
        index: of the problem.
        levels: in their order.
        last: no other level waits for time.
    """
    chosen = False  # once a level has chosen the plan, the rest break ties
    for level in levels:
        if level is ObjectiveLevel.UNSERVED:
            minimize_unserved(descent, index)
        else:
            share = 1.0 if last and level is levels[-1] else _NOT_LAST
            descent.minimize(index.once(GOALS[level], GOAL_INPUTS), share=share, tie_break=chosen)
            chosen = True
        if descent.stopped is not None and not descent.values:
            break


class WholeProgram:
    """A solver: formulate once, then descend through the levels with one engine."""

    def __init__(
        self,
        engine: Engine,
        *,
        name: str,
        hint: Hint | None = None,
        rescue: Rescue = rescued,
        clock: Clock | None = None,
    ) -> None:
        self._engine = engine
        self._name = name
        self._hint = hint
        self._rescue = rescue
        self._clock = clock or SolvingClock()

    def __call__(self, problem: Problem, options: SolveOptions, progress: Progress = silent) -> SolveResult:
        """Answer ``problem`` within ``options``."""
        with (
            collection_paused()
        ):  # once for all of it: each end of a pause has the collector walk through the program
            return self._answer(problem, options, progress)

    def _answer(self, problem: Problem, options: SolveOptions, progress: Progress) -> SolveResult:
        start = self._clock.monotonic_s()
        before = None if options.warm is None else options.warm.formulation
        if before is not None:
            problem = recognized(problem, before.index.problem)
        formulation = formulate(problem, before=before)
        formulated = self._clock.monotonic_s()
        descent = self._descend(formulation, _with_time_to_end(problem, options), progress, start)
        found = self._solution(formulation.index, descent)
        left_s = max(0.0, options.time_limit_s - (self._clock.monotonic_s() - start))
        solution = self._rescue(problem, found, replace(options, time_limit_s=left_s))
        warm = WarmStart(formulation, descent.memory, descent.values, descent.reached)
        solve_s = self._clock.monotonic_s() - formulated
        return SolveResult(solution, formulated - start, solve_s, warm, self._works())

    def _descend(
        self, formulation: Formulation, options: SolveOptions, progress: Progress, /, start_s: float
    ) -> Descent:
        problem = formulation.index.problem
        descent = Descent(
            self._engine,
            formulation.program,
            options,
            problem.objective.tolerance,
            self._clock,
            progress,
            start_s=start_s,
        )
        if options.warm is not None:
            descent.memory = options.warm.memory.aged()
            descent.tie_s, descent.tie_share = AGAIN_S, AGAIN
            descent.reached = dict(options.warm.reached)
        descent.hint = (options.warm and options.warm.values) or self._start(formulation.index)
        descend(descent, formulation.index, problem.objective.levels)
        descent.settle()
        return descent

    def _start(self, index: Index) -> dict[Key, int]:
        if self._hint is None:
            return {}
        counts = self._hint(index.problem)
        return {replicas(c): counts.get(c.id, 0) for c in index.problem.candidates}

    def _solution(self, index: Index, descent: Descent) -> Solution:
        problem = index.problem
        if not descent.values:
            status = _NO_PLAN.get(descent.stopped or Termination.FAILED, Status.FAILED)
            return Solution(status=status, proof=Proof(solver=self._name), derived_from=problem.fingerprint)
        values = descent.values
        proven = not descent.unreached and all(level.proven for level in descent.levels)
        return solution_at(
            index,
            values,
            status=Status.OPTIMAL if proven else Status.FEASIBLE,
            proof=Proof(solver=self._name, levels=descent.levels_at(values), notes=self._notes()),
        )

    def _works(self) -> tuple[EngineWork, ...]:
        """Who did what; nothing where one engine does all."""
        spells = getattr(self._engine, "spells", None)
        return works(spells) if spells else ()

    def _notes(self) -> tuple[str, ...]:
        """Names alone: seconds would make equal answers differ."""
        did = self._works()
        if not did:
            return ()
        return (f"engines: {', '.join(each.engine for each in did)}", *_credits(did))


def _with_time_to_end(problem: Problem, options: SolveOptions) -> SolveOptions:
    """The options with what naming the problem by its fingerprint and writing the solution down will take left out."""
    known = options.warm is not None
    ending_s = (_ENDING_AGAIN_S if known else _ENDING_S) * len(problem.candidates)
    limit_s = options.time_limit_s
    return replace(options, time_limit_s=limit_s - min(ending_s, _MOST_ENDING * limit_s))


def _credits(did: Sequence[EngineWork]) -> Iterator[str]:
    """Who found the plan and who proved the bound of the cost."""
    level = ObjectiveLevel.COST
    found = next((each.engine for each in did if level in each.found), None)
    proved = next((each.engine for each in did if level in each.proved), None)
    if found and proved:
        yield f"cost: plan by {found}, bound by {proved}"
