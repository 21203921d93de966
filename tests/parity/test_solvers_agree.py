"""Solvers that share no code give the same answer, brute force gives it too, and the referee finds nothing.

``FLEETPLAN_SEEDS=2000:2500`` tries other problems than the usual ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from typing import Final

import pytest

from models.problem import Candidate, Problem
from models.solution import Solution, Status
from planner.optimization import solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.random_problems import brute_force, random_problem

FIRST, LAST = (int(side) for side in os.environ.get("FLEETPLAN_SEEDS", "0:500").split(":"))
CHUNK: Final = 25
EXACTLY: Final = SolveOptions(time_limit_s=30, gap=0)
MOST_STATES: Final = 600
"""Problems with more states than this are left to the solvers alone."""
HIGHEST_COUNT: Final = 6

chunks = pytest.mark.parametrize(
    "seeds", [range(start, min(start + CHUNK, LAST)) for start in range(FIRST, LAST, CHUNK)], ids=str
)


def solved(problem: Problem, solver: str) -> Solution:
    return solve(problem, solver=solver, options=EXACTLY).solution


def level_values(solution: Solution) -> list[tuple[str, float]]:
    """By level; unserved load is a sum of fine shares, and later levels use what its tolerance leaves them."""
    return [
        (level.name, pytest.approx(level.value, rel=1.01e-4 if "load" in level.name else 1e-6, abs=1e-6))
        for level in solution.proof.levels
    ]


def disagreements(problem: Problem, solvers: tuple[str, str] = ("pulp", "cp-sat")) -> list[str]:
    """What is wrong with the answers of two exact solvers, in words."""
    first, second = (solved(problem, solver) for solver in solvers)
    found = [
        f"{solution.proof.solver} breaks {violation.text}"
        for solution in (first, second)
        if solution.has_plan
        for violation in check(problem, solution)
    ]
    if first.status is not second.status:
        found.append(f"{solvers[0]} says {first.status}, {solvers[1]} {second.status}")
    elif level_values(first) != level_values(second):
        found.append(f"levels {first.proof.levels} and {second.proof.levels}")
    return found


def states(problem: Problem) -> int:
    """States that brute force would try."""
    counts = prod(
        HIGHEST_COUNT + 1 if c.max_replicas is None else min(HIGHEST_COUNT, c.max_replicas) + 1
        for c in problem.candidates
    )
    return counts * prod((pool.growth.max_nodes or 0) + 1 for pool in problem.pools if pool.growth)


@chunks
def test_solvers_agree_where_all_is_promised(seeds: Sequence[int]) -> None:
    assert {seed: found for seed in seeds if (found := disagreements(random_problem(seed)))} == {}


@chunks
def test_a_third_solver_agrees(seeds: Sequence[int]) -> None:
    problems = {seed: random_problem(seed, allow_unserved=seed % 2 == 0) for seed in seeds[::5]}
    assert {
        seed: found for seed, one in problems.items() if (found := disagreements(one, ("scip", "pulp")))
    } == {}


@chunks
def test_solvers_agree_under_scarcity(seeds: Sequence[int]) -> None:
    problems = {seed: random_problem(seed, allow_unserved=True) for seed in seeds[::5]}
    assert {seed: found for seed, problem in problems.items() if (found := disagreements(problem))} == {}


@chunks
def test_brute_force_finds_nothing_better(seeds: Sequence[int]) -> None:
    wrong = {}
    for seed in seeds:
        problem = random_problem(seed)
        if states(problem) <= MOST_STATES and (found := beaten(problem)):
            wrong[seed] = found
    assert wrong == {}


def beaten(problem: Problem) -> str:
    """How brute force and pulp differ; empty where they do not."""
    best, solution = best_figures(problem), solved(problem, "pulp")
    if not solution.has_plan:
        grid = on_a_grid(problem)
        agreed = best is None or (grid is not None and best_figures(grid) is None)
        return "" if agreed and solution.status is Status.INFEASIBLE else f"{best}, pulp {solution.status}"
    figures = assess(problem, solution)
    mine = (figures.cost, figures.power_w or 0.0, float(figures.changes))
    if best is None or worse(best, mine):
        return f"{best}, pulp {mine} is better"
    if worse(mine, best) and not (
        (grid := on_a_grid(problem)) and ((other := best_figures(grid)) is None or not worse(mine, other))
    ):
        return f"{best}, pulp {mine} is worse"
    return ""


def best_figures(problem: Problem) -> tuple[float, ...] | None:
    """Cost, power and changes of the best plan; None without one."""
    return brute_force(problem, most=HIGHEST_COUNT)


def worse(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether the first figure that differs by more than levels are held to is larger."""
    for one, other in zip(first, second, strict=True):
        if abs(one - other) > 1.5e-4 * max(1.0, abs(one)):
            return one > other
    return False


def on_a_grid(problem: Problem) -> Problem | None:
    """The problem with a little less capacity by bucket, as much as shares on a grid may lose; None: there is none."""
    if not any(candidate.by_bucket for candidate in problem.candidates):
        return None
    return problem.but(candidates=tuple(less(candidate) for candidate in problem.candidates))


def less(candidate: Candidate) -> Candidate:
    ratings = {
        name: r.but(rated_rps=r.rated_rps * 0.999, surge_rps=r.surge_rps * 0.999)
        for name, r in candidate.by_bucket.items()
    }
    return candidate.but(by_bucket=ratings)


def test_brute_force_is_asked_often_enough_to_mean_something() -> None:
    asked = [seed for seed in range(100) if states(random_problem(seed)) <= MOST_STATES]
    assert len(asked) >= 25
