"""PuLP on the whole program, with HiGHS or CBC: an independent second opinion.

The only file that knows PuLP 3.3 from 4.x. Statuses and bounds are read from HiGHS itself and from
CBC's log: PuLP calls a run that hit its time limit optimal, and leaves values in the variables of an
infeasible model. Values are rounded and every row is checked in exact integers before they leave.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil, isfinite, log2
from pathlib import Path
from typing import Any, Final

import highspy
import pulp

from planner.clock import Clock, SystemClock
from planner.errors import ConfigurationError
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.greeting import let_highs_greet
from planner.optimization.program import Key, Row

__all__ = ["PulpCbc", "PulpHighs"]


let_highs_greet()

_PULP_3: Final = not hasattr(pulp, "lpSum_vars_coefs")
_REPAIRS: Final = 3
_CBC_WIDEST: Final = 10**11


@dataclass
class _Model:
    """A PuLP problem with its variables by key; goal values are divided by ``goal_scale``."""

    problem: pulp.LpProblem
    variables: dict[Key, pulp.LpVariable]
    goal_scale: float


@dataclass(frozen=True)
class _Answer:
    """What a solver says: how it ended, and its bound in the scaled goal."""

    termination: Termination
    bound: float | None = None


class _Pulp(ABC):
    """Build, solve, read; repeat with tightened rows where rounding broke one."""

    name = "pulp"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    largest = 1e6
    """Coefficients above this are scaled down: tolerances are absolute."""

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        if ask.program.impossible or any(column.lower > column.upper for column in ask.program.columns):
            return Outcome(Termination.INFEASIBLE)
        end = self._clock.monotonic_s() + ask.seconds
        first = outcome = self._once(ask)
        tightened = ask
        for _ in range(_REPAIRS):
            tightened = replace(tightened, seconds=end - self._clock.monotonic_s())
            broken = ask.program.broken(outcome.values) if outcome.values is not None else ()
            if not broken or tightened.seconds <= 0:
                break
            tightened = _tighten(tightened, broken, outcome.values or {})
            outcome = self._once(tightened)
        return first if outcome is first else _repaired(ask, first, outcome)

    def _once(self, ask: Ask) -> Outcome:
        model = _model(ask, self.largest)
        answer = self._solve(model, ask)
        if answer.termination not in (Termination.OPTIMAL, Termination.FEASIBLE):
            return Outcome(answer.termination)
        columns = ask.program.column
        values = {
            key: columns[key].lower if variable.varValue is None else round(variable.varValue)
            for key, variable in model.variables.items()
        }
        bound = None if answer.bound is None else answer.bound * model.goal_scale + ask.goal.constant
        ask.report(ask.goal.activity(values), bound)
        return _graded(ask, values, bound)

    @abstractmethod
    def _solve(self, model: _Model, ask: Ask) -> _Answer: ...


def _graded(ask: Ask, values: Mapping[Key, int], bound: float | None) -> Outcome:
    """Values with a bound: optimal when they are near enough, failed when they are not of one program."""
    value = ask.goal.activity(values)
    if bound is not None and bound > value + 1e-6 * max(1.0, abs(value)):
        return Outcome(Termination.FAILED)
    proven = bound is not None and value - bound <= (ask.gap + 1e-9) * abs(value) + 1e-6
    return Outcome(Termination.OPTIMAL if proven else Termination.FEASIBLE, values, bound)


def _repaired(ask: Ask, first: Outcome, last: Outcome) -> Outcome:
    """What a tightened program proves is not true of the program itself: only the first bound is."""
    if last.values is None or ask.program.broken(last.values):
        return Outcome(Termination.FAILED)
    return _graded(ask, last.values, first.bound)


class PulpHighs(_Pulp):
    """PuLP with HiGHS through highspy."""

    name = "pulp/highs"

    def _solve(self, model: _Model, ask: Ask) -> _Answer:
        end = self._clock.monotonic_s() + ask.seconds
        answer = _run_highs(model, ask, presolve="choose")
        if answer.termination is not Termination.INFEASIBLE:
            return answer
        # Presolve of HiGHS 1.16 was seen to call a feasible program infeasible: such a word needs a second one.
        left = end - self._clock.monotonic_s()
        return _run_highs(model, replace(ask, seconds=left), presolve="off") if left > 0 else answer


def _run_highs(model: _Model, ask: Ask, *, presolve: str) -> _Answer:
    options: dict[str, Any] = {
        "random_seed": ask.seed,
        "mip_feasibility_tolerance": 1e-7,
        "presolve": presolve,
    }
    if ask.threads is not None:
        # HiGHS has one set of threads per process, and fails when another number of them is asked for.
        highspy.Highs.resetGlobalScheduler(True)
    # No hint: HiGHS 1.16 was seen to hand back the hint as its optimum when presolve solves the program.
    solver = pulp.HiGHS(
        msg=False, timeLimit=max(ask.seconds, 0.01), gapRel=ask.gap, threads=ask.threads, **options
    )
    model.problem.solve(solver)
    highs = model.problem.solverModel
    info = highs.getInfo()
    status = highs.modelStatusToString(highs.getModelStatus())
    has_plan = int(info.primal_solution_status) == 2  # noqa: PLR2004 - kSolutionStatusFeasible of HiGHS
    bound = float(info.mip_dual_bound)
    if status in {"Optimal", "Empty"}:
        proven = bound if isfinite(bound) and ask.goal.terms else float(info.objective_function_value)
        return _Answer(Termination.OPTIMAL, proven)
    if status in {"Infeasible", "Primal infeasible or unbounded"}:
        return _Answer(Termination.INFEASIBLE)
    if has_plan:
        return _Answer(Termination.FEASIBLE, bound if isfinite(bound) else None)
    return _Answer(Termination.TIMED_OUT if "imit" in status else Termination.FAILED)


class PulpCbc(_Pulp):
    """PuLP with the CBC executable that PuLP brings, or the one on the path."""

    name = "pulp/cbc"
    largest = 1e9
    """CBC reads a file with 13 digits: the less is scaled, the less is rounded there."""

    def _solve(self, model: _Model, ask: Ask) -> _Answer:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "cbc.log"
            solver = pulp.COIN_CMD(
                path=_cbc(),
                msg=False,
                timeLimit=max(ask.seconds, 0.01),
                gapRel=ask.gap,
                threads=ask.threads,
                logPath=str(log),
                options=[f"randomSeed {ask.seed + 1}", "primalTolerance 1e-9", "integerTolerance 1e-9"],
            )
            solver.tmpDir = folder
            try:
                model.problem.solve(solver)
            except pulp.PulpSolverError:
                return _Answer(Termination.FAILED)
            text = log.read_text(errors="replace") if log.exists() else ""
        answer = _read_cbc_log(text, has_goal=bool(ask.goal.terms), seconds=ask.seconds)
        if not _PULP_3 and _widest(ask) > _CBC_WIDEST and answer.termination is Termination.OPTIMAL:
            # The CBC that comes with PuLP 4 was seen to call a wrong plan optimal on such rows.
            return _Answer(Termination.FEASIBLE)
        return answer


def _model(ask: Ask, most: float) -> _Model:
    problem = pulp.LpProblem("fleet", pulp.LpMinimize)
    variables = {
        column.key: problem.add_variable(f"x{number}", column.lower, column.upper, pulp.LpInteger)
        for number, column in enumerate(ask.program.columns)
    }
    goal_scale = _power_of_two(ask.goal.terms.values(), most)
    # The goal's constant stays here: PuLP 3 does not pass it on, PuLP 4 does.
    problem += _expression(ask.goal.terms, variables, goal_scale)
    for row in ask.program.rows:
        if not row.terms:
            continue  # it holds, or the program was called infeasible before
        scale = _power_of_two(row.terms.values(), most)
        expression = _expression(row.terms, variables, scale)
        if row.lower is not None and row.lower == row.upper:
            problem += expression == row.lower / scale
            continue
        if row.lower is not None:
            problem += expression >= row.lower / scale
        if row.upper is not None:
            problem += _expression(row.terms, variables, scale) <= row.upper / scale
    return _Model(problem, variables, goal_scale)


def _expression(
    terms: Mapping[Key, int], variables: Mapping[Key, pulp.LpVariable], scale: float
) -> pulp.LpAffineExpression:
    pairs = [(variables[key], coefficient / scale) for key, coefficient in terms.items()]
    # PuLP 3 makes an expression of pairs; PuLP 4 has a function for them, and its lpSum would add up their members.
    return pulp.LpAffineExpression(pairs) if _PULP_3 else pulp.lpSum_vars_coefs(pairs)


def _power_of_two(coefficients: Iterable[int], most: float) -> float:
    """The power of two that brings the largest coefficient down to ``most``.

    Of two, since dividing by it loses nothing: a row that holds in integers with nothing to spare holds in floats too.
    """
    largest = max((abs(value) for value in coefficients), default=0)
    return 2.0 ** ceil(log2(largest / most)) if largest > most else 1.0


def _tighten(ask: Ask, broken: tuple[Row, ...], values: Mapping[Key, int]) -> Ask:
    """The same ask with the sides of broken rows moved by what they were broken by."""
    keys = {row.key for row in broken}
    rows = tuple(_inwards(row, values) if row.key in keys else row for row in ask.program.rows)
    return replace(ask, program=replace(ask.program, rows=rows))


def _inwards(row: Row, values: Mapping[Key, int]) -> Row:
    activity = row.activity(values)
    lower = row.lower if row.lower is None or activity >= row.lower else row.lower + (row.lower - activity)
    upper = row.upper if row.upper is None or activity <= row.upper else row.upper - (activity - row.upper)
    return replace(row, lower=lower, upper=upper)


def _widest(ask: Ask) -> int:
    """The largest coefficient of any row."""
    return max((abs(value) for row in ask.program.rows for value in row.terms.values()), default=0)


def _cbc() -> str:
    bundled = getattr(getattr(pulp, "PULP_CBC_CMD", None), "pulp_cbc_path", None)
    path = bundled or pulp.COIN_CMD().path or shutil.which("cbc")
    if not path or not shutil.which(path):
        raise ConfigurationError(
            "solver 'pulp-cbc' needs the CBC executable: pip install 'pulp[cbc]', or put cbc on the path"
        )
    return str(path)


_LOWER_BOUND: Final = re.compile(r"^Lower bound:\s+(\S+)", re.MULTILINE)
_WALL_TIME: Final = re.compile(r"Wallclock seconds\):\s+(\S+)")
_WALL_STEP_S: Final = 0.01
_OBJECTIVE: Final = re.compile(r"^Objective value:\s+(\S+)", re.MULTILINE)


def _read_cbc_log(text: str, *, has_goal: bool, seconds: float) -> _Answer:
    """CBC's own words. "Optimal solution found" without a gap means value and bound are one."""
    lowered = text.lower()
    objective = _OBJECTIVE.search(text)
    took = [float(found) for found in _WALL_TIME.findall(text)]
    # CBC calls a program infeasible when its time is over before the relaxation is solved.
    if objective is None and ("stopped on time" in lowered or (took and took[-1] >= seconds - _WALL_STEP_S)):
        return _Answer(Termination.TIMED_OUT)
    if objective is None:
        return _Answer(Termination.INFEASIBLE if "infeasible" in lowered else Termination.FAILED)
    bounds = [float(found) for found in _LOWER_BOUND.findall(text)]
    optimal = "result - optimal solution found" in lowered
    bound = bounds[-1] if bounds else (float(objective[1]) if optimal else None)
    proven = optimal and "stopped on time" not in lowered
    if not has_goal:
        return _Answer(Termination.OPTIMAL, float(objective[1]))
    return _Answer(Termination.OPTIMAL if proven else Termination.FEASIBLE, bound)
