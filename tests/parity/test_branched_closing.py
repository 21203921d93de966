"""Near patterns of services routed by length: nothing that is near enough is missing, and bounds stay below optima."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest

from models.problem import Problem
from models.scenario import Mode
from planner.optimization import solve
from planner.optimization.backends.column_generation.branched_listing import branched_near
from planner.optimization.backends.column_generation.preparation import prepared
from planner.optimization.backends.column_generation.relaxation import Relaxed
from planner.optimization.backends.small import SmallProgram
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import cost_goal
from planner.optimization.program import Column, Key
from planner.optimization.protocol import SolveOptions
from planner.referee import check
from tests.benchmarks.registry import Family, Instance


def few(services: int, seed: int, candidates: int = 5) -> Problem:
    """A small fleet routed by length, with so many candidates of each service."""
    problem = Instance(Family.BUCKETS, services, seed).problem()
    rng = random.Random(seed)  # noqa: S311 - candidates, not secrets
    kept = [c for s in problem.demands for c in rng.sample(problem.candidates_of[s.service], candidates)]
    kept = [c.model_copy(update={"current": 0}) for c in kept]
    return problem.model_copy(
        update={"candidates": tuple(sorted(kept, key=lambda c: c.id)), "mode": Mode.UNCONSTRAINED}
    )


def within(problem: Problem, share: float) -> Problem:
    """The problem in pools that hold so much of what the plan without limits takes, but room for one replica."""
    counts = solve(problem, options=SolveOptions(time_limit_s=3.0)).solution.counts
    pools = []
    for pool in problem.pools:
        used = sum(counts.get(c.id, 0) * c.gpus for c in problem.candidates if c.pool == pool.id)
        nodes = max(1, round(share * used / 8))
        state = pool.nodes[0].model_copy(update={"gpus": 8, "free_gpus": 8})
        made = tuple(state.model_copy(update={"id": f"{pool.id}-{n:04}"}) for n in range(nodes))
        pools.append(pool.model_copy(update={"nodes": made}))
    return problem.model_copy(update={"pools": tuple(pools), "mode": Mode.CONSTRAINED})


def covers(one: Mapping[Key, int], other: Mapping[Key, int]) -> bool:
    """Whether one has no more replicas of anything."""
    return all(count <= other[key] for key, count in one.items() if key[0] == "n")


@pytest.mark.parametrize("seed", range(4))
def test_what_is_near_has_as_many_of_everything_as_a_listed_pattern(seed: int) -> None:
    found = formulate(few(2, seed))
    ready = prepared(found.program)
    usage = ready.usage(cost_goal(found.index).terms)
    relaxation = ready.relaxation(usage, np.ones(len(ready.shape.tying)))
    prices = np.zeros(len(ready.shape.tying))
    (_, priced, *_) = relaxation.ask_blocks(prices)
    assert priced.batch is not None
    known = priced.batch.all()
    relaxed = Relaxed(None, priced.bound, prices)
    theta = 0.8 * min(pattern.cost for pattern in known)
    listing = branched_near(ready, usage, relaxed, known, limits=(theta, 400))
    tried = 0
    for number, block in enumerate(ready.shape.blocks):
        if number not in listing.complete:
            continue
        listed = [p.decode() for _, p in listing.patterns if p.block == number]
        listed += [p.decode() for p in listing.shadows if p.block == number]
        cheapest = next(p.cost for p in known if p.block == number)
        counts = [c for c in block.columns if c.key[0] == "n"]
        for amounts in product(*(range(min(c.upper, 3) + 1) for c in counts)):
            values = {c.key: amount for c, amount in zip(counts, amounts, strict=True)}
            if usage.of(values)[0] > cheapest + theta or any(covers(one, values) for one in listed):
                continue
            fixed = [Column(c.key, values[c.key], values[c.key]) if c in counts else c for c in block.columns]
            assert SmallProgram(fixed, block.rows).minimize({}, gap=0.0).infeasible, values
            tried += 1
    assert tried > 5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_plans_and_bounds_agree_with_highs_on_the_whole(seed: int, share: float) -> None:
    problem = within(few(3, seed, candidates=5), share)
    options = SolveOptions(time_limit_s=2.0, gap=1e-4)
    ours = solve(problem, solver="column-generation", options=options).solution
    theirs = solve(problem, solver="pulp", options=options).solution
    if not ours.has_plan or not theirs.has_plan:
        assert ours.has_plan or not theirs.has_plan
        return
    assert not check(problem, ours)
    mine, its = (next(level for level in one.proof.levels if level.name == "cost") for one in (ours, theirs))
    assert mine.bound is not None
    assert mine.bound <= its.value * (1 + 1e-6)
    assert its.bound is None or its.bound <= mine.value * (1 + 1e-6)
