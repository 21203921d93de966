"""PuLP on the whole program, with HiGHS or CBC: an independent second opinion.

The only file that knows PuLP 3.3 from 4.x. Statuses and bounds are read from HiGHS itself and from
CBC's log: PuLP calls a run that hit its time limit optimal, and leaves values in the variables of an
infeasible model.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

import highspy
import pulp

from planner.clock import Clock, SolvingClock
from planner.errors import ConfigurationError
from planner.optimization.backends.cbc_process import heard, interrupt, launcher
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.floating import graded, power_of_two, repaired
from planner.optimization.backends.greeting import let_highs_greet
from planner.optimization.backends.highs import has_point
from planner.optimization.backends.interruption import watching
from planner.optimization.program import Key

__all__ = ["PulpCbc", "PulpHighs"]


let_highs_greet()

_PULP_3: Final = not hasattr(pulp, "lpSum_vars_coefs")
_CBC_WIDEST: Final = 10**11
_UNTOUCHED: Final = ("presolve off", "preprocess off", "cutsOnOff off", "primalTolerance 1e-7")
_CALLBACKS: Final = highspy.cb.HighsCallbackType
_UNKNOWN: Final = 1e100
"""HiGHS tells infinities, or the largest float, for what it does not know."""


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
    """Build, solve, read."""

    name = "pulp"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SolvingClock()

    largest = 1e6
    """Coefficients above this are scaled down: tolerances are absolute."""

    def minimize(self, ask: Ask) -> Outcome:
        """Answer one minimization."""
        return repaired(ask, self._once, self._clock)

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
        return graded(ask, values, bound)

    @abstractmethod
    def _solve(self, model: _Model, ask: Ask) -> _Answer: ...


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
        msg=False,
        timeLimit=max(ask.seconds, 0.01),
        gapRel=ask.gap,
        threads=ask.threads,
        callbackTuple=(_HighsListener(ask, model.goal_scale), None),
        callbacksToActivate=[_CALLBACKS.kCallbackMipInterrupt, _CALLBACKS.kCallbackMipImprovingSolution],
        **options,
    )
    model.problem.solve(solver)
    highs = model.problem.solverModel
    info = highs.getInfo()
    status = highs.modelStatusToString(highs.getModelStatus())
    bound = float(info.mip_dual_bound)
    if status in {"Optimal", "Empty"}:
        proven = bound if isfinite(bound) and ask.goal.terms else float(info.objective_function_value)
        return _Answer(Termination.OPTIMAL, proven)
    if status in {"Infeasible", "Primal infeasible or unbounded"}:
        return _Answer(Termination.INFEASIBLE)
    if has_point(highs):
        return _Answer(Termination.FEASIBLE, bound if isfinite(bound) else None)
    ended = "imit" in status or status == "Interrupted by user"
    return _Answer(Termination.TIMED_OUT if ended else Termination.FAILED)


class _HighsListener:
    """Passes on what HiGHS finds, and tells it when to end."""

    def __init__(self, ask: Ask, goal_scale: float) -> None:
        self._ask = ask
        self._scale = goal_scale
        self._last: tuple[int | None, float | None] = (None, None)

    def __call__(self, _kind: object, _message: str, found: Any, answer: Any, _data: object) -> None:  # noqa: ANN401 - highspy
        value = self._in_goal_units(found.mip_primal_bound)
        said = (None if value is None else round(value), self._in_goal_units(found.mip_dual_bound))
        if said != self._last:
            self._last = said
            self._ask.report(*said)
        if self._ask.cancelled():
            answer.user_interrupt = True

    def _in_goal_units(self, value: float) -> float | None:
        return value * self._scale + self._ask.goal.constant if abs(value) < _UNKNOWN else None


class PulpCbc(_Pulp):
    """PuLP with the CBC executable that PuLP brings, or the one on the path."""

    name = "pulp/cbc"
    largest = 1e9
    """CBC reads a file with 13 digits: the less is scaled, the less is rounded there."""

    def _solve(self, model: _Model, ask: Ask) -> _Answer:
        end = self._clock.monotonic_s() + ask.seconds
        answer = _run_cbc(model, ask, ())
        if not _PULP_3 and _widest(ask) > _CBC_WIDEST and answer.termination is Termination.OPTIMAL:
            # The CBC that comes with PuLP 4 was seen to call a wrong plan optimal on such rows.
            return _Answer(Termination.FEASIBLE)
        if answer.termination is not Termination.INFEASIBLE:
            return answer
        # CBC 2.10 was seen to call programs of a hundred services infeasible whose demand may stay unserved: such a
        # word needs a second one, without what rewrites the program and with its usual tolerance.
        left = end - self._clock.monotonic_s()
        return _run_cbc(model, replace(ask, seconds=max(left, 0.01)), _UNTOUCHED)


def _run_cbc(model: _Model, ask: Ask, options: Sequence[str]) -> _Answer:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.COIN_CMD(
            path=launcher(Path(folder), _cbc()),
            msg=False,
            timeLimit=max(ask.seconds, 0.01),
            gapRel=ask.gap,
            threads=ask.threads,
            logPath=str(log),
            options=[
                f"randomSeed {ask.seed + 1}",
                "primalTolerance 1e-9",
                "integerTolerance 1e-9",
                *options,
            ],
        )
        solver.tmpDir = folder
        try:
            with watching(_CbcWatch(ask, model.goal_scale, Path(folder), log)):
                model.problem.solve(solver)
        except pulp.PulpSolverError:
            return _Answer(Termination.TIMED_OUT if ask.cancelled() else Termination.FAILED)
        text = log.read_text(errors="replace") if log.exists() else ""
    return _read_cbc_log(text, has_goal=bool(ask.goal.terms), seconds=ask.seconds)


class _CbcWatch:
    """Passes on what CBC writes into its log, and interrupts it when it is to end."""

    def __init__(self, ask: Ask, goal_scale: float, folder: Path, log: Path) -> None:
        self._ask = ask
        self._scale = goal_scale
        self._folder = folder
        self._log = log
        self._last: tuple[int | None, float | None] = (None, None)

    def __call__(self) -> bool:
        """Whether to look again."""
        value, bound = heard(self._log.read_text(errors="replace") if self._log.exists() else "")
        constant = self._ask.goal.constant
        said = (
            None if value is None else round(value * self._scale) + constant,
            None if bound is None else bound * self._scale + constant,
        )
        if said != self._last:
            self._last = said
            self._ask.report(*said)
        return not (self._ask.cancelled() and interrupt(self._folder))


def _model(ask: Ask, most: float) -> _Model:
    problem = pulp.LpProblem("fleet", pulp.LpMinimize)
    variables = {
        column.key: problem.add_variable(f"x{number}", column.lower, column.upper, pulp.LpInteger)
        for number, column in enumerate(ask.program.columns)
    }
    goal_scale = power_of_two(ask.goal.terms.values(), most)
    # The goal's constant stays here: PuLP 3 does not pass it on, PuLP 4 does.
    problem += _expression(ask.goal.terms, variables, goal_scale)
    for row in ask.program.rows:
        if not row.terms:
            continue  # it holds, or the program was called infeasible before
        scale = power_of_two(row.terms.values(), most)
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
_STOPPED: Final = ("stopped on time", "on user interrupt", "user ctrl-c", "exiting on user event")
_WALL_STEP_S: Final = 0.01
_OBJECTIVE: Final = re.compile(r"^Objective value:\s+(\S+)", re.MULTILINE)


def _read_cbc_log(text: str, *, has_goal: bool, seconds: float) -> _Answer:
    """CBC's own words. "Optimal solution found" without a gap means value and bound are one."""
    lowered = text.lower()
    objective = _OBJECTIVE.search(text)
    took = [float(found) for found in _WALL_TIME.findall(text)]
    # CBC calls a program infeasible when its time is over before the relaxation is solved.
    stopped = any(word in lowered for word in _STOPPED)
    if objective is None and (stopped or (took and took[-1] >= seconds - _WALL_STEP_S)):
        return _Answer(Termination.TIMED_OUT)
    if objective is None:
        return _Answer(Termination.INFEASIBLE if "infeasible" in lowered else Termination.FAILED)
    bounds = [float(found) for found in _LOWER_BOUND.findall(text)]
    optimal = "result - optimal solution found" in lowered
    bound = bounds[-1] if bounds else (float(objective[1]) if optimal else None)
    proven = optimal and not stopped
    if not has_goal:
        return _Answer(Termination.OPTIMAL, float(objective[1]))
    return _Answer(Termination.OPTIMAL if proven else Termination.FEASIBLE, bound)
