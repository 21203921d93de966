"""A plan says which of its rates nobody measured."""

from __future__ import annotations

import pytest

from models.performance import Origin
from planner.wording import modeled_sentence
from tests.builders import a_candidate, a_problem, a_solution


@pytest.mark.parametrize(
    ("origin", "replicas", "said"),
    [
        (Origin.MODELED, 2, True),
        (Origin.MODELED, 0, False),
        (Origin.MEASURED, 2, False),
        (Origin.GIVEN, 2, False),
    ],
)
def test_variants_with_modeled_rates_are_named(origin: Origin, replicas: int, said: bool) -> None:
    one = a_candidate(origin=origin)
    problem = a_problem(candidates=(one,))
    found = modeled_sentence(problem, a_solution(problem, {one.id: replicas}))
    assert found == (f"Rates modeled, not measured: {one.service}/{one.variant}" if said else None)
