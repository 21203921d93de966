"""The pricing kernel against plain enumeration, and its bounds."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from planner.optimization.backends.column_generation.covering import KEPT, Answers, Blocks, Weights, price

pytestmark = pytest.mark.slow


def solved(case: dict[str, Any], *, gap: float = 1e-9, nodes: int = 20_000) -> Answers:
    a, b = case["a"], case["b"]
    rows, n = a.shape
    answers = Answers(
        np.zeros((KEPT, n), dtype=np.int64), np.zeros((KEPT, 1)), np.full((KEPT, 1), np.inf), np.zeros(1)
    )
    blocks = Blocks(
        np.array([0, n]), np.array([0, rows]), a, case["u"], b, case["af"], np.array([case["uf"]])
    )
    price(blocks, Weights(case["w"], np.array([case["wf"]])), (gap, nodes), answers)
    return answers


def enumerated(case: dict[str, Any]) -> float:
    """The least cost by trying every count of every item."""
    best = np.inf
    for x in itertools.product(*(range(most + 1) for most in case["u"])):
        filled = case["uf"] if case["wf"] < 0 else 0.0
        need = case["b"] - case["a"] @ np.array(x) - case["af"] * filled
        for row, missing in enumerate(need):
            if missing > 1e-9:
                per_step = case["af"][row]
                filled = max(filled, np.ceil(missing / per_step - 1e-12)) if per_step > 0 else np.inf
        if filled <= case["uf"]:
            best = min(best, float(np.dot(case["w"], x) + case["wf"] * filled))
    return best


def a_case(rng: random.Random) -> dict[str, Any]:
    n, rows = rng.randint(0, 4), rng.randint(1, 3)
    filler = rng.random() < 0.5
    return {
        "w": np.array([rng.choice((-1.0, 0.0, 1.0, 2.0, 2.5, 3.0, 7.0)) for _ in range(n)]),
        "a": np.array(
            [[float(rng.choice((0, 0, 1, 2, 3, 5, 10))) for _ in range(n)] for _ in range(rows)]
        ).reshape(rows, n),
        "u": np.array([rng.randint(0, 4) for _ in range(n)], dtype=np.int64),
        "b": np.array([float(rng.choice((-3, 0, 1, 4, 9, 15))) for _ in range(rows)]),
        "wf": float(rng.choice((-0.5, 0, 0.1, 0.5, 3))) if filler else 0.0,
        "af": np.array([float(rng.choice((0.5, 1, 2, 0))) if filler else 0.0 for _ in range(rows)]),
        "uf": float(rng.choice((3, 20))) if filler else 0.0,
    }


@pytest.mark.parametrize("seed", range(10))
def test_the_kernel_finds_the_least_cost(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - cases, not secrets
    for _ in range(300):
        case = a_case(rng)
        answers, least = solved(case), enumerated(case)
        if case["wf"] < 0:
            continue  # a filler that pays is taken whole; enumeration above does the same only where nothing else is owed
        assert answers.values[0, 0] == pytest.approx(least)
        assert answers.bounds[0] <= least + 1e-6 or np.isinf(least)


@pytest.mark.parametrize("seed", range(5))
def test_a_search_that_is_cut_short_still_bounds(seed: int) -> None:
    rng = random.Random(100 + seed)  # noqa: S311 - cases, not secrets
    for _ in range(200):
        case = a_case(rng)
        least = enumerated(case)
        if np.isfinite(least) and case["wf"] >= 0:
            assert solved(case, nodes=2).bounds[0] <= least + 1e-6


def test_bulk_is_filled_with_the_best_ratio_and_the_rest_is_exact() -> None:
    case = {
        "w": np.array([7.0, 1.0, 2.9]),
        "a": np.array([[100.0, 10.0, 35.0]]),
        "u": np.array([1000, 1000, 1000], dtype=np.int64),
        "b": np.array([12_345.0]),
        "wf": 0.0,
        "af": np.zeros(1),
        "uf": 0.0,
    }
    answers = solved(case)
    # 123 of 100 leave 45: one of 35 and one of 10 are cheaper than anything else.
    assert answers.values[0, 0] == pytest.approx(123 * 7.0 + 2.9 + 1.0)
    assert answers.bounds[0] == pytest.approx(answers.values[0, 0])


@pytest.mark.parametrize(
    ("wf", "uf", "least"),
    [(0.0, 4.0, 5.0), (0.1, 4.0, 5.4), (0.1, 3.0, 7.0), (0.1, 9.0, 0.9), (3.0, 9.0, 10.0)],
)
def test_a_filler_that_is_cheaper_than_every_item_but_not_enough_is_used_up(
    wf: float, uf: float, least: float
) -> None:
    case = {
        "w": np.array([5.0, 1.7, 7.0]),
        "a": np.array([[5.0, 1.0, 6.0]]),
        "u": np.array([9, 1, 2], dtype=np.int64),
        "b": np.array([9.0]),
        "wf": wf,
        "af": np.array([1.0]),
        "uf": uf,
    }
    answers = solved(case)
    assert answers.values[0, 0] == pytest.approx(enumerated(case)) == least
    assert answers.bounds[0] <= least + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_one_row_with_a_cheap_filler_that_does_not_suffice(seed: int) -> None:
    rng = random.Random(200 + seed)  # noqa: S311 - cases, not secrets
    for _ in range(300):
        n = rng.randint(2, 4)
        case = {
            "w": np.array([rng.choice((1.0, 1.7, 2.5, 4.0)) for _ in range(n)]),
            "a": np.array([[rng.choice((1.0, 2.0, 3.0, 5.0)) for _ in range(n)]]),
            "u": np.array([rng.randint(1, 4) for _ in range(n)], dtype=np.int64),
            "b": np.array([rng.choice((6.0, 9.0, 12.0))]),
            "wf": rng.choice((0.0, 0.01, 0.3, 0.6)),
            "af": np.array([rng.choice((0.5, 1.0))]),
            "uf": rng.choice((2.0, 3.0, 5.0, 8.0)),
        }
        answers, least = solved(case), enumerated(case)
        assert answers.values[0, 0] == pytest.approx(least)
        assert answers.bounds[0] <= least + 1e-6 or np.isinf(least)
