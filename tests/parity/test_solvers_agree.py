"""Solvers that share no code give the same answer, brute force gives it too, and the referee finds nothing.

``FLEETPLAN_SEEDS=2000:2500`` tries other problems than the usual ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from typing import Final

import pytest

from models.problem import Problem
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
    return [(level.name, pytest.approx(level.value, rel=1e-6, abs=1e-6)) for level in solution.proof.levels]


def disagreements(problem: Problem) -> list[str]:
    """What is wrong with the answers of the exact solvers, in words."""
    first, second = solved(problem, "pulp"), solved(problem, "cp-sat")
    found = [
        f"{solution.proof.solver} breaks {violation.text}"
        for solution in (first, second)
        if solution.has_plan
        for violation in check(problem, solution)
    ]
    if first.status is not second.status:
        found.append(f"pulp says {first.status}, cp-sat {second.status}")
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
def test_solvers_agree_under_scarcity(seeds: Sequence[int]) -> None:
    problems = {seed: random_problem(seed, allow_unserved=True) for seed in seeds[::5]}
    assert {seed: found for seed, problem in problems.items() if (found := disagreements(problem))} == {}


@chunks
def test_brute_force_finds_nothing_better(seeds: Sequence[int]) -> None:
    wrong = {}
    for seed in seeds:
        problem = random_problem(seed)
        if states(problem) > MOST_STATES:
            continue
        best, solution = brute_force(problem, most=HIGHEST_COUNT), solved(problem, "pulp")
        if best is None or not solution.has_plan:
            if not (best is None and solution.status is Status.INFEASIBLE):
                wrong[seed] = f"brute force {best}, pulp {solution.status}"
            continue
        figures = assess(problem, solution)
        mine = (figures.cost, figures.power_w or 0.0, figures.changes)
        if mine[0] > best[0] * (1 + 1e-6) + 1e-6 or (
            mine[0] == pytest.approx(best[0]) and mine > best_of(best)
        ):
            wrong[seed] = f"brute force {best}, pulp {mine}"
    assert wrong == {}


def best_of(best: tuple[float, float, int]) -> tuple[float, float, float]:
    """The best values with room for the rounding of sums."""
    return (best[0] + 1e-6, best[1] + 1e-4, best[2])


def test_brute_force_is_asked_often_enough_to_mean_something() -> None:
    asked = [seed for seed in range(100) if states(random_problem(seed)) <= MOST_STATES]
    assert len(asked) >= 25
