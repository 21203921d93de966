"""Exported programs, solved by solvers from files: the same optimum, and their solution files are plans that hold."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

import highspy
import pytest
from ortools.linear_solver import pywraplp

from models.problem import Problem
from models.scenario import ObjectiveLevel
from models.solution import Status
from planner.importers import read_solver_solution
from planner.optimization import solve
from planner.optimization.backends.greeting import let_highs_greet
from planner.optimization.backends.pulp import _cbc
from planner.optimization.exporting import level_program, solution_from
from planner.optimization.lp_text import column_names, lp_text
from planner.optimization.mps_text import mps_text
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.random_problems import random_problem

EXACTLY: Final = SolveOptions(time_limit_s=30, gap=0)
SEEDS: Final = range(300)
WRITERS: Final = {"lp": lp_text, "mps": mps_text}

Solver = Callable[[Path, Path], None]
"""Reads a program from a file, writes a solution file; none where there is no solution."""


def highs(program: Path, solution: Path) -> None:
    let_highs_greet()
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("presolve", "off")
    assert model.readModel(str(program)) != highspy.HighsStatus.kError
    model.run()
    if model.getInfo().primal_solution_status == 2:
        model.writeSolution(str(solution), 0)


def cbc(program: Path, solution: Path) -> None:
    command = [_cbc(), str(program), "ratioGap", "0", "allowableGap", "0", "solve", "solution", str(solution)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Bad image" not in done.stdout
    if solution.exists() and "infeasible" in solution.read_text(encoding="utf-8").splitlines()[0].lower():
        solution.unlink()


def feasible_problems() -> dict[int, tuple[Problem, float]]:
    """Problems with their least cost."""
    found = {}
    for seed in SEEDS:
        problem = random_problem(seed)
        solution = solve(problem, solver="pulp", options=EXACTLY).solution
        if solution.status is Status.OPTIMAL:
            found[seed] = (problem, assess(problem, solution).cost)
    return found


FEASIBLE: Final = feasible_problems()


@pytest.mark.parametrize("solver", [highs, cbc])
@pytest.mark.parametrize("format_", WRITERS)
def test_another_solver_finds_the_optimum_and_the_referee_agrees(
    solver: Solver, format_: str, tmp_path: Path
) -> None:
    wrong = {}
    for seed, (problem, cost) in FEASIBLE.items():
        exported = level_program(problem, ObjectiveLevel.COST, options=EXACTLY)
        program, file = tmp_path / f"{seed}.{format_}", tmp_path / f"{seed}-{format_}.sol"
        program.write_text(WRITERS[format_](exported.program, exported.goal), encoding="utf-8")
        solver(program, file)
        solution = solution_from(problem, read_solver_solution(file.read_text("utf-8"), file="x"), file="x")
        figures = assess(problem, solution)
        if figures.violations or figures.cost != pytest.approx(cost, rel=1e-6):
            wrong[seed] = (figures.cost, cost, figures.violations)
    assert wrong == {}


def test_there_are_enough_problems_to_mean_something() -> None:
    assert len(FEASIBLE) >= 30


def test_scip_reads_the_mps_and_its_own_format_is_read_back() -> None:
    problem, cost = next(iter(FEASIBLE.values()))
    exported = level_program(problem, ObjectiveLevel.COST, options=EXACTLY)
    model = pywraplp.Solver.CreateSolver("SCIP")
    names = column_names(exported.program)
    columns = {c.key: model.IntVar(c.lower, c.upper, names[c.key]) for c in exported.program.columns}
    for row in exported.program.rows:
        lower = -model.infinity() if row.lower is None else row.lower
        upper = model.infinity() if row.upper is None else row.upper
        model.Add(sum(value * columns[key] for key, value in row.terms.items()) <= upper)
        model.Add(sum(value * columns[key] for key, value in row.terms.items()) >= lower)
    model.Minimize(sum(value * columns[key] for key, value in exported.goal.terms.items()))
    assert model.Solve() == pywraplp.Solver.OPTIMAL
    lines = [
        f"{names[key]}  {column.solution_value()} \t(obj:1)"
        for key, column in columns.items()
        if column.solution_value()
    ]
    text = "\n".join(["solution status: optimal solution found", "objective value:   1", *lines])
    solution = solution_from(problem, read_solver_solution(text, file="x"), file="x")
    assert check(problem, solution) == ()
    assert assess(problem, solution).cost == pytest.approx(cost)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_later_levels_hold_the_earlier_ones(seed: int, tmp_path: Path) -> None:
    problem = random_problem(seed, allow_unserved=True)
    best = solve(problem, solver="pulp", options=EXACTLY).solution
    exported = level_program(problem, ObjectiveLevel.POWER, options=EXACTLY)
    program, file = tmp_path / "p.mps", tmp_path / "p.sol"
    program.write_text(mps_text(exported.program, exported.goal), encoding="utf-8")
    highs(program, file)
    if not best.has_plan:
        assert not file.exists()
        assert not exported.held
        return
    solution = solution_from(problem, read_solver_solution(file.read_text("utf-8"), file="x"), file="x")
    found, wanted = assess(problem, solution), assess(problem, best)
    assert found.violations == ()
    # Held within the tolerance of 1/10,000: later levels use what that leaves them.
    assert found.unserved_rps == pytest.approx(wanted.unserved_rps, rel=1.01e-4, abs=1e-6)
    assert found.cost <= wanted.cost * (1 + 2e-4) + 1e-9
    assert (found.power_w or 0.0) <= (wanted.power_w or 0.0) * (1 + 1e-6)
