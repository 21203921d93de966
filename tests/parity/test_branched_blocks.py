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
from planner.optimization.program import Key
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
