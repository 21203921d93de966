"""Why a plan is as it is: what binds, and why a candidate is not in it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from models.explanation import Explanation, Reason, Rejection
from models.hardware import PowerDomain, Quota
from models.problem import Problem
from models.solution import Proof, Solution, Status
from planner.optimization import explain, solve
from planner.optimization.protocol import SolveOptions
from planner.referee import assess
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution

CHEAP: Final = a_candidate(variant="cheap", power_w=400.0)
DEAR: Final = a_candidate(variant="dear", pool="west", cost=3.0, power_w=400.0)
POOLS: Final = (a_pool(), a_pool("west"))


def explained(problem: Problem, solution: Solution | None = None) -> Explanation:
    found = solution or solve(problem, solver="pulp", options=SolveOptions(gap=0)).solution
    return explain(problem, found, assess(problem, found))


def beside(**fields: Any) -> Problem:
    """A cheap and a dear candidate in pools of their own, for 10 req/s."""
    return a_problem(None, [CHEAP, DEAR], POOLS, **fields)


@pytest.mark.parametrize(
    ("problem", "binding"),
    [
        (a_problem(), []),
        (a_problem([a_demand(rps=16.0)]), [("gpus", ("east",), 16, 16)]),
        (a_problem(quotas=(Quota(id="team", gpus=10),)), [("quota", ("team",), 10, 10)]),
        (a_problem(quotas=(Quota(id="team", gpus=11),)), []),
        (
            a_problem(
                None, [CHEAP], [a_pool(power_domain="hall")], power=(PowerDomain(id="hall", cap_w=4399.0),)
            ),
            [("power", ("hall",), 4000, 4399)],
        ),
        (
            a_problem(
                None, [CHEAP], [a_pool(power_domain="hall")], power=(PowerDomain(id="hall", cap_w=4400.0),)
            ),
            [],
        ),
        (a_problem(spend_usd_per_h=10.5), [("spend", (), 10, 10.5)]),
    ],
    ids=["nothing", "gpus", "quota", "quota with room", "power", "power with room for one", "spend"],
)
def test_a_limit_binds_when_not_one_replica_more_would_fit(
    problem: Problem, binding: list[tuple[str, tuple[str, ...], float, float]]
) -> None:
    limits = {"gpus", "quota", "power", "spend"}
    found = [(b.family, b.key, b.used, b.limit) for b in explained(problem).binding if b.family in limits]
    assert found == binding


def passed_over(problem: Problem) -> dict[str, Rejection]:
    return {rejection.variant: rejection for rejection in explained(problem).rejected}


def test_a_dearer_candidate_is_passed_over_for_the_one_in_use() -> None:
    found = passed_over(beside())
    assert set(found) == {"dear"}
    assert found["dear"].reason is Reason.DEARER
    assert found["dear"].facts == {"cost_per_rps": 3.0, "instead": CHEAP.id, "instead_cost_per_rps": 1.0}


@pytest.mark.parametrize(
    ("fields", "family", "limit"),
    [
        ({"quotas": (Quota(id="team", gpus=0, cluster="one"),)}, "quota", "team"),
        ({"power": (PowerDomain(id="hall", cap_w=300.0, pools=("east",)),)}, "power", "hall"),
    ],
)
def test_a_cheaper_candidate_is_passed_over_for_a_limit_that_binds(
    fields: dict[str, Any], family: str, limit: str
) -> None:
    problem = beside(**fields).but(pools=(a_pool(cluster="one"), a_pool("west", cluster="two")))
    (rejection,) = explained(problem).rejected
    assert (rejection.variant, rejection.reason) == ("cheap", Reason.LIMIT_BINDS)
    assert rejection.facts == {"cost_per_rps": 1.0, "family": family, "limit": limit}


def test_a_pool_that_is_full_is_a_limit() -> None:
    problem = a_problem(
        [a_demand(rps=2.0), a_demand("code", rps=16.0)],
        [CHEAP, DEAR, a_candidate("code", "only", gpus_per_pod=1)],
        POOLS,
    )
    found = passed_over(problem)
    assert (found["cheap"].reason, found["cheap"].facts["limit"]) == (Reason.LIMIT_BINDS, "east")


def test_a_candidate_that_nothing_speaks_against_was_not_needed() -> None:
    # Whole replicas: the large one is cheaper per req/s, and more than what is left to serve.
    problem = a_problem(
        [a_demand(rps=1.0)], [a_candidate(), a_candidate(variant="large", rated_rps=4.0, cost=2.0)]
    )
    assert passed_over(problem)["large"].reason is Reason.NOT_NEEDED


def test_other_roles_are_no_rivals() -> None:
    candidates = [
        a_candidate(variant="p", role="prefill", cost=0.1),
        a_candidate(variant="d", role="decode", cost=2.0),
        a_candidate(variant="e", role="decode", cost=3.0),
    ]
    found = passed_over(a_problem([a_demand(rps=2.0)], candidates))
    assert set(found) == {"e"}
    assert found["e"].facts["instead"] == "chat/d@east"


def test_what_sizing_rejected_stays_in_front() -> None:
    rejected = Rejection(service="chat", variant="huge", reason=Reason.WEIGHTS_DO_NOT_FIT)
    problem = beside(rejected=(rejected,))
    assert explained(problem).rejected[0] == rejected


@pytest.mark.parametrize("status", [Status.TIMED_OUT, Status.FAILED])
def test_without_a_plan_only_what_sizing_rejected_is_told(status: Status) -> None:
    rejected = (Rejection(service="chat", variant="huge", reason=Reason.WEIGHTS_DO_NOT_FIT),)
    problem = beside(rejected=rejected)
    solution = Solution(status=status, proof=Proof(solver="test"), derived_from=problem.fingerprint)
    assert explain(problem, solution, None) == Explanation(rejected=rejected)


def test_any_plan_can_be_explained_whoever_made_it() -> None:
    problem = beside()
    found = explained(problem, a_solution(problem, {DEAR.id: 10}, status=Status.FEASIBLE))
    (rejection,) = found.rejected
    assert (rejection.variant, rejection.reason) == ("cheap", Reason.NOT_NEEDED)
