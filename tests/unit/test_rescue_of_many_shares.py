"""Greedy's plan is looked for where a moment is enough to route buckets over it, and not where it is not."""

from __future__ import annotations

import pytest

from models.solution import Proof, Solution, Status
from planner.optimization.protocol import SolveOptions
from planner.optimization.rescue import rescued
from tests.benchmarks.one_service import one_service
from tests.builders import a_candidate, a_demand, a_pool, a_problem


@pytest.mark.parametrize(
    ("buckets", "types", "status"), [(60, 4, Status.FEASIBLE), (960, 6, Status.TIMED_OUT)]
)
def test_who_found_no_plan_in_time_gets_one_where_its_shares_are_few(
    buckets: int, types: int, status: Status
) -> None:
    problem = one_service(buckets, types)
    late = Solution(status=Status.TIMED_OUT, proof=Proof(solver="auto"), derived_from=problem.fingerprint)
    assert rescued(problem, late, SolveOptions()).status is status


@pytest.mark.parametrize(("left_s", "status"), [(60.0, Status.FEASIBLE), (0.1, Status.TIMED_OUT)])
def test_many_candidates_are_not_looked_through_once_time_is_over(left_s: float, status: Status) -> None:
    services = [f"s{number:02}" for number in range(60)]
    variants = [f"v{number:02}" for number in range(50)]
    problem = a_problem(
        [a_demand(service, rps=2.0) for service in services],
        [a_candidate(service, variant) for service in services for variant in variants],
        (a_pool(nodes=20),),
    )
    late = Solution(status=Status.TIMED_OUT, proof=Proof(solver="auto"), derived_from=problem.fingerprint)
    assert rescued(problem, late, SolveOptions(time_limit_s=left_s)).status is status
