"""The benchmark of ratings still runs, and its cases are of every kind."""

from __future__ import annotations

import numpy as np
import pytest

from planner.performance.queueing import Bound
from planner.performance.queueing.sizing import size_cases
from tests.benchmarks.rating_speed import KINDS, fleet_of_cases, seconds


@pytest.mark.benchmark
@pytest.mark.parametrize("name", KINDS)
def test_it_runs(name: str) -> None:
    level, cv = KINDS[name]
    assert seconds(fleet_of_cases(5, 4, level=level, cv=cv)) >= 0


def test_its_cases_are_bound_by_different_things() -> None:
    bounds = set(size_cases(fleet_of_cases(60, 20)).bound.tolist())
    assert {Bound.TTFT, Bound.ITL, Bound.IN_SERVICE} <= bounds
    assert np.isfinite(size_cases(fleet_of_cases(60, 20)).rate_rps).all()
