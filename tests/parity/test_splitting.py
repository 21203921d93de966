"""Benders decomposition beside HiGHS on services that are routed by length: same optima, bounds below, cuts that hold."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from models.problem import Problem
from models.workload import Routing
from planner.optimization.backends.engine import Ask, Outcome, Termination
from planner.optimization.backends.memory import Memory
from planner.optimization.backends.pulp import PulpHighs
from planner.optimization.backends.splitting import Splitting
from planner.optimization.backends.splitting.engine import Known
from planner.optimization.exact import WholeProgram
from planner.optimization.formulation import Formulation, formulate
from planner.optimization.formulation.goals import cost_goal, power_goal, unserved_load_goal
from planner.optimization.program import Goal, IntegerProgram, Row
from planner.optimization.protocol import SolveOptions
from planner.referee import assess
from tests.benchmarks.one_service import one_service
from tests.random_problems import random_problem

_GAP = 1e-6


def by_length(seeds: range, *, allow_unserved: bool = False) -> Iterator[tuple[int, Problem, Formulation]]:
    """Random problems with a service that is routed by length."""
    for seed in seeds:
        problem = random_problem(seed, allow_unserved=allow_unserved)
        if any(demand.routing is Routing.BY_LENGTH for demand in problem.demands):
            yield seed, problem, formulate(problem)


def ask(program: IntegerProgram, goal: Goal, memory: Memory | None = None) -> Ask:
    return Ask(program, goal, seconds=30.0, gap=_GAP, memory=memory)


def agree(seed: int, ours: Outcome, theirs: Outcome, goal: Goal, program: IntegerProgram) -> bool:
    """Whether there is a plan; fails where the engines differ."""
    assert (ours.values is None) == (theirs.values is None), seed
    if theirs.values is None or ours.values is None:
        assert ours.termination is theirs.termination is Termination.INFEASIBLE, seed
        return False
    best = goal.activity(theirs.values)
    assert not program.broken(ours.values), seed
    assert all(column.lower <= ours.values[column.key] <= column.upper for column in program.columns), seed
    assert ours.bound is not None, seed
    assert ours.bound <= best + 1e-6 * abs(best) + 1e-6, seed
    assert goal.activity(ours.values) == pytest.approx(best, rel=1e-5), seed
    return True


@pytest.mark.parametrize("first", range(0, 800, 200))
def test_costs_are_those_of_highs_and_bounds_are_no_higher(first: int) -> None:
    compared = 0
    for seed, _, formulation in by_length(range(first, first + 200)):
        program, goal = formulation.program, cost_goal(formulation.index)
        theirs = PulpHighs().minimize(ask(program, goal))
        ours = Splitting().minimize(ask(program, goal))
        compared += agree(seed, ours, theirs, goal, program)
    assert compared > 1


def test_every_kept_cut_holds_for_the_plans_of_another_engine_and_a_second_goal_is_as_well_solved_with_them() -> (
    None
):
    cuts = 0
    large = [(number, None, formulate(one_service(60, number, number))) for number in (3, 5)]
    for seed, _, formulation in (*large, *by_length(range(800, 900))):
        program, memory = formulation.program, Memory()
        Splitting().minimize(ask(program, cost_goal(formulation.index), memory))
        goal = power_goal(formulation.index)
        theirs = PulpHighs().minimize(ask(program, goal))
        known = memory.recall(Known)
        if known is not None and theirs.values is not None:
            x = np.array([theirs.values[column.key] for column in known.parts.chosen], dtype=float)
            assert all(cut.missing(x) <= 1e-6 for cut in known.cuts), seed
            cuts += len(known.cuts)
        ours = Splitting().minimize(ask(program, goal, memory))
        agree(seed, ours, theirs, goal, program)
    assert cuts > 4


def test_demand_that_may_stay_unserved_is_shared_out_as_by_highs_once_its_load_is_held() -> None:
    compared = 0
    for seed, problem, formulation in by_length(range(100), allow_unserved=True):
        load = unserved_load_goal(formulation.index, problem.demands, "unserved-load")
        assert Splitting().minimize(ask(formulation.program, load)).values is None or not load.terms
        least = PulpHighs().minimize(ask(formulation.program, load))
        if least.values is None:
            continue
        held = formulation.program.plus(
            rows=[Row(("level", "load"), load.terms, upper=load.activity(least.values))]
        )
        goal = cost_goal(formulation.index)
        theirs, ours = (engine.minimize(ask(held, goal)) for engine in (PulpHighs(), Splitting()))
        compared += agree(seed, ours, theirs, goal, held)
    assert compared > 1


@pytest.mark.parametrize(("buckets", "types", "seed"), [(60, 2, 1), (60, 6, 3)])
def test_one_service_in_many_buckets_costs_what_highs_finds(buckets: int, types: int, seed: int) -> None:
    formulation = formulate(one_service(buckets, types, seed))
    goal = cost_goal(formulation.index)
    theirs = PulpHighs().minimize(ask(formulation.program, goal))
    ours = Splitting().minimize(ask(formulation.program, goal))
    assert agree(seed, ours, theirs, goal, formulation.program)


def test_all_levels_of_a_large_service_are_proven_and_the_plan_keeps_its_promises() -> None:
    problem = one_service(960, 6)
    result = WholeProgram(Splitting(), name="splitting")(problem, SolveOptions(gap=1e-3))
    assert [level.gap is not None and level.gap <= 1e-3 for level in result.solution.proof.levels] == [
        True
    ] * 4
    assert assess(problem, result.solution).violations == ()


def test_who_has_no_time_gets_no_answer_and_who_has_a_plan_keeps_it() -> None:
    formulation = formulate(one_service(60, 4))
    program, goal = formulation.program, cost_goal(formulation.index)
    late = Ask(program, goal, seconds=0.0, gap=_GAP)
    assert Splitting().minimize(late).termination is Termination.TIMED_OUT
    plan = Splitting().minimize(ask(program, goal)).values
    assert plan is not None
    kept = Splitting().minimize(Ask(program, goal, seconds=0.0, gap=_GAP, hint=plan))
    assert (kept.termination, kept.values) == (Termination.FEASIBLE, plan)


def test_who_wants_an_end_gets_what_there_is() -> None:
    formulation = formulate(one_service(60, 4))
    looks = random.Random(3)  # noqa: S311 - moments, not secrets
    asked = Ask(
        formulation.program,
        cost_goal(formulation.index),
        seconds=30.0,
        gap=_GAP,
        cancelled=lambda: looks.random() < 0.5,
    )
    outcome = Splitting().minimize(asked)
    assert outcome.termination in set(Termination) - {Termination.FAILED, Termination.INFEASIBLE}
