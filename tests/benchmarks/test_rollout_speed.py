"""A fleet of 200 services that all change their variant; the time is printed (``pytest -s``) and not asserted."""

from __future__ import annotations

import random
import time
from math import ceil

import pytest

from models.problem import Problem
from models.solution import Solution
from planner.rollout import roll_out
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution, an_incumbent

SERVICES, VARIANTS, POOLS, RPS = 200, 8, 8, 4.0


def large_move(seed: int, *, known: bool) -> tuple[Problem, Solution]:
    """Services on one variant each, packed in order of their names, that want another; a power cap leaves 19 % for surge."""
    rng = random.Random(seed)  # noqa: S311 - instances, not secrets
    pools = [a_pool(f"p{i}", SERVICES // 6 + 4, power_domain="hall") for i in range(POOLS)]
    room = {node.id: node.gpus for pool in pools for node in pool.nodes}
    candidates, incumbents, target = [], [], {}
    for number in range(SERVICES):
        now, then = rng.sample(range(VARIANTS), 2)
        for variant in range(VARIANTS):
            size, rate, pool = rng.choice((1, 2, 4)), rng.choice((1.0, 2.0)), pools[variant % POOLS]
            count = ceil(RPS / rate)
            seats = []
            for _ in range(count if variant == now else 0):
                node = next(node.id for node in pool.nodes if room[node.id] >= size)
                room[node] -= size
                seats.append(node)
            candidate = a_candidate(
                f"s{number:03}",
                f"v{variant}",
                pool.id,
                gpus_per_pod=size,
                rated_rps=rate,
                power_w=500.0 * size,
                current=len(seats),
                startup_s=120.0,
            )
            candidates.append(candidate)
            incumbents += [an_incumbent(candidate, node) for node in seats]
            if variant == then:
                target[candidate.id] = count
    used = sum(c.gpus * max(c.current, target.get(c.id, 0)) for c in candidates)
    problem = a_problem(
        [a_demand(f"s{number:03}", RPS) for number in range(SERVICES)],
        candidates,
        pools,
        incumbents=tuple(incumbents) if known else (),
        power=({"id": "hall", "cap_w": 500.0 * used * 0.6},),
    )
    return problem, a_solution(problem, target)


@pytest.mark.benchmark
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_two_hundred_services(seed: int, known: bool) -> None:
    problem, solution = large_move(seed, known=known)
    begin = time.perf_counter()
    plan = roll_out(problem, solution)
    seconds = time.perf_counter() - begin
    print(f"\n{SERVICES} services, nodes known: {known}: {len(plan.waves)} waves in {seconds:.2f} s")
    assert plan.stuck is None
