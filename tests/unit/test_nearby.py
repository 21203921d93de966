"""Coverings near the cheapest one: all that nothing can be left out of, and nothing that covers too little."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from planner.optimization.backends.column_generation.covering import Blocks, Weights
from planner.optimization.backends.column_generation.nearby import nearby

WITHIN = 6.0


def a_block(rng: np.random.Generator, *, filler: bool, limited: bool) -> tuple[Blocks, Weights]:
    """Three items, two rows that are owed, perhaps one that limits, perhaps a filler."""
    n, rows = 3, 3 if limited else 2
    a = rng.integers(0, 5, (rows, n)).astype(float)
    b = rng.integers(1, 8, rows).astype(float)
    af = rng.integers(1, 3, rows).astype(float) if filler else np.zeros(rows)
    if limited:
        a[2], b[2], af[2] = -1.0, -4.0, 0.0
    blocks = Blocks(
        np.array([0, n]), np.array([0, rows]), a, np.full(n, 4), b, af, np.array([5.0 if filler else 0.0])
    )
    return blocks, Weights(rng.integers(1, 9, n).astype(float), np.array([float(rng.integers(1, 4))]))


def steps_for(blocks: Blocks, x: tuple[int, ...]) -> int | None:
    """Fewest filler steps with which these items cover; None where none do."""
    for steps in range(int(blocks.uf[0]) + 1):
        if (blocks.a @ np.array(x) + blocks.af * steps >= blocks.b).all():
            return steps
    return None


def cost_of(weights: Weights, x: tuple[int, ...], steps: int) -> float:
    return float(weights.w @ np.array(x) + weights.wf[0] * steps)


def needed(blocks: Blocks, x: tuple[int, ...], steps: int) -> bool:
    """Whether no item can be left out."""
    fewer = (tuple(v - (i == j) for j, v in enumerate(x)) for i in range(len(x)) if x[i])
    found = (steps_for(blocks, one) for one in fewer)
    return all(other is None or other > steps for other in found)


@pytest.mark.parametrize("filler", [False, True])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_all_coverings_near_the_cheapest_are_listed(seed: int, *, filler: bool, limited: bool) -> None:
    blocks, weights = a_block(np.random.default_rng(seed), filler=filler, limited=limited)
    near = nearby(blocks, weights, WITHIN, 500, 100_000)
    listed = {}
    for at in range(int(near.sizes[0])):
        span = slice(near.starts[at], near.starts[at + 1])
        x = np.zeros(3, dtype=int)
        x[near.items[span]] = near.counts[span]
        assert steps_for(blocks, tuple(x)) == int(near.fillers[at])
        listed[tuple(x.tolist())] = cost_of(weights, tuple(x), int(near.fillers[at]))
    every = {x: steps for x in product(range(5), repeat=3) if (steps := steps_for(blocks, x)) is not None}
    if not every:
        assert not listed
        return
    least = min(cost_of(weights, x, steps) for x, steps in every.items())
    assert min(listed.values()) == least
    missing = [
        x
        for x, steps in every.items()
        if needed(blocks, x, steps) and cost_of(weights, x, steps) <= least + WITHIN and x not in listed
    ]
    assert not missing


def test_no_more_than_asked_for_are_kept_and_those_are_the_cheapest() -> None:
    blocks = Blocks(
        np.array([0, 3]),
        np.array([0, 1]),
        np.ones((1, 3)),
        np.full(3, 2),
        np.ones(1),
        np.zeros(1),
        np.zeros(1),
    )
    near = nearby(blocks, Weights(np.array([3.0, 1.0, 2.0]), np.zeros(1)), WITHIN, 2, 1_000)
    assert sorted(near.items.tolist()) == [1, 2]
