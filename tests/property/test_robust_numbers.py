"""At the corners of what may be asked solvers that share no code agree, the referee finds nothing, or the error is clear.

``FLEETPLAN_EXAMPLES=2000`` tries more problems than the usual ones.
"""

from __future__ import annotations

import os
from itertools import combinations, pairwise
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, given, settings

from models.hardware import NodeGrowth, PowerDomain, Quota
from models.problem import Problem
from models.solution import Level, Solution, Status
from planner.errors import ConfigurationError
from planner.optimization import solve
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import cost_goal
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.builders import a_candidate, a_demand, a_pool, a_problem
from tests.corner_problems import corner_problems

EXAMPLES: Final = int(os.environ.get("FLEETPLAN_EXAMPLES", "40"))
ASKED: Final = SolveOptions(time_limit_s=2, gap=1e-6)
CLOSE: Final = 2e-6
many = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def answers(problem: Problem, *solvers: str) -> dict[str, Solution]:
    """By solver; problems that the referee says are too large to judge are set aside: that is the clear error."""
    try:
        found = {name: solve(problem, solver=name, options=ASKED).solution for name in solvers}
        for solution in found.values():
            if solution.has_plan:
                check(problem, solution)
    except ConfigurationError as error:
        assume("at most 100,000" not in str(error))
        raise
    return found


def disagreements(problem: Problem, *solvers: str) -> list[str]:
    """What is wrong with the answers, in words."""
    found = answers(problem, *solvers)
    wrong = [
        f"{name} breaks {violation.text}"
        for name, solution in found.items() if solution.has_plan
        for violation in check(problem, solution)
    ]  # fmt: skip
    wrong += [f"{name} failed" for name, solution in found.items() if solution.status is Status.FAILED]
    plans = [name for name, solution in found.items() if solution.has_plan]
    none = [name for name, solution in found.items() if solution.status is Status.INFEASIBLE]
    if plans and none:
        wrong.append(f"{plans} have a plan, {none} say that there is none")
    for one, other in combinations(plans, 2):
        wrong += differences(found[one].proof.levels, found[other].proof.levels)
    return wrong


def differences(ours: tuple[Level, ...], theirs: tuple[Level, ...]) -> list[str]:
    """The first level in which one is better than the other has proven that there can be."""
    for one, other in zip(ours, theirs, strict=True):
        slack = CLOSE * max(abs(one.value), abs(other.value), 1e-6)
        for level, rival in ((one, other), (other, one)):
            if level.bound is not None and rival.value < level.bound - slack:
                return [f"{level.name}: {rival.value} is there, {level.bound} is called the least"]
        if abs(one.value - other.value) > slack or not (proven(one) and proven(other)):
            break  # what follows is of different plans
    return []


def proven(level: Level) -> bool:
    return level.gap is not None and level.gap <= ASKED.gap


@many
@given(corner_problems())
def test_two_solvers_of_the_whole_program_agree(problem: Problem) -> None:
    assert disagreements(problem, "pulp", "cp-sat") == []


@settings(many, max_examples=max(1, EXAMPLES // 6))
@given(corner_problems(most_services=30))
def test_they_agree_on_many_services(problem: Problem) -> None:
    assert disagreements(problem, "pulp", "cp-sat") == []


@many
@given(corner_problems())
def test_column_generation_agrees_where_costs_fit_64_bits(problem: Problem) -> None:
    formulation = formulate(problem)
    goal = cost_goal(formulation.index)
    reach = sum(value * formulation.program.column[key].upper for key, value in goal.terms.items())
    assume(reach < 2**62)
    assert disagreements(problem, "pulp", "column-generation") == []


@settings(many, max_examples=max(1, EXAMPLES // 2))
@given(corner_problems())
def test_auto_answers(problem: Problem) -> None:
    solution = answers(problem, "auto")["auto"]
    assert solution.status is not Status.FAILED
    assert not solution.has_plan or check(problem, solution) == ()


def one(
    rps: float, *, limits: dict[str, Any] | None = None, pool: dict[str, Any] | None = None, **fields: Any
) -> Problem:
    """One service with one candidate in a pool that grows as far as it must."""
    place = a_pool(
        **({"nodes": 0, "growth": NodeGrowth(gpus_per_node=8), "power_domain": "hall"} | (pool or {}))
    )
    return a_problem([a_demand(rps=rps)], [a_candidate(**fields)], [place], **(limits or {}))


POWER: Final = (PowerDomain(id="hall", cap_w=0.0),)
CASES: Final[dict[str, tuple[Problem, float | None]]] = {
    "a request in 17 minutes": (one(1e-3), 1.0),
    "a million requests a second": (one(1e6, rated_rps=1e3), 1e3),
    "a hundred thousand replicas": (one(1e5), 1e5),
    "a million replicas without nodes": (
        one(1e6, limits={"mode": "unconstrained"}, pool={"growth": None}),
        1e6,
    ),
    "for nothing": (one(3.0, cost=0.0), 0.0),
    "dear": (one(3.0, cost=1e5), 3e5),
    "dear and many": (one(1e5, cost=1e5), 1e10),
    "exact decimals": (one(2.1, rated_rps=0.7, surge_rps=0.7), 3.0),
    "a thousandth too much": (one(2.101, rated_rps=0.7, surge_rps=0.7), 4.0),
    "no money": (one(1.0, limits={"spend_usd_per_h": 0.0}), None),
    "no money and no price": (one(1.0, cost=0.0, limits={"spend_usd_per_h": 0.0}), 0.0),
    "no quota": (one(1.0, limits={"quotas": (Quota(id="q", gpus=0),)}), None),
    "no power": (one(1.0, power_w=1.0, limits={"power": POWER}), None),
    "no power and no draw": (one(1.0, power_w=0.0, limits={"power": POWER}), 1.0),
    "no changes": (one(1.0, limits={"max_changes": 0}), None),
    "no changes needed": (one(1.0, current=1, limits={"max_changes": 0}), 1.0),
    "an empty pool": (one(1.0, pool={"growth": None}), None),
    "no requests": (one(0.0), 0.0),
}


@pytest.mark.parametrize("solver", ["pulp", "pulp-cbc", "cp-sat", "column-generation", "auto"])
@pytest.mark.parametrize("name", CASES)
def test_corners_with_known_answers(name: str, solver: str) -> None:
    problem, cost = CASES[name]
    solution = solve(problem, solver=solver, options=SolveOptions(time_limit_s=30, gap=0)).solution
    assert solution.status is (Status.INFEASIBLE if cost is None else Status.OPTIMAL)
    if cost is not None:
        figures = assess(problem, solution)
        assert figures.violations == ()
        assert figures.cost == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("solver", ["pulp", "cp-sat", "column-generation"])
def test_of_equal_candidates_the_first_by_name_is_used(solver: str) -> None:
    twins = [a_candidate(variant=f"twin{number}") for number in range(4)]
    solution = solve(a_problem([a_demand(rps=7.0)], twins), solver=solver, options=ASKED).solution
    counts = [solution.count(twin.id) for twin in twins]
    assert sum(counts) == 7
    assert all(left >= right for left, right in pairwise(counts))


def test_more_nodes_than_can_be_judged_are_a_clear_error() -> None:
    problem = one(1e6)
    solution = solve(problem, solver="pulp", options=ASKED).solution
    with pytest.raises(ConfigurationError, match="125,000 nodes would be added to pool east"):
        check(problem, solution)
