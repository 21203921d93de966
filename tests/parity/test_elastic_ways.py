"""Elastic replicas stay or go one way: brute force, two whole programs and column generation agree."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import pytest

from models.problem import Candidate, Problem, Resize
from models.solution import Solution, Status
from planner.optimization import solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, check
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution
from tests.random_problems import brute_force

EXACTLY: Final = SolveOptions(time_limit_s=30, gap=0)
SOLVERS: Final = ("pulp", "cp-sat", "column-generation")


def way(of: Candidate, name: str, pods: int, *, moving: int | None = None, **fields: float) -> Candidate:
    resize = Resize.model_validate(
        {
            "of": of.id,
            "mode": "C" if moving is None else "redeploy",
            "from_ranks": of.pods_per_replica,
            "to_ranks": pods,
            "downtime_s": 1,
            "lead_s": 100,
            "idle_gpu_seconds": 0,
            "hindered_requests": 0,
            "moving_gpus": max(of.gpus, pods) if moving is None else moving,
        }
    )
    return a_candidate(variant=name, pool=of.pool, pods_per_replica=pods, resize=resize, **fields)


def elastic_problem(seed: int) -> Problem:
    """One or two deployments of four accelerators, ways to other sizes, further replicas, and something beside."""
    draw = random.Random(seed)  # noqa: S311 - instances, not secrets
    running = draw.randint(1, 2)
    stays = a_candidate(
        variant="moe",
        rated_rps=draw.choice([3.0, 4.0]),
        pods_per_replica=4,
        cost=draw.choice([4.0, 4.4]),
        current=running,
        max_replicas=running,
    )
    rated = {2: draw.choice([1.5, 2.0]), 6: draw.choice([4.5, 6.5]), 8: draw.choice([6.0, 9.0])}
    ways = [
        way(stays, f"moe-{pods}", pods, rated_rps=rated[pods], cost=pods * 1.0, startup_cost=draw.choice([0.0, 0.5, 3.0]))
        for pods in draw.sample([2, 6, 8], 2)
    ]  # fmt: skip
    if draw.random() < 0.5:
        ways.append(
            way(stays, "moe-6-redeploy", 6, moving=10, rated_rps=7.0, cost=6.0, startup_cost=draw.choice([0.0, 1.0]))
        )  # fmt: skip
    further = a_candidate(
        variant="moe-new", rated_rps=stays.rated_rps, pods_per_replica=4, cost=4.0, startup_cost=draw.choice([0.0, 1.0])
    )  # fmt: skip
    rps = draw.choice([1.0, 4.0, 5.0, 8.0, 9.5, 11.0])
    return a_problem(
        [a_demand(rps=rps)],
        [stays, *ways, further],
        [a_pool(nodes=draw.randint(2, 3), gpus=draw.choice([4, 6, 8]))],
        allow_unserved=draw.random() < 0.3,
        max_changes=draw.choice([None, None, 1, 2]),
    )


def solved(problem: Problem, solver: str) -> Solution:
    return solve(problem, solver=solver, options=EXACTLY).solution


@pytest.mark.parametrize("seeds", [range(first, first + 15) for first in (0, 15, 30, 45)], ids=str)
def test_solvers_agree_and_the_referee_finds_nothing(seeds: Sequence[int]) -> None:
    for seed in seeds:
        problem = elastic_problem(seed)
        answers = [solved(problem, name) for name in SOLVERS]
        assert len({answer.status for answer in answers}) == 1, seed
        for answer in answers:
            assert check(problem, answer) == (), seed
            for level, other in zip(answer.proof.levels, answers[0].proof.levels, strict=True):
                assert level.value == pytest.approx(other.value, rel=2e-4, abs=1e-6), (seed, level.name)


@pytest.mark.parametrize("seeds", [range(first, first + 12) for first in (0, 12)], ids=str)
def test_brute_force_finds_nothing_better(seeds: Sequence[int]) -> None:
    for seed in seeds:
        problem = elastic_problem(seed).but(allow_unserved=False)
        best, answer = brute_force(problem, most=2), solved(problem, "pulp")
        if best is None:
            assert answer.status is Status.INFEASIBLE or max(answer.counts.values()) > 2, seed
        elif max(answer.counts.values()) <= 2:
            assert assess(problem, answer).cost == pytest.approx(best[0], rel=2e-4, abs=1e-6), seed


def test_a_replica_cannot_stay_and_go() -> None:
    stays = a_candidate(variant="moe", rated_rps=4.0, pods_per_replica=4, current=1, max_replicas=1)
    larger = way(stays, "moe-6", 6, rated_rps=6.0, cost=1.5)
    problem = a_problem([a_demand(rps=10.0)], [stays, larger], [a_pool()])
    both = a_solution(problem, {stays.id: 1, larger.id: 1})
    assert [(v.family, v.key) for v in check(problem, both)] == [("elastic", (stays.id,))]
    assert solved(problem, "pulp").status is Status.INFEASIBLE


def test_replicas_on_order_do_not_change_their_size() -> None:
    stays = a_candidate(variant="moe", rated_rps=4.0, pods_per_replica=4, pending=1, max_replicas=1)
    larger = way(stays, "moe-6", 6, rated_rps=6.0, cost=1.5)
    problem = a_problem([a_demand(rps=5.0)], [stays, larger], [a_pool()])
    gone = a_solution(problem, {larger.id: 1})
    assert ("elastic", (stays.id, "ready")) in [(v.family, v.key) for v in check(problem, gone)]
    for solver in SOLVERS:
        assert solved(problem, solver).status is Status.INFEASIBLE


@pytest.mark.parametrize(("nodes", "fits"), [(2, False), (3, True)])
def test_a_redeploy_needs_room_for_both(nodes: int, *, fits: bool) -> None:
    """The new deployment of 6 would fit beside nothing: the old one of 4 runs until it is there."""
    stays = a_candidate(variant="moe", rated_rps=4.0, pods_per_replica=4, current=1, max_replicas=1)
    anew = way(stays, "moe-6", 6, moving=10, rated_rps=6.0, cost=1.5)
    problem = a_problem([a_demand(rps=5.0)], [stays, anew], [a_pool(nodes=nodes, gpus=4)])
    for solver in SOLVERS:
        answer = solved(problem, solver)
        assert answer.has_plan == fits
        assert check(problem, answer) == ()
    judged = check(problem, a_solution(problem, {anew.id: 1}))
    assert [(v.family, v.key) for v in judged] == ([] if fits else [("elastic", ("east", "moving"))])


def test_a_change_of_size_is_one_change() -> None:
    stays = a_candidate(variant="moe", rated_rps=4.0, pods_per_replica=4, current=1, max_replicas=1)
    larger = way(stays, "moe-6", 6, rated_rps=6.0, cost=1.5)
    problem = a_problem([a_demand(rps=5.0)], [stays, larger], [a_pool()], max_changes=1)
    answer = solved(problem, "pulp")
    assert answer.counts == {larger.id: 1}
    assert assess(problem, answer).changes == 1


@pytest.mark.parametrize("name", ["greedy", "cost-aware", "fair-share", "rescale"])
def test_published_rules_change_no_size(name: str) -> None:
    for seed in range(10):
        problem = elastic_problem(seed)
        counts = solved(problem, name).counts
        assert not [c.id for c in problem.candidates if c.resize is not None and counts.get(c.id)]
