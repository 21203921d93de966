"""One engine, level by level: which status a descent ends with, and what is proven beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest

from models.problem import Problem
from models.scenario import Objective
from models.solution import Solution, Status
from planner.clock import FakeClock
from planner.optimization.backends.engine import Termination
from planner.optimization.exact import WholeProgram
from planner.optimization.formulation import formulate
from planner.optimization.program import Key
from planner.optimization.protocol import SolveOptions
from planner.optimization.rescue import rescued
from planner.referee import check
from tests.builders import a_candidate, a_demand, a_pool, a_problem
from tests.engines import Enumerating, Said, Scripted

OPTIMAL, FEASIBLE, INFEASIBLE, TIMED_OUT, FAILED = Termination
TWO: Final = a_problem([a_demand(rps=2.0)], [a_candidate(cost=1.5, power_w=400.0, current=1)])


def at(count: int) -> Mapping[Key, int]:
    """Values of all columns of the small problem at so many replicas."""
    values = {column.key: column.lower for column in formulate(TWO).program.columns}
    return values | {("n", "chat/small@east"): count}


def answered(*said: Said, problem: Problem = TWO, **fields: Any) -> Solution:
    clock = FakeClock()
    fields = {"rescue": lambda _, solution, __: solution} | fields
    solver = WholeProgram(Scripted(clock, list(said)), name="test", clock=clock, **fields)
    return solver(problem, SolveOptions(time_limit_s=10.0, gap=0.0)).solution


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ([Said(INFEASIBLE)], Status.INFEASIBLE),
        ([Said(TIMED_OUT)], Status.TIMED_OUT),
        ([Said(FAILED)], Status.FAILED),
        ([Said(OPTIMAL, at(2), 3e6), Said(OPTIMAL, at(2), 8e5), Said(OPTIMAL, at(2), 1)], Status.OPTIMAL),
        ([Said(OPTIMAL, at(2), 3e6), Said(OPTIMAL, at(2), 8e5), Said(TIMED_OUT)], Status.FEASIBLE),
        ([Said(OPTIMAL, at(2), 3e6), Said(FAILED), Said(OPTIMAL, at(2), 1)], Status.FEASIBLE),
        ([Said(FEASIBLE, at(3), 3e6), Said(OPTIMAL, at(3), 1.2e6), Said(OPTIMAL, at(3), 2)], Status.FEASIBLE),
        ([Said(FEASIBLE, at(2), 3e6), Said(FEASIBLE, at(2), 8e5), Said(FEASIBLE, at(2), 1)], Status.OPTIMAL),
        ([Said(OPTIMAL, at(2), 3e6, takes_s=11.0)], Status.FEASIBLE),
    ],
    ids=["infeasible", "no time", "failed", "optimal", "last level cut", "a level failed", "first level cut",
         "bounds meet values", "time is up after the first level"],
)  # fmt: skip
def test_the_status_is_that_of_the_weakest_level(said: list[Said], status: Status) -> None:
    solution = answered(*said)
    assert solution.status is status
    assert solution.derived_from == TWO.fingerprint
    assert solution.proof.solver == "test"
    assert bool(solution.counts) is solution.has_plan


def test_every_level_is_told_with_its_value_also_when_time_was_up() -> None:
    levels = answered(Said(OPTIMAL, at(2), 3e6, takes_s=11.0)).proof.levels
    assert [(level.name, level.value, level.bound) for level in levels] == [
        ("unserved", 0.0, 0.0),
        ("cost", 3.0, 3.0),
        ("power", 800.0, None),
        ("changes", 1.0, None),
    ]


def test_levels_are_solved_in_the_order_that_is_asked_for() -> None:
    engine = Enumerating()
    problem = TWO.but(objective=Objective(levels=("changes", "cost")))
    solution = WholeProgram(engine, name="test")(problem, SolveOptions()).solution
    assert [level.name for level in solution.proof.levels] == ["changes", "cost"]
    assert [ask.goal.name for ask in engine.asks] == ["changes", "cost"]
    assert solution.counts == {"chat/small@east": 2}


def test_the_hint_is_where_the_first_ask_starts() -> None:
    clock = FakeClock()
    engine = Scripted(clock, [Said(INFEASIBLE)])
    solver = WholeProgram(engine, name="test", hint=lambda _: {"chat/small@east": 7}, clock=clock)  # type: ignore[dict-item]
    solver(TWO, SolveOptions())
    assert engine.asks[0].hint == {("n", "chat/small@east"): 7}


def test_times_are_beside_the_solution_and_not_in_it() -> None:
    clock = FakeClock()
    said = [Said(OPTIMAL, at(2), 3e6, 2.0), Said(OPTIMAL, at(2), 8e5, 1.0), Said(OPTIMAL, at(2), 1, 0.5)]
    result = WholeProgram(Scripted(clock, said), name="test", clock=clock)(TWO, SolveOptions())
    assert (result.formulate_s, result.solve_s) == (0.0, 3.5)
    assert "3.5" not in result.solution.canonical_json()


@pytest.mark.parametrize("said", [INFEASIBLE, TIMED_OUT, FAILED])
def test_a_plan_in_hand_outweighs_a_solver_without_one(said: Termination) -> None:
    solution = answered(Said(said), rescue=rescued)
    assert solution.status is Status.FEASIBLE
    assert check(TWO, solution) == ()
    assert all(level.bound is None for level in solution.proof.levels)
    assert "greedy plan" in solution.proof.notes[-1]


def test_a_word_that_greedy_cannot_refute_stands() -> None:
    problem = a_problem(pools=(a_pool(nodes=0),))
    assert answered(Said(INFEASIBLE), problem=problem, rescue=rescued).status is Status.INFEASIBLE
