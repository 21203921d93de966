"""A warm start changes how fast an answer is found, never how good it is: whatever changed in between."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from operator import is_

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from models.hardware import NodeGrowth, PowerDomain, Quota
from models.problem import Candidate, Demand, PoolState, Problem
from models.scenario import Objective, ObjectiveLevel
from planner.optimization import solve
from planner.optimization.backends.column_generation.preparation import prepared
from planner.optimization.backends.column_generation.recollection import Recollection
from planner.optimization.formulation import formulate
from planner.optimization.protocol import SolveOptions, SolveResult
from planner.optimization.warm import WarmStart, recognized
from planner.referee import assess
from tests.builders import a_candidate, a_demand, a_pool, a_problem
from tests.random_problems import random_problem

GAP = 1e-3
POOLS = ("east", "west", "north")
OPTIONS = SolveOptions(gap=GAP, time_limit_s=10.0)

Change = Callable[[Problem, random.Random], Problem]


def a_fleet(rng: random.Random, services: int = 8) -> Problem:
    demands, candidates = [], []
    for number in range(services):
        demand, offers = a_service(rng, f"service-{number}")
        demands.append(demand)
        candidates += offers
    return a_problem(
        demands,
        candidates,
        [a_pool(pool, 8, power_domain="hall") for pool in POOLS],
        power=(PowerDomain(id="hall", cap_w=90_000.0),),
        quotas=(Quota(id="all", gpus=170),),
    )


def a_service(rng: random.Random, name: str) -> tuple[Demand, list[Candidate]]:
    base = rng.uniform(1, 4)
    offers = [
        a_candidate(
            name,
            f"tp{pods}",
            pool,
            gpus_per_pod=pods,
            rated_rps=round(base * rng.uniform(0.8, 1.2) * pods**0.9, 2),
            cost=round(pods * rng.uniform(1, 4), 2),
            power_w=500.0 * pods,
            startup_cost=rng.choice((0.0, 0.5)),
            current=rng.choice((0, 0, 1, 2)),
        )
        for pods in (1, 2, 4)
        for pool in POOLS
    ]
    return a_demand(name, rps=round(rng.uniform(1, 25), 1)), offers


def changed(
    problem: Problem,
    *,
    demands: Iterable[Demand] | None = None,
    candidates: Iterable[Candidate] | None = None,
    pools: Sequence[PoolState] | None = None,
    **fields: object,
) -> Problem:
    """The problem with some parts replaced, sorted and validated as any other."""
    return Problem.model_validate(
        {name: getattr(problem, name) for name in Problem.model_fields}
        | {
            "demands": tuple(sorted(demands or problem.demands, key=lambda d: d.service)),
            "candidates": tuple(sorted(candidates or problem.candidates, key=lambda c: c.id)),
            "pools": tuple(pools or problem.pools),
        }
        | fields
    )


def demands_move(problem: Problem, rng: random.Random) -> Problem:
    def moved(demand: Demand) -> Demand:
        factor = rng.uniform(0.9, 1.1)
        buckets = tuple(b.but(arrival_rps=round(b.arrival_rps * factor, 2)) for b in demand.buckets)
        return demand.but(buckets=buckets)

    return changed(problem, demands=[moved(demand) for demand in problem.demands])


def prices_move(problem: Problem, rng: random.Random) -> Problem:
    return changed(
        problem,
        candidates=[c.but(cost=round(c.cost * rng.uniform(0.7, 1.4), 2)) for c in problem.candidates],
    )


def a_service_goes(problem: Problem, rng: random.Random) -> Problem:
    gone = rng.choice(problem.demands).service
    return changed(
        problem,
        demands=[d for d in problem.demands if d.service != gone],
        candidates=[c for c in problem.candidates if c.service != gone],
    )


def a_service_comes(problem: Problem, rng: random.Random) -> Problem:
    demand, offers = a_service(rng, f"new-{rng.randrange(1000)}")
    return changed(problem, demands=[*problem.demands, demand], candidates=[*problem.candidates, *offers])


def a_pool_shrinks(problem: Problem, rng: random.Random) -> Problem:
    chosen = rng.choice(POOLS)
    return changed(problem, pools=[a_pool(p, 4 if p == chosen else 9, power_domain="hall") for p in POOLS])


def a_pool_grows_by_nodes(problem: Problem, rng: random.Random) -> Problem:
    growth = NodeGrowth(gpus_per_node=8, max_nodes=4, usd_per_node_h=rng.uniform(1, 8))
    return changed(problem, pools=[a_pool(p, 5, power_domain="hall", growth=growth) for p in POOLS])


def replicas_run(problem: Problem, rng: random.Random) -> Problem:
    return changed(problem, candidates=[c.but(current=rng.choice((0, 0, 1, 3))) for c in problem.candidates])


def power_comes_first(problem: Problem, _: random.Random) -> Problem:
    levels = (ObjectiveLevel.UNSERVED, ObjectiveLevel.POWER, ObjectiveLevel.COST)
    return changed(problem, objective=Objective(levels=levels))


def demand_is_no_promise(problem: Problem, _: random.Random) -> Problem:
    return changed(problem, allow_unserved=True, quotas=(Quota(id="all", gpus=60),))


def nothing_changes(problem: Problem, _: random.Random) -> Problem:
    return changed(problem)


CHANGES: dict[str, Change] = {
    change.__name__: change
    for change in (
        demands_move,
        prices_move,
        a_service_goes,
        a_service_comes,
        a_pool_shrinks,
        a_pool_grows_by_nodes,
        replicas_run,
        power_comes_first,
        demand_is_no_promise,
        nothing_changes,
    )
}


def column_generation(problem: Problem, warm: WarmStart | None = None) -> SolveResult:
    return solve(problem, solver="column-generation", options=replace(OPTIONS, warm=warm))


def holds_and_agrees(problem: Problem, warm: SolveResult, cold: SolveResult) -> None:
    """Both plans hold; on the first level that differs by more than both gaps explain, the bounds would contradict."""
    # Whether the last tie is proven may be a matter of time, whether there is a plan is not.
    assert warm.solution.has_plan is cold.solution.has_plan
    if not cold.solution.has_plan:
        assert warm.solution.status is cold.solution.status
        return
    assert assess(problem, warm.solution).violations == ()
    assert [level.name for level in warm.solution.proof.levels] == [
        level.name for level in cold.solution.proof.levels
    ]
    for one, other in zip(warm.solution.proof.levels, cold.solution.proof.levels, strict=True):
        assert one.bound is not None
        assert other.bound is not None
        # Later levels depend on where earlier ones were held, so only the first level in play is compared.
        if one.value or other.value:
            assert one.bound <= other.value * (1 + 1e-9)
            assert other.bound <= one.value * (1 + 1e-9)
            if not problem.allow_unserved:
                assert max(one.gap or 0.0, other.gap or 0.0) <= GAP
            return


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("seed", range(2))
def test_warm_and_cold_agree_after_a_change(name: str, seed: int) -> None:
    rng = random.Random(f"{name}/{seed}")  # noqa: S311 - instances, not secrets
    before = a_fleet(rng)
    after = CHANGES[name](before, rng)
    warm = column_generation(after, column_generation(before).warm)
    holds_and_agrees(after, warm, column_generation(after))


def test_a_chain_of_warm_starts_stays_as_good_and_as_small() -> None:
    rng = random.Random(7)  # noqa: S311 - instances, not secrets
    problem = a_fleet(rng, services=5)
    result = column_generation(problem)
    for change in (demands_move, a_service_comes, a_pool_shrinks, prices_move, a_service_goes, replicas_run):
        problem = change(problem, rng)
        result = column_generation(problem, result.warm)
        holds_and_agrees(problem, result, column_generation(problem))
        assert result.warm is not None
        assert result.warm.formulation.index.problem == problem
        kept = result.warm.memory.recall(Recollection)
        assert kept is not None
        assert set(kept.levels) <= {level.name for level in result.solution.proof.levels}
        assert kept.aged().aged().before == {}, "what a descent has not used is forgotten"


@pytest.mark.parametrize("solver", ["auto", "cp-sat", "pulp"])
def test_any_solver_takes_the_warm_start_of_any_other(solver: str) -> None:
    rng = random.Random(3)  # noqa: S311 - instances, not secrets
    before = a_fleet(rng, services=3)
    after = a_service_comes(demands_move(before, rng), rng)
    options = replace(OPTIONS, warm=column_generation(before).warm)
    warm = solve(after, solver=solver, options=options)
    holds_and_agrees(after, warm, column_generation(after, warm.warm))


def test_the_door_hands_warm_starts_on() -> None:
    rng = random.Random(11)  # noqa: S311 - instances, not secrets
    before = a_fleet(rng, services=3)
    after = demands_move(before, rng)
    first = planner.solve_again(before, solver="column-generation", options=OPTIONS)
    again = planner.solve_again(after, first.warm, solver="column-generation", options=OPTIONS)
    holds_and_agrees(after, again, column_generation(after))
    assert again.warm is not None
    assert again.warm is not first.warm


def test_a_warm_start_can_be_used_twice() -> None:
    rng = random.Random(5)  # noqa: S311 - instances, not secrets
    before = a_fleet(rng, services=4)
    start = column_generation(before).warm
    after = demands_move(before, rng)
    first, second = column_generation(after, start), column_generation(after, start)
    assert first.solution == second.solution


def a_little_later(problem: Problem, rng: random.Random) -> Problem:
    """A random problem after one of the changes that happen to any of them."""

    def moved(demand: Demand) -> Demand:
        buckets = tuple(
            b.but(arrival_rps=round(b.arrival_rps * rng.uniform(0.8, 1.2), 3)) for b in demand.buckets
        )
        return demand.but(buckets=buckets)

    demands, candidates = problem.demands, problem.candidates
    kind = rng.randrange(5)
    if kind in (0, 1):
        demands = tuple(map(moved, demands))
    if kind in (1, 2):
        dearer = rng.randrange(len(candidates))
        candidates = tuple(
            c.but(cost=c.cost * 1.5 + 0.1) if i == dearer else c for i, c in enumerate(candidates)
        )
    quotas = (Quota(id="later", gpus=rng.randint(4, 20)),) if kind == 3 else problem.quotas
    pools = tuple(map(_fuller, problem.pools)) if kind == 4 else problem.pools
    return problem.but(demands=demands, candidates=candidates, quotas=quotas, pools=pools)


def _fuller(pool: PoolState) -> PoolState:
    return pool.but(nodes=tuple(node.but(free_gpus=node.free_gpus // 2) for node in pool.nodes))


@given(st.integers(0, 10_000))
@settings(max_examples=150, deadline=None)
def test_what_is_taken_over_from_the_last_program_makes_the_program_of_now(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    before = random_problem(seed)
    after = a_little_later(before, rng)
    taken_over = formulate(after, before=formulate(before)).program
    assert taken_over == formulate(after).program
    old, now = prepared(formulate(before).program), prepared(taken_over)
    again = prepared(taken_over, old)
    assert again.shape == now.shape
    for one, other in ((again.rows, now.rows), (again.ties, now.ties)):
        assert np.array_equal(one.lower, other.lower)
        assert np.array_equal(one.upper, other.upper)
        for mine, its in zip(one.terms, other.terms, strict=True):
            assert np.array_equal(mine, its)
    assert list(again.ties.position) == list(now.ties.position)


@given(st.integers(0, 10_000))
@settings(max_examples=12, deadline=None)
def test_warm_and_cold_agree_on_problems_of_every_kind(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    before = random_problem(seed, objective=Objective(tolerance=0))
    after = a_little_later(before, rng)
    holds_and_agrees(
        after, column_generation(after, column_generation(before).warm), column_generation(after)
    )


def test_values_made_anew_are_recognized() -> None:
    rng = random.Random(13)  # noqa: S311 - instances, not secrets
    before = a_fleet(rng, services=3)
    later = prices_move(before, rng).candidates[0]
    anew = Problem.model_validate_json(before.model_dump_json())
    changed = anew.but(candidates=(later, *anew.candidates[1:]))
    seen = recognized(changed, before)
    assert (seen, seen.fingerprint) == (changed, changed.fingerprint)
    assert seen.candidates[0] is later
    assert all(map(is_, seen.candidates[1:], before.candidates[1:]))
    assert recognized(before, before) is before
