"""The referee's own arithmetic: exact decimals, a linear program, whole numbers."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import pytest

from planner.referee.integers import WholeRow, whole_numbers
from planner.referee.simplex import maximize
from planner.referee.tolerance import exact, exceeds, falls_short


def test_decimals_are_what_people_write() -> None:
    assert 3 * exact(0.7) == exact(2.1)
    assert exact(1e-9) == Fraction(1, 10**9)
    assert exact(5) == 5


@pytest.mark.parametrize(
    ("number", "limit", "above", "below"),
    [
        (Fraction(1), Fraction(1), False, False),
        (1 + Fraction(1, 10**9), Fraction(1), False, False),
        (1 + Fraction(2, 10**9), Fraction(1), True, False),
        (1 - Fraction(2, 10**9), Fraction(1), False, True),
        (Fraction(1, 10**12), Fraction(0), True, False),
    ],
)
def test_the_tolerance_is_relative_and_in_favor_of_the_plan(
    number: Fraction, limit: Fraction, above: bool, below: bool
) -> None:
    assert exceeds(number, limit) is above
    assert falls_short(number, limit) is below


def test_a_linear_program() -> None:
    assert maximize([3.0, 2.0], [[1.0, 1.0], [1.0, 3.0], [1.0, 0.0]], [4.0, 6.0, 3.0]) == pytest.approx(
        [3.0, 1.0]
    )


def test_a_linear_program_that_cycles_without_care() -> None:
    rows = [[0.25, -60.0, -0.04, 9.0], [0.5, -90.0, -0.02, 3.0], [0.0, 0.0, 1.0, 0.0]]
    best = maximize([0.75, -150.0, 0.02, -6.0], rows, [0.0, 0.0, 1.0])
    assert best == pytest.approx([0.04, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("seed", range(40))
def test_whole_numbers_agree_with_trying_them_all(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(10):
        upper = [rng.randint(0, 4) for _ in range(rng.randint(1, 4))]
        rows = [WholeRow({j: 1}, most) for j, most in enumerate(upper)]
        for _ in range(rng.randint(1, 4)):
            terms = {j: rng.randint(-5, 5) for j in range(len(upper)) if rng.random() < 0.8}
            rows.append(WholeRow(terms, rng.randint(-8, 8)))
        answers = [
            values
            for values in product(*(range(most + 1) for most in upper))
            if all(sum(a * values[j] for j, a in row.terms.items()) <= row.limit for row in rows)
        ]
        answer = whole_numbers(upper, rows)
        assert (answer is None) == (not answers)
        assert answer is None or tuple(answer) in answers
