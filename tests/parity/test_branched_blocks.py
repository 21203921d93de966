"""The kernel of branch and cut beside HiGHS on blocks of every kind: bounds below the optimum, values that hold."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

import numpy as np
import pytest

from planner.optimization.backends.column_generation.blocks import Block
from planner.optimization.backends.column_generation.branched import fits
from planner.optimization.backends.column_generation.branched_pricing import BranchedPricer, Branchings
from planner.optimization.backends.column_generation.preparation import prepared
from planner.optimization.backends.column_generation.ties import Usage, ties_of
from planner.optimization.backends.small import SmallProgram
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import cost_goal
from planner.optimization.program import Key
from tests.benchmarks.registry import Family, Instance
from tests.random_problems import random_problem

_CLOSE = 1e-3
"""Blocks count as solved at a gap of 3e-5, and HiGHS keeps rows by a tolerance."""


def blocks_of(seeds: range) -> Iterator[tuple[int, Block, BranchedPricer, dict[Key, float]]]:
    """Every block of some problems, with a pricer of its own and random costs."""
    for seed in seeds:
        rng = random.Random(seed)  # noqa: S311 - costs, not secrets
        problem = random_problem(seed, allow_unserved=seed % 2 == 1)
        ready = prepared(formulate(problem).program)
        ties = ties_of(ready.shape)
        for number, block in enumerate(ready.shape.blocks):
            cost = {c.key: rng.uniform(0, 10) for c in block.columns if c.key[0] not in "ayz"}
            cost |= {c.key: rng.uniform(0, 0.01) for c in block.columns if c.key[0] == "z"}
            branchings = Branchings([(number, block)], ready.ties.position)
            yield (
                seed,
                block,
                BranchedPricer(branchings, branchings.use(ties), Usage(ties, cost)),
                cost,
            )


def lengths_of(seeds: range, *, allow_unserved: bool) -> Iterator[tuple[Block, BranchedPricer]]:
    """Every block of some fleets that are routed by length, with the goal of cost; unserved steps cost something too."""
    for seed in seeds:
        problem = Instance(Family.BUCKETS, 4, seed).problem()
        found = formulate(problem.model_copy(update={"allow_unserved": allow_unserved}))
        ready = prepared(found.program)
        cost: dict[Key, float] = dict(cost_goal(found.index).terms)
        cost |= {c.key: 2e3 for c in found.program.columns if c.key[0] == "z"}
        for number, block in enumerate(ready.shape.blocks):
            branchings = Branchings([(number, block)], ready.ties.position)
            assert branchings.flat.routed.able.all()
            yield block, BranchedPricer(branchings, branchings.use(ready.ties), Usage(ready.ties, cost))


def total(cost: Mapping[Key, float], values: Mapping[Key, int]) -> float:
    return sum(weight * values[key] for key, weight in cost.items())


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_bounds_are_below_the_optimum_and_values_hold_and_are_close_to_it(first: int) -> None:
    compared = 0
    for seed, block, pricer, cost in blocks_of(range(first, first + 20)):
        theirs = SmallProgram(block.columns, block.rows).minimize(cost, gap=0.0)
        assert fits(block), seed
        ours = pricer.price(np.zeros(pricer.rows), gap=0.0)
        if theirs.infeasible:
            assert ours.impossible, seed
        elif theirs.values is not None:
            best = total(cost, theirs.values)
            assert ours.batch is not None, seed
            values = ours.batch.decode(0)
            assert all(row.holds(values) for row in block.rows), seed
            assert all(c.lower <= values[c.key] <= c.upper for c in block.columns), seed
            assert ours.bound <= best + 1e-6 * max(1.0, abs(best)), seed
            assert ours.bound == pytest.approx(best, rel=_CLOSE, abs=1e-6), seed
            assert total(cost, values) == pytest.approx(best, rel=_CLOSE, abs=1e-6), seed
            compared += 1
    assert compared > 20


def test_a_second_turn_at_other_costs_forgets_no_row_and_stays_below_the_optimum() -> None:
    for seed, block, pricer, _ in blocks_of(range(40)):
        pricer.price(np.zeros(pricer.rows), gap=0.0)
        rng = random.Random(f"again/{seed}")  # noqa: S311 - prices, not secrets
        prices = np.array([-rng.uniform(0, 0.01) for _ in range(pricer.rows)])
        ours = pricer.price(prices, gap=0.0)
        theirs = SmallProgram(block.columns, block.rows).minimize(pricer.weights(prices), gap=0.0)
        if theirs.values is not None:
            best = total(pricer.weights(prices), theirs.values)
            assert ours.bound <= best + 1e-6 * max(1.0, abs(best)), seed
            assert ours.bound == pytest.approx(best, rel=_CLOSE, abs=1e-6), seed


def test_the_same_questions_have_the_same_answers() -> None:
    def answers() -> list[float]:
        return [pricer.price(np.zeros(pricer.rows), gap=0.0).bound for *_, pricer, _ in blocks_of(range(12))]

    assert answers() == answers()


@pytest.mark.parametrize("allow_unserved", [False, True])
def test_turn_after_turn_services_routed_by_length_cost_what_highs_says(allow_unserved: bool) -> None:
    rng = random.Random(5)  # noqa: S311 - prices, not secrets
    compared = 0
    for block, pricer in lengths_of(range(2), allow_unserved=allow_unserved):
        prices = np.zeros(pricer.rows)
        for _ in range(2):
            ours = pricer.price(prices, gap=0.0)
            weights = pricer.weights(prices)
            theirs = SmallProgram(block.columns, block.rows).minimize(weights, gap=1e-4, seconds=0.3)
            assert ours.batch is not None
            values = ours.batch.decode(0)
            assert all(row.holds(values) for row in block.rows)
            value = total(weights, values)
            assert ours.bound <= value + 1e-6 * abs(value)
            if theirs.values is not None:
                best = total(weights, theirs.values)
                assert ours.bound <= best * (1 + 1e-6)
                assert theirs.bound * (1 - _CLOSE) <= value
                compared += 1
            prices -= np.array([rng.uniform(0, 3e3) for _ in range(pricer.rows)])
    assert compared > 8
