"""At most so many variants per service: brute force, two whole programs and column generation agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pytest

from models.problem import Problem
from models.solution import Solution, Status
from planner.optimization import solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.builders import a_candidate, a_demand, a_pool, a_problem
from tests.random_problems import brute_force, random_problem

EXACTLY: Final = SolveOptions(time_limit_s=30, gap=0)
MOST_STATES: Final = 600
HIGHEST_COUNT: Final = 6


def with_one_variant(seed: int, **fields: Any) -> Problem:
    problem = random_problem(seed, **fields)
    return problem.but(demands=tuple(demand.but(max_variants=1) for demand in problem.demands))


def solved(problem: Problem, solver: str) -> Solution:
    return solve(problem, solver=solver, options=EXACTLY).solution


def states(problem: Problem) -> int:
    added = (pool.growth.max_nodes or 0 for pool in problem.pools if pool.growth)
    return math.prod((HIGHEST_COUNT + 1) for _ in problem.candidates) * math.prod(most + 1 for most in added)


@pytest.mark.parametrize("seeds", [range(first, first + 12) for first in (0, 12, 24)], ids=str)
def test_solvers_agree(seeds: Sequence[int]) -> None:
    for seed in seeds:
        problem = with_one_variant(seed)
        answers = [solved(problem, name) for name in ("pulp", "cp-sat", "column-generation")]
        assert len({answer.status for answer in answers}) == 1, seed
        for answer in answers:
            assert check(problem, answer) == (), seed
            for level, other in zip(answer.proof.levels, answers[0].proof.levels, strict=True):
                assert level.value == pytest.approx(other.value, rel=2e-4, abs=1e-6), (seed, level.name)


@pytest.mark.parametrize("solver", ["pulp", "cp-sat", "column-generation"])
def test_under_scarcity_the_rule_is_kept_too(solver: str) -> None:
    for seed in range(8):
        problem = with_one_variant(seed, allow_unserved=True)
        answer = solved(problem, solver)
        assert check(problem, answer) == (), seed


@pytest.mark.parametrize("seeds", [range(first, first + 40) for first in (0, 40, 80)], ids=str)
def test_brute_force_finds_nothing_better(seeds: Sequence[int]) -> None:
    tried = 0
    for seed in seeds:
        problem = with_one_variant(seed)
        if states(problem) > MOST_STATES or any(candidate.by_bucket for candidate in problem.candidates):
            continue
        tried += 1
        best, answer = brute_force(problem, most=HIGHEST_COUNT), solved(problem, "pulp")
        if best is None:
            assert answer.status is Status.INFEASIBLE, seed
        else:
            assert assess(problem, answer).cost == pytest.approx(best[0], rel=2e-4, abs=1e-6), seed
    assert tried


@pytest.mark.parametrize("solver", ["pulp", "cp-sat", "column-generation", "auto"])
def test_a_mix_is_cheaper_and_one_variant_is_kept_where_it_is_asked_for(solver: str) -> None:
    """12 req/s: one large and one small replica would do (10 + 2), one variant alone needs two large or six small."""
    small = a_candidate(rated_rps=2.0, cost=1.1)
    large = a_candidate(variant="large", rated_rps=10.0, cost=5.0, gpus_per_pod=4)
    mixed = a_problem([a_demand(rps=12.0)], [small, large], [a_pool()])
    alone = mixed.but(demands=(a_demand(rps=12.0, max_variants=1),))
    assert solved(mixed, solver).counts == {"chat/large@east": 1, "chat/small@east": 1}
    assert solved(alone, solver).counts == {"chat/small@east": 6}


def test_one_variant_may_be_in_several_pools_and_each_role_has_its_own() -> None:
    pools = [a_pool("east", nodes=1, gpus=2), a_pool("west", nodes=1, gpus=2)]
    parts = [
        a_candidate(variant=f"{role}-{size}", role=role, pool=pool, rated_rps=rps, cost=cost)
        for pool in ("east", "west")
        for role in ("prefill", "decode")
        for size, rps, cost in (("a", 1.0, 1.0), ("b", 2.0, 3.0))
    ]
    problem = a_problem([a_demand(rps=2.0, max_variants=1)], parts, pools)
    answer = solved(problem, "pulp")
    running = {problem.candidate[name].variant for name in answer.counts}
    assert running == {"prefill-a", "decode-a"}
    assert {problem.candidate[name].pool for name in answer.counts} == {"east", "west"}


def test_the_canonical_form_does_not_swap_variants_that_are_counted() -> None:
    twins = [a_candidate(variant=name, pool=pool) for name in ("a", "b") for pool in ("east", "west")]
    pools = [a_pool("east", nodes=1, gpus=3), a_pool("west", nodes=1, gpus=3)]
    problem = a_problem([a_demand(rps=5.0, max_variants=1)], twins, pools)
    for solver in ("pulp", "cp-sat"):
        assert check(problem, solved(problem, solver)) == ()
