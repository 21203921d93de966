"""SCIP through OR-Tools MathOpt on the whole program: a second opinion that shares no code with HiGHS, CBC or CP-SAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import isfinite
from typing import Final

from ortools.math_opt import model_pb2
from ortools.math_opt.python import mathopt
from ortools.util.python.solve_interrupter import SolveInterrupter

from planner.clock import Clock, SolvingClock
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.floating import graded, power_of_two, repaired
from planner.optimization.backends.greeting import Hush
from planner.optimization.backends.interruption import stopping
from planner.optimization.protocol import never

__all__ = ["Scip"]

_LARGEST: Final = 1e6
"""Coefficients above this are scaled down: tolerances are absolute."""

_FEASIBILITY: Final = 1e-8
_NOISE: Final = (b"SCIPcatchEvent does not support", b"gscip_event_handler.cc")
_UNDER_WAY: Final = "presolving"
_UNKNOWN: Final = 1e19
"""SCIP's infinity is 1e20."""

_REASON: Final = mathopt.TerminationReason
_ENDINGS: Final = {
    _REASON.OPTIMAL: Termination.OPTIMAL,
    _REASON.FEASIBLE: Termination.FEASIBLE,
    _REASON.INFEASIBLE: Termination.INFEASIBLE,
    # Every column has two ends, so nothing is unbounded.
    _REASON.INFEASIBLE_OR_UNBOUNDED: Termination.INFEASIBLE,
    _REASON.NO_SOLUTION_FOUND: Termination.TIMED_OUT,
}


class Scip:
    """SCIP as an engine, with one worker whatever is asked for."""

    name = "scip"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SolvingClock()

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        return repaired(ask, _once, self._clock)


def _once(ask: Ask) -> Outcome:
    goal_scale = power_of_two(ask.goal.terms.values(), _LARGEST)
    model = mathopt.Model.from_model_proto(_proto(ask, goal_scale))
    try:
        result = _solved(ask, model, goal_scale)
    except RuntimeError:  # SCIP's own errors, e.g. a linear program that it cannot solve
        return Outcome(Termination.FAILED)
    return _outcome(ask, result, goal_scale)


def _solved(ask: Ask, model: mathopt.Model, goal_scale: float) -> mathopt.SolveResult:
    hush = None if ask.cancelled is never else Hush(_NOISE)
    interrupter = None if hush is None else SolveInterrupter()
    listener = _Listener(ask, goal_scale)

    def hear(lines: Sequence[str]) -> None:
        # What it says of hints comes before the noise, what it says of presolving after it.
        if hush is not None and any(_UNDER_WAY in line for line in lines):
            hush.lift()
        listener(lines)

    try:
        with stopping(ask.cancelled, lambda: interrupter and interrupter.interrupt()):
            return mathopt.solve(
                model,
                mathopt.SolverType.GSCIP,
                params=_parameters(ask),
                model_params=_start(ask, model),
                msg_cb=hear,
                interrupter=interrupter,
            )
    finally:
        if hush is not None:
            hush.lift()


def _outcome(ask: Ask, result: mathopt.SolveResult, goal_scale: float) -> Outcome:
    termination = _ENDINGS.get(result.termination.reason, Termination.FAILED)
    dual = result.dual_bound()
    bound = dual * goal_scale + ask.goal.constant if isfinite(dual) and abs(dual) < _UNKNOWN else None
    if termination not in (Termination.OPTIMAL, Termination.FEASIBLE):
        return Outcome(termination, bound=bound if termination is Termination.TIMED_OUT else None)
    found = {variable.id: value for variable, value in result.variable_values().items()}
    values = {column.key: round(found[number]) for number, column in enumerate(ask.program.columns)}
    if not ask.goal.terms:
        bound = ask.goal.constant
    ask.report(ask.goal.activity(values), bound)
    return graded(ask, values, bound)


def _parameters(ask: Ask) -> mathopt.SolveParameters:
    parameters = mathopt.SolveParameters(
        time_limit=timedelta(seconds=max(ask.seconds, 0.01)),
        relative_gap_tolerance=ask.gap,
        absolute_gap_tolerance=0.0,
        random_seed=ask.seed,
        # Several solvers at once print their seeds and ends on standard output, which is for answers, and may fail.
        threads=1,
    )
    # Who presses Ctrl-C is heard at the edge, which tells by `cancelled`.
    parameters.gscip.bool_params["misc/catchctrlc"] = False
    parameters.gscip.real_params["numerics/feastol"] = _FEASIBILITY
    return parameters


def _start(ask: Ask, model: mathopt.Model) -> mathopt.ModelSolveParameters:
    hint = ask.hint or {}
    variables = zip(ask.program.columns, model.variables(), strict=True)
    known = {variable: float(hint[column.key]) for column, variable in variables if column.key in hint}
    return mathopt.ModelSolveParameters(
        solution_hints=[mathopt.SolutionHint(variable_values=known)] if known else []
    )


def _proto(ask: Ask, goal_scale: float) -> model_pb2.ModelProto:
    """The program as MathOpt writes it down; columns and rows are numbered as they stand there."""
    columns, proto = ask.program.columns, model_pb2.ModelProto(name="fleet")
    place = {column.key: number for number, column in enumerate(columns)}
    proto.variables.ids.extend(range(len(columns)))
    proto.variables.lower_bounds.extend(float(column.lower) for column in columns)
    proto.variables.upper_bounds.extend(float(column.upper) for column in columns)
    proto.variables.integers.extend([True] * len(columns))
    _add(proto.objective.linear_coefficients, place, ask.goal.terms, goal_scale)
    rows = [row for row in ask.program.rows if row.terms]
    for number, row in enumerate(rows):
        scale = power_of_two(row.terms.values(), _LARGEST)
        proto.linear_constraints.ids.append(number)
        proto.linear_constraints.lower_bounds.append(
            -float("inf") if row.lower is None else row.lower / scale
        )
        proto.linear_constraints.upper_bounds.append(float("inf") if row.upper is None else row.upper / scale)
        terms = sorted((place[key], coefficient / scale) for key, coefficient in row.terms.items())
        proto.linear_constraint_matrix.row_ids.extend([number] * len(terms))
        proto.linear_constraint_matrix.column_ids.extend(column for column, _ in terms)
        proto.linear_constraint_matrix.coefficients.extend(value for _, value in terms)
    return proto


def _add(
    sparse: model_pb2.sparse__containers__pb2.SparseDoubleVectorProto,
    place: Mapping[tuple[str, ...], int],
    terms: Mapping[tuple[str, ...], int],
    scale: float,
) -> None:
    pairs = sorted((place[key], coefficient / scale) for key, coefficient in terms.items() if coefficient)
    sparse.ids.extend(number for number, _ in pairs)
    sparse.values.extend(value for _, value in pairs)


class _Listener:
    """Reads value and bound from the table that SCIP writes while it works; nothing is printed."""

    def __init__(self, ask: Ask, goal_scale: float) -> None:
        self._ask = ask
        self._scale = goal_scale

    def __call__(self, lines: Sequence[str]) -> None:
        """Hear lines of the log."""
        for line in lines:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) > _CELLS_AFTER_BOUND + 1 and cells[0].endswith("s"):
                bound, value = (
                    self._figure(cells[n]) for n in (-_CELLS_AFTER_BOUND - 1, -_CELLS_AFTER_BOUND)
                )
                self._ask.report(None if value is None else round(value), bound)

    def _figure(self, cell: str) -> float | None:
        try:
            figure = float(cell)
        except ValueError:  # "--" and "Inf" stand for what is not known
            return None
        known = isfinite(figure) and abs(figure) < _UNKNOWN
        return figure * self._scale + self._ask.goal.constant if known else None


_CELLS_AFTER_BOUND: Final = 3
"""Primal bound, gap and completion stand after the dual bound."""
