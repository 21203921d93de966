"""Every state of a plan is judged, by an account of states that shares nothing with the planner's; waves by brute force."""

from __future__ import annotations

from collections import Counter

import pytest

from models.plan import Plan, StepKind, WaveLimits
from models.problem import Problem
from models.solution import Solution
from planner.optimization.protocol import SolveOptions
from planner.optimization.solvers import pulp_highs
from planner.rollout import reverse, roll_out
from planner.rollout.slack import with_slack
from tests.random_moves import random_limits, random_move
from tests.random_problems import random_problem
from tests.rollout_states import Rules, counts_after, fewest_waves, states_of


def solved(seed: int) -> tuple[Problem, Solution]:
    """A random problem with what HiGHS makes of it."""
    problem = random_problem(seed, allow_unserved=True)
    return problem, pulp_highs()(problem, SolveOptions(time_limit_s=20)).solution


def assert_sound(problem: Problem, solution: Solution, plan: Plan) -> None:
    """No state is worse than both ends, nodes hold what is said to be on them, and the end is the solution."""
    rules = Rules(problem, solution)
    assert [broken for state in states_of(rules, plan) for broken in rules.broken(*state)] == []
    assert_room_on_nodes(problem, plan)
    counts = counts_after(problem, plan)
    if plan.stuck is None:
        assert counts == {candidate: n for candidate, n in solution.counts.items() if n}


def assert_room_on_nodes(problem: Problem, plan: Plan) -> None:
    """Pods start where there is room beside all that have not gone, and drain where pods of their kind are."""
    free = {node.id: node.free_gpus for pool in problem.pools for node in pool.nodes if node.holds_pods}
    pods: Counter[tuple[str, str]] = Counter()
    for one in problem.incumbents:
        for node in one.nodes:
            pods[one.candidate, node] += one.count
            free[node] -= one.count * problem.candidate[one.candidate].gpus_per_pod
    grown: Counter[str] = Counter()
    for wave in plan.waves:
        for step in wave.steps:
            size = problem.candidate[step.candidate].gpus_per_pod if step.candidate is not None else 0
            for node in step.nodes:
                key = (str(step.candidate), node)
                if step.kind in (StepKind.START, StepKind.AWAIT):
                    free[node] -= size
                    pods[key] += 1
                    assert free[node] >= 0
                elif step.kind is StepKind.REMOVE:
                    assert pods[key] > 0
                    pods[key] -= 1
                    free[node] += size
        for step in (step for step in wave.steps if step.kind is StepKind.ADD_NODES):
            growth = problem.pool[step.pool].growth
            assert growth is not None
            for _ in range(step.count):
                free[f"{step.pool}+{grown[step.pool]}"] = growth.gpus_per_node  # type: ignore[index]
                grown[step.pool] += 1


def assert_fewest(problem: Problem, solution: Solution, plan: Plan) -> None:
    """Never fewer waves than brute force finds over counts, and exactly as many where that is claimed."""
    fewest = fewest_waves(Rules(problem, solution), solution)
    if fewest is None:
        return
    if plan.stuck is not None:
        assert fewest == -1 or not plan.stuck.proven
    else:
        assert 0 <= fewest <= len(plan.waves)
        assert len(plan.waves) == fewest or not plan.proven_fewest


@pytest.mark.parametrize("seed", range(60))
def test_the_way_to_a_solved_problem(seed: int) -> None:
    problem, solution = solved(seed)
    if solution.has_plan:
        plan = roll_out(problem, solution)
        assert_sound(problem, solution, plan)
        assert_fewest(problem, solution, plan)


@pytest.mark.parametrize("seed", range(120))
def test_the_way_through_tight_pools(seed: int) -> None:
    problem, solution = random_move(seed)
    plan = roll_out(problem, solution)
    assert_sound(problem, solution, plan)
    assert_fewest(problem, solution, plan)
    assert plan.proven_fewest or plan.stuck is not None


@pytest.mark.parametrize("seed", range(60))
def test_limits_on_waves_hold_and_cost_waves(seed: int) -> None:
    problem, solution = random_move(seed)
    limits = random_limits(seed)
    plan, free = roll_out(problem, solution, limits=limits), roll_out(problem, solution)
    assert_sound(problem, solution, plan)
    assert_limits(problem, solution, (plan, limits))
    if plan.stuck is None:
        assert free.stuck is None
        assert len(plan.waves) >= len(free.waves)


def assert_limits(problem: Problem, solution: Solution, planned: tuple[Plan, WaveLimits]) -> None:
    plan, limits = planned
    rules = Rules(problem, solution)
    start = {c.id: c.on_order for c in problem.candidates}
    for held, serving, _, _ in states_of(rules, plan):
        if limits.max_surge_gpus is not None:
            extra = sum(
                max(0, gpus - max(by_pool(problem, start)[pool], by_pool(problem, solution.counts)[pool]))
                for pool, gpus in by_pool(problem, held).items()
            )
            assert extra <= limits.max_surge_gpus
        ends = by_service(problem, start), by_service(problem, solution.counts)
        ready = by_service(problem, {c.id: c.current for c in problem.candidates})
        for service in problem.demand:
            most, least = max(end[service] for end in ends), min(ready[service], ends[1][service])
            if limits.max_surge_replicas is not None:
                assert by_service(problem, held)[service] <= most + limits.max_surge_replicas
            if limits.max_unavailable is not None:
                assert by_service(problem, serving)[service] >= least - limits.max_unavailable
    for step in (step for wave in plan.waves for step in wave.steps if step.candidate is not None):
        if limits.max_step_gpus is not None and step.kind in (StepKind.START, StepKind.DRAIN):
            assert step.count * problem.candidate[step.candidate].gpus <= limits.max_step_gpus  # type: ignore[index]


def by_pool(problem: Problem, counts: dict[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for candidate, n in counts.items():
        found[problem.candidate[candidate].pool] += n * problem.candidate[candidate].gpus  # type: ignore[index]
    return found


def by_service(problem: Problem, counts: dict[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for candidate, n in counts.items():
        found[problem.candidate[candidate].service] += n  # type: ignore[index]
    return found


@pytest.mark.parametrize("seed", [44, 49, 69, 72, 224, 225, 272, 279, 285, 335])
def test_the_slack_that_is_named_does_and_one_less_anywhere_does_not(seed: int) -> None:
    problem, solution = random_move(seed, narrow=True)
    plan = roll_out(problem, solution)
    assert plan.stuck is not None
    assert plan.stuck.smallest
    ((pool, gpus),) = plan.stuck.extra_gpus.items()
    assert roll_out(with_slack(problem, {pool: gpus}), solution).stuck is None
    for other in problem.pools if gpus > 1 else ():
        wider = with_slack(problem, {other.id: gpus - 1})
        assert fewest_waves(Rules(wider, solution), solution) in (-1, None)


@pytest.mark.parametrize("seed", range(60))
def test_the_way_back_ends_where_it_began(seed: int) -> None:
    problem, solution = random_move(seed)
    plan = roll_out(problem, solution)
    now = {c.id: c.on_order for c in problem.candidates}
    for wave in (*plan.waves, *reverse(plan, problem).waves):
        for step in (step for step in wave.steps if step.candidate is not None):
            assert step.before == now[step.candidate]  # type: ignore[index]
            now[step.candidate] = step.after  # type: ignore[index]
    assert now == {c.id: c.on_order for c in problem.candidates}


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_the_same_question_has_the_same_plan(seed: int) -> None:
    problem, solution = random_move(seed)
    first, second = (roll_out(problem, solution).canonical_json() for _ in range(2))
    assert first == second
