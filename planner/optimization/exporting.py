"""The integer program of a problem for other solvers, and their values back as a solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from models.ids import CandidateId
from models.problem import Problem
from models.scenario import ObjectiveLevel
from models.solution import Proof, Solution, Status
from planner.clock import Clock, SolvingClock
from planner.errors import ConfigurationError, Finding, nearest
from planner.optimization.decoding import counts_of, nodes_added, solution_at
from planner.optimization.exact import GOALS, descend
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.formulation.goals import unserved_load_goal
from planner.optimization.formulation.index import Index, replicas
from planner.optimization.levels import Descent
from planner.optimization.lp_text import column_names
from planner.optimization.program import Goal, IntegerProgram, Key
from planner.optimization.protocol import SolveOptions, silent
from planner.referee import state_with

__all__ = ["Exported", "level_program", "solution_from"]

_LISTED: Final = 20
_NEAR: Final = 1e-4
"""How far a value may be from a whole number."""


@dataclass(frozen=True)
class Exported:
    """A program with its goal.

    Attributes:
        program: columns and rows, those that hold earlier levels among them.
        goal: what is made small.
        held: whether earlier levels are held; False where they have no plan.
    """

    program: IntegerProgram
    goal: Goal
    held: bool


def level_program(
    problem: Problem, level: ObjectiveLevel, *, options: SolveOptions, clock: Clock | None = None
) -> Exported:
    """The program in which a level is made small while the levels before it are held.

    Earlier levels that have something to choose are solved for that. Where they have no plan the program is handed out
    without them: it has none either.

    Args:
        problem: the question.
        level: of its objective, or any other: then all levels of the objective come before it.
        options: time and gap of the earlier levels.
        clock: measures that time.
    """
    from planner.optimization.solvers import exact_engine

    clock = clock or SolvingClock()
    formulation = formulate(problem)
    order = problem.objective.levels
    before = order[: order.index(level)] if level in order else order
    descent = Descent(
        exact_engine(clock), formulation.program, options, problem.objective.tolerance, clock, silent
    )
    descend(descent, formulation.index, before, last=False)
    held = descent.stopped is None or bool(descent.values)
    program = descent.program if held else formulation.program
    return Exported(program, _goal(formulation.index, level), held)


def _goal(index: Index, level: ObjectiveLevel) -> Goal:
    """Of unserved demand the load: how it is shared out is more than one goal."""
    if level is not ObjectiveLevel.UNSERVED:
        return GOALS[level](index)
    wanted = tuple(demand for demand in index.problem.demands if not index.problem.promised(demand))
    return unserved_load_goal(index, wanted, "unserved-load")


def solution_from(problem: Problem, values: Mapping[str, float], *, file: str) -> Solution:
    """The solution that values of an exported program stand for, of any solver; it proves nothing.

    Columns that are not named are 0, as most solvers leave those out. Where no share is named at all, the replicas
    serve the most that they can. A count may also be named by its candidate, ``chat/small@east``.

    Args:
        problem: whose program it was.
        values: by the name of a column.
        file: where they are from, for findings.

    Raises:
        ConfigurationError: a name is unknown, or a value is no whole number.
    """
    formulation = formulate(problem)
    known = _known(formulation)
    whole, findings = dict[Key, int](), list[Finding]()
    for name, value in values.items():
        if name not in known:
            findings += _unknown(name, known, file)
        elif abs(value - round(value)) > _NEAR or value < -_NEAR:
            findings.append(Finding(file, None, name, f"{value:g}", "a whole number, not below 0"))
        else:
            whole[known[name]] = round(value)
    if findings:
        raise ConfigurationError.from_findings(findings[:_LISTED])
    return _solution(formulation, whole)


def _known(formulation: Formulation) -> dict[str, Key]:
    names = {name: key for key, name in column_names(formulation.program).items()}
    counts: dict[str, Key] = {c.id: replicas(c) for c in formulation.index.problem.candidates}
    return counts | names


def _unknown(name: str, known: Mapping[str, Key], file: str) -> list[Finding]:
    """Columns of a kind that only levels bring say nothing of the plan; any other unknown name is a mistake."""
    kinds = {each.partition("(")[0] for each in known}
    if (name.partition("(")[0] not in kinds and "(" in name) or name == "nothing":
        return []
    found = f"{name!r}, which the program of this scenario does not have"
    return [Finding(file, None, name, found, suggestion=nearest(name, known))]


def _solution(formulation: Formulation, whole: Mapping[Key, int]) -> Solution:
    columns = formulation.program.columns
    fixed = {column.key: column.lower if column.lower == column.upper else 0 for column in columns}
    values = {**fixed, **whole}
    if any(key[0] in {"y", "w"} for key in whole):
        proof = Proof(solver="file")
        return solution_at(formulation.index, values, status=Status.FEASIBLE, proof=proof)
    index = formulation.index
    counts: dict[CandidateId, int] = counts_of(index, values)
    return state_with(index.problem, counts, nodes_added=nodes_added(index, values), solver="file")
