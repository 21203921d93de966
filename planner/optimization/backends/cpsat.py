"""OR-Tools CP-SAT on the whole program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING, Final

from ortools.sat.python import cp_model

from planner.clock import Clock, SolvingClock
from planner.optimization.backends.engine import Ask, Outcome, Report, Termination, better_of
from planner.optimization.backends.interruption import stopping
from planner.optimization.program import Key, Row

if TYPE_CHECKING:
    from ortools.sat.python.cp_model_helper import SatParameters

__all__ = ["CpSat"]

_WORKERS: Final = 8
"""Eight also on two cores: with two, CP-SAT lacks the subsolvers that prove covering programs."""

_ALONE: Final = 2.0
"""Deterministic time of the single worker; about as many seconds."""

_LARGEST: Final = 2**62
_SAFE: Final = 2**60
"""CP-SAT refuses sums that may leave 64 bits, and wants room for differences of two of them."""

_ENDINGS: Final = {
    cp_model.OPTIMAL: Termination.OPTIMAL,
    cp_model.FEASIBLE: Termination.FEASIBLE,
    cp_model.INFEASIBLE: Termination.INFEASIBLE,
    cp_model.UNKNOWN: Termination.TIMED_OUT,
    cp_model.MODEL_INVALID: Termination.FAILED,
}


class CpSat:
    """CP-SAT as an engine: one worker within a deterministic limit, then all workers from where it stands.

    One worker proves small programs as fast as eight and always answers the same; what it does not prove goes to
    parallel workers, whose answer may differ from run to run among equally good ones.
    """

    name = "cp-sat"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SolvingClock()

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        if ask.program.is_hopeless:
            return Outcome(Termination.INFEASIBLE)
        start = self._clock.monotonic_s()
        alone = _solve(ask, _alone)
        if alone.termination is not Termination.TIMED_OUT and alone.termination is not Termination.FEASIBLE:
            return alone
        left = ask.seconds - (self._clock.monotonic_s() - start)
        if left <= 0 or ask.threads == 1 or ask.cancelled():
            return alone
        return better_of(
            ask, alone, _solve(replace(ask, seconds=left, hint=alone.values or ask.hint), _together)
        )


def _solve(ask: Ask, configure: Callable[[SatParameters, Ask], None]) -> Outcome:
    scale = _scale(ask, ask.goal.terms, ask.goal.constant)
    model, variables = _model(ask, scale)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.random_seed = ask.seed
    parameters.max_time_in_seconds = max(ask.seconds, 0.01)
    parameters.relative_gap_limit = ask.gap
    # Who presses Ctrl-C is heard at the edge, which tells by `cancelled`.
    parameters.catch_sigint_signal = False
    configure(parameters, ask)
    report = _in_goal_units(ask, scale)
    solver.best_bound_callback = _BoundListener(report)
    with stopping(ask.cancelled, solver.stop_search):
        termination = _ENDINGS[solver.solve(model, _SolutionListener(report))]
    if termination not in (Termination.OPTIMAL, Termination.FEASIBLE):
        return Outcome(termination)
    values = {key: int(solver.value(variable)) for key, variable in variables.items()}
    if ask.program.broken(values):  # a row that was divided says a little less than it should
        return Outcome(Termination.FAILED)
    if not ask.goal.terms:
        return Outcome(Termination.OPTIMAL, values, ask.goal.constant)
    bound = _bound(solver.best_objective_bound)
    if scale == 1 or bound is None:
        return Outcome(termination, values, bound)
    return _graded(ask, values, bound * scale)


def _graded(ask: Ask, values: Mapping[Key, int], bound: float) -> Outcome:
    """Optimal where the bound of a divided goal is near enough to the value of the goal itself."""
    value = ask.goal.activity(values)
    proven = value - bound <= (ask.gap + 1e-9) * abs(value)
    return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, values, bound)


def _in_goal_units(ask: Ask, scale: int) -> Report:
    if scale == 1:
        return ask.report

    def report(value: int | None, bound: float | None, *, columns: int | None = None) -> None:
        ask.report(
            None if value is None else value * scale,
            None if bound is None else bound * scale,
            columns=columns,
        )

    return report


def _scale(ask: Ask, terms: Mapping[Key, int], *sides: int | None) -> int:
    """The power of two by which a sum must be divided to stay within 64 bits whatever its columns are."""
    columns = ask.program.column
    reach = sum(
        abs(value) * max(abs(columns[key].lower), abs(columns[key].upper)) for key, value in terms.items()
    )
    reach += sum(abs(side) for side in sides if side is not None)
    return 1 << max(0, reach.bit_length() - _SAFE.bit_length() + 1)


def _alone(parameters: SatParameters, ask: Ask) -> None:
    parameters.num_workers = 1
    parameters.linearization_level = 2
    if ask.threads != 1:
        parameters.max_deterministic_time = _ALONE


def _together(parameters: SatParameters, ask: Ask) -> None:
    parameters.num_workers = ask.threads or _WORKERS


def _model(ask: Ask, goal_scale: int) -> tuple[cp_model.CpModel, dict[Key, cp_model.IntVar]]:
    model = cp_model.CpModel()
    variables = {
        column.key: model.new_int_var(column.lower, column.upper, "|".join(column.key))
        for column in ask.program.columns
    }
    for row in ask.program.rows:
        for terms, lower, upper in _within_64_bits(ask, row):
            model.add_linear_constraint(_sum(terms, variables), lower, upper)
    if ask.goal.terms:
        terms = {key: value // goal_scale for key, value in ask.goal.terms.items()}
        model.minimize(_sum(terms, variables) + ask.goal.constant // goal_scale)
    for key, value in (ask.hint or {}).items():
        if key in variables:
            model.add_hint(variables[key], value)
    return model, variables


def _within_64_bits(ask: Ask, row: Row) -> Iterator[tuple[Mapping[Key, int], int, int]]:
    """The row as it is; where its numbers are too large each side divided, rounded so that no point is lost."""
    scale = _scale(ask, row.terms, row.lower, row.upper)
    if scale == 1:
        lower = -_LARGEST if row.lower is None else row.lower
        upper = _LARGEST if row.upper is None else row.upper
        yield row.terms, lower, upper
        return
    if row.upper is not None:
        yield {key: value // scale for key, value in row.terms.items()}, -_LARGEST, row.upper // scale
    if row.lower is not None:
        yield {key: -(-value // scale) for key, value in row.terms.items()}, -(-row.lower // scale), _LARGEST


def _sum(terms: Mapping[Key, int], variables: Mapping[Key, cp_model.IntVar]) -> cp_model.LinearExprT:
    return cp_model.LinearExpr.weighted_sum([variables[key] for key in terms], list(terms.values()))


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
