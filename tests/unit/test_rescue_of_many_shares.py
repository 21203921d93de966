"""Greedy's plan is looked for where a moment is enough to route buckets over it, and not where it is not."""

from __future__ import annotations

import pytest

from models.solution import Proof, Solution, Status
from planner.optimization.protocol import SolveOptions
from planner.optimization.rescue import rescued
from tests.benchmarks.one_service import one_service


@pytest.mark.parametrize(
    ("buckets", "types", "status"), [(60, 4, Status.FEASIBLE), (960, 6, Status.TIMED_OUT)]
)
def test_who_found_no_plan_in_time_gets_one_where_its_shares_are_few(
    buckets: int, types: int, status: Status
) -> None:
    problem = one_service(buckets, types)
    late = Solution(status=Status.TIMED_OUT, proof=Proof(solver="auto"), derived_from=problem.fingerprint)
    assert rescued(problem, late, SolveOptions()).status is status
