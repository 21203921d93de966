"""OR-Tools CP-SAT on the whole program."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import Final

from ortools.sat.python import cp_model

from planner.optimization.backends.engine import Ask, Outcome, Report, Termination
from planner.optimization.program import Key

__all__ = ["CpSat"]

_WORKERS: Final = 8
"""Eight also on two cores: with two, CP-SAT lacks the subsolvers that prove covering programs."""

_LARGEST: Final = 2**62

_SMALL: Final = 100
"""Columns up to which workers take turns one by one."""

_ENDINGS: Final = {
    cp_model.OPTIMAL: Termination.OPTIMAL,
    cp_model.FEASIBLE: Termination.FEASIBLE,
    cp_model.INFEASIBLE: Termination.INFEASIBLE,
    cp_model.UNKNOWN: Termination.TIMED_OUT,
    cp_model.MODEL_INVALID: Termination.FAILED,
}


class CpSat:
    """CP-SAT as an engine. Deterministic where no time limit strikes: workers are interleaved in a fixed order."""

    name = "cp-sat"

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        if ask.program.impossible or any(column.lower > column.upper for column in ask.program.columns):
            return Outcome(Termination.INFEASIBLE)
        model, variables = _model(ask)
        solver = cp_model.CpSolver()
        _configure(solver, ask)
        solver.best_bound_callback = _BoundListener(ask.report)
        status = solver.solve(model, _SolutionListener(ask.report))
        termination = _ENDINGS[status]
        if termination not in (Termination.OPTIMAL, Termination.FEASIBLE):
            return Outcome(termination)
        values = {key: int(solver.value(variable)) for key, variable in variables.items()}
        if not ask.goal.terms:
            return Outcome(Termination.OPTIMAL, values, ask.goal.constant)
        return Outcome(termination, values, _bound(solver.best_objective_bound))


def _model(ask: Ask) -> tuple[cp_model.CpModel, dict[Key, cp_model.IntVar]]:
    model = cp_model.CpModel()
    variables = {
        column.key: model.new_int_var(column.lower, column.upper, "|".join(column.key))
        for column in ask.program.columns
    }
    for row in ask.program.rows:
        lower = -_LARGEST if row.lower is None else row.lower
        upper = _LARGEST if row.upper is None else row.upper
        model.add_linear_constraint(_sum(row.terms, variables), lower, upper)
    if ask.goal.terms:
        model.minimize(_sum(ask.goal.terms, variables) + ask.goal.constant)
    for key, value in (ask.hint or {}).items():
        if key in variables:
            model.add_hint(variables[key], value)
    return model, variables


def _sum(terms: Mapping[Key, int], variables: Mapping[Key, cp_model.IntVar]) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum([variables[key] for key in terms], list(terms.values()))


def _configure(solver: cp_model.CpSolver, ask: Ask) -> None:
    parameters = solver.parameters
    parameters.num_workers = ask.threads or _WORKERS
    parameters.interleave_search = parameters.num_workers > 1
    if len(ask.program.columns) <= _SMALL:
        # Workers of a batch wait for each other, also when one of them is done: seconds for what takes milliseconds.
        parameters.interleave_batch_size = 1
    if ask.hint and any(column.key not in ask.hint for column in ask.program.columns):
        # A hint that is no whole plan may belong to a program without one. When a worker proves that, the others of
        # its batch abort the process (OR-Tools 9.15: "Check failed: heuristics.fixed_search"); alone it just ends.
        parameters.interleave_batch_size = 1
    parameters.random_seed = ask.seed
    parameters.max_time_in_seconds = max(ask.seconds, 0.01)
    parameters.relative_gap_limit = ask.gap


def _bound(bound: float) -> float | None:
    return None if bound in (inf, -inf) else float(bound)


class _SolutionListener(cp_model.CpSolverSolutionCallback):
    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    def on_solution_callback(self) -> None:
        """Tell about a better incumbent."""
        self._report(round(self.objective_value), _bound(self.best_objective_bound))


class _BoundListener:
    def __init__(self, report: Report) -> None:
        self._report = report

    def __call__(self, bound: float) -> None:
        self._report(None, ceil(bound - 1e-6))
