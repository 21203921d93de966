"""What cannot hold together, and how far one limit must move: each case small enough for a sheet of paper."""

from __future__ import annotations

from typing import Any, Final

import pytest

from models.explanation import Conflict, Explanation
from models.hardware import NodeGrowth, PowerDomain, Quota
from models.ids import ServiceId
from models.problem import Problem, VariantBounds
from models.saturation import Headroom
from models.solution import Status
from models.variant import Role
from models.workload import PrefillDecodeRatio, Survive
from planner.clock import FakeClock
from planner.optimization import explain, solve
from planner.optimization.backends.cpsat import CpSat
from planner.optimization.explaining.conflict import conflict_of
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.limits import Rerated, limits_of
from planner.optimization.explaining.together import together
from planner.optimization.formulation import formulate
from planner.optimization.program import Goal
from planner.optimization.protocol import SolveOptions
from planner.referee import assess
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem, an_incumbent
from tests.engines import an_ask

EXACTLY: Final = SolveOptions(gap=0)
DRAWS: Final = a_candidate(power_w=400.0)
RUNS: Final = a_candidate(current=4)


def explained(problem: Problem) -> Explanation:
    solution = solve(problem, solver="pulp", options=EXACTLY).solution
    assert solution.status is Status.INFEASIBLE
    return explain(problem, solution, None)


def capped(**fields: Any) -> Problem:
    return a_problem(None, [DRAWS], [a_pool(power_domain="hall")], **fields)


CASES: Final[dict[str, tuple[Problem, set[str], list[tuple[str, tuple[str, ...], float, float]]]]] = {
    "gpus": (a_problem(None, None, [a_pool(nodes=1)]), {"rate", "gpus"}, [("gpus", ("east",), 8, 10)]),
    "gpus in nodes of four": (
        a_problem(None, [a_candidate(gpus_per_pod=4, rated_rps=3.0)], [a_pool(nodes=1)]),
        {"rate", "gpus"},
        [("gpus", ("east",), 8, 16)],
    ),
    "placement": (
        a_problem([a_demand(rps=1.0)], [a_candidate(gpus_per_pod=8)], [a_pool(nodes=2, gpus=4)]),
        {"rate", "placement"},
        [("gpus", ("east",), 8, 16)],
    ),
    "nodes": (
        a_problem(None, None, [a_pool(nodes=0, growth=NodeGrowth(gpus_per_node=4, max_nodes=2))]),
        {"rate", "gpus", "nodes"},
        [("nodes", ("east",), 2, 3)],
    ),
    "quota": (
        a_problem(quotas=(Quota(id="team", gpus=7),)),
        {"rate", "quota"},
        [("quota", ("team",), 7, 10)],
    ),
    "power tdp": (
        capped(power=(PowerDomain(id="hall", cap_w=3000.0),)),
        {"rate", "power"},
        [("power", ("hall",), 3000, 4000)],
    ),
    "power expected": (
        a_problem(
            None,
            [DRAWS],
            [a_pool(power_domain="hall", idle_gpu_w=50.0, node_overhead_w=300.0)],
            power=(PowerDomain(id="hall", cap_w=4000.0),),
            power_basis="expected",
        ),
        {"rate", "power"},
        [("power", ("hall",), 4000, 4000 + 6 * 50 + 2 * 300)],
    ),
    "spend": (
        a_problem(None, [a_candidate(cost=1.25)], spend_usd_per_h=12.0),
        {"rate", "spend"},
        [("spend", (), 12, 12.5)],
    ),
    "spend in cents": (
        a_problem([a_demand(rps=3.0)], [a_candidate(cost=1.1111)], spend_usd_per_h=1.0),
        {"rate", "spend"},
        [("spend", (), 1, 3.34)],
    ),
    "maximum of a service": (
        a_problem([a_demand(max_replicas=4)]),
        {"rate", "bounds"},
        [("bounds", ("chat",), 4, 10)],
    ),
    "changes": (a_problem(None, [RUNS], max_changes=2), {"rate", "change"}, [("change", (), 2, 6)]),
    "headroom": (
        a_problem(
            [a_demand(rps=8.0, headroom=Headroom(relative=0.5))],
            [a_candidate(surge_rps=1.2)],
            [a_pool(nodes=1)],
        ),
        {"headroom", "gpus"},
        [("headroom", ("chat",), 0.5, 0.2), ("gpus", ("east",), 8, 10)],
    ),
    "survive": (
        a_problem([a_demand(rps=2.0, survive=Survive(failure_domains=("east",)))]),
        {"survive"},
        [("survive", ("chat",), 1, 0)],
    ),
    "ratio": (
        a_problem(
            [a_demand(rps=2.0, ratio=PrefillDecodeRatio(max=1.0), max_replicas=9)],
            [
                a_candidate(variant="p", role=Role.PREFILL, rated_rps=0.25),
                a_candidate(variant="d", role=Role.DECODE, rated_rps=2.0),
            ],
        ),
        {"rate", "ratio", "bounds"},
        [("ratio", ("chat", "max"), 1, 10), ("bounds", ("chat",), 9, 16)],
    ),
    "variants": (
        a_problem(
            [a_demand(rps=4.5, max_variants=1)],
            [a_candidate(rated_rps=0.5), a_candidate(variant="large", rated_rps=4.0, gpus_per_pod=4)],
            [a_pool(nodes=1, gpus=5)],
        ),
        {"rate", "variants", "gpus"},
        [("variants", ("chat", "both"), 1, 2), ("gpus", ("east",), 5, 9)],
    ),
    "safe scale-in": (
        a_problem(
            [a_demand(rps=1.0)],
            [a_candidate(current=4, scale_in_permitted=False)],
            quotas=(Quota(id="team", gpus=3),),
        ),
        {"safe_scale_in", "quota"},
        [("safe_scale_in", ("chat/small@east",), 4, 3), ("quota", ("team",), 3, 4)],
    ),
    "pinned incumbents": (
        a_problem(
            [a_demand(rps=2.0), a_demand("code", rps=1.0)],
            [a_candidate(current=2), a_candidate("code", gpus_per_pod=4)],
            [a_pool(nodes=[a_node("n0", 4), a_node("n1", 4)])],
            incumbents=(an_incumbent(a_candidate(), "n0"), an_incumbent(a_candidate(), "n1")),
        ),
        {"rate", "placement", "incumbents"},
        [("gpus", ("east",), 8, 12), ("incumbents", (), 0, 1)],
    ),
    "a part survives": (
        a_problem(
            [a_demand(rps=4.0, survive=Survive(share=0.9, failure_domains=("east",)))],
            [a_candidate(), a_candidate(pool="west", cost=2.0)],
            [a_pool(), a_pool("west", nodes=1, gpus=3)],
        ),
        {"survive", "gpus"},
        [("survive", ("chat",), 0.9, 0.747), ("gpus", ("west",), 3, 4)],
    ),
    "maximum of a variant": (
        a_problem([a_demand(rps=4.0, variants=(VariantBounds(variant="small", max_replicas=3),))]),
        {"rate", "bounds"},
        [("bounds", ("chat", "small"), 3, 4)],
    ),
    "maximum of a candidate": (
        a_problem([a_demand(rps=4.0)], [a_candidate(max_replicas=1)]),
        {"rate", "bounds"},
        [("bounds", ("chat/small@east",), 1, 4)],
    ),
    "minima": (
        a_problem(
            [a_demand(rps=1.0, min_replicas=3)],
            [a_candidate(min_replicas=4)],
            quotas=(Quota(id="team", gpus=3),),
        ),
        {"bounds", "quota"},
        [("bounds", ("chat/small@east",), 4, 3), ("quota", ("team",), 3, 4)],
    ),
    "a step up": (
        a_problem([a_demand(rps=4.0)], [a_candidate(current=1, max_step_up=2)]),
        {"rate", "change"},
        [("change", ("chat/small@east",), 2, 3)],
    ),
    "a step down": (
        a_problem(
            [a_demand(rps=1.0)],
            [a_candidate(current=5, max_step_down=1)],
            quotas=(Quota(id="team", gpus=3),),
        ),
        {"change", "quota"},
        [("change", ("chat/small@east",), 1, 2), ("quota", ("team",), 3, 4)],
    ),
    "no candidate": (a_problem(None, []), {"demand"}, []),
}
cases = pytest.mark.parametrize("name", CASES)


@cases
def test_the_conflict_is_named(name: str) -> None:
    problem, families, _ = CASES[name]
    conflict = explained(problem).conflict
    assert conflict is not None
    assert set(conflict.families) == families


@cases
def test_the_conflict_is_minimal(name: str) -> None:
    problem, _, _ = CASES[name]
    conflict = explained(problem).conflict
    assert conflict is not None
    for family in conflict.families:
        others = set(formulate(problem).program.families) - (set(conflict.families) - {family})
        roomy = formulate(problem, roomy=True).program.without(others)
        assert CpSat().minimize(an_ask(roomy, Goal("any", {}))).values is not None, family


@cases
def test_limits_move_as_far_as_they_must(name: str) -> None:
    problem, _, moves = CASES[name]
    found = explained(problem).relaxations
    assert [(r.family, r.key, r.limit, pytest.approx(r.needed)) for r in found if r.verified] == moves
    assert all(r.unit for r in found)


def test_a_limit_whose_move_is_not_enough_is_not_called_verified() -> None:
    # Quota and GPUs both bind: neither alone is enough.
    problem = a_problem(None, None, [a_pool(nodes=1)], quotas=(Quota(id="team", gpus=7),))
    assert [r for r in explained(problem).relaxations if r.verified] == []


TWO_LIMITS: Final = a_problem(
    None, [DRAWS], [a_pool(nodes=1, power_domain="hall")], power=(PowerDomain(id="hall", cap_w=3000.0),)
)
"""Ten replicas of 400 W are needed: eight GPUs are there, and power for seven."""


def moved_with_others(problem: Problem) -> list[tuple[str, tuple[str, ...], float]]:
    found = explained(problem)
    assert found.relaxations == ()
    assert all(each.verified and each.cost is not None for each in found.together)
    return [(each.family, each.key, each.needed) for each in found.together]


@pytest.mark.parametrize(
    ("problem", "moves"),
    [
        (TWO_LIMITS, [("gpus", ("east",), 10), ("power", ("hall",), 4000.0)]),
        (TWO_LIMITS.but(spend_usd_per_h=0.0, max_changes=0),
         [("change", (), 10), ("gpus", ("east",), 10), ("spend", (), 10.0), ("power", ("hall",), 4000.0)]),
        (a_problem(None, None, [a_pool(nodes=1)], quotas=(Quota(id="team", gpus=7),)),
         [("gpus", ("east",), 10), ("quota", ("team",), 10)]),
        # Chat and search are short of GPUs, each in a pool of its own.
        (a_problem([a_demand(), a_demand("search")], [a_candidate(), a_candidate("search", pool="west")],
                   [a_pool(nodes=1), a_pool("west", nodes=1)]),
         [("gpus", ("east",), 10), ("gpus", ("west",), 10)]),
        # Headroom alone could give way; promises are kept where hardware and budgets may move.
        (TWO_LIMITS.but(demands=(a_demand(headroom=Headroom(relative=0.2)),)),
         [("gpus", ("east",), 12), ("power", ("hall",), 4800.0)]),
        # The largest count of one variant and the least of the other exclude one another under the cap.
        (a_problem([a_demand(max_replicas=3, variants=(VariantBounds(variant="small", min_replicas=8),))], None,
                   [a_pool(nodes=1, gpus=4)]),
         [("bounds", ("chat",), 10), ("gpus", ("east",), 10)]),
    ],
)  # fmt: skip
def test_where_no_single_limit_is_enough_those_that_have_to_move_together_are_told(
    problem: Problem, moves: list[tuple[str, tuple[str, ...], float]]
) -> None:
    assert moved_with_others(problem) == moves


def test_none_of_those_that_move_together_can_stay() -> None:
    spent = TWO_LIMITS.but(spend_usd_per_h=0.0)
    assert [each.family for each in explained(spent).together] == ["gpus", "spend", "power"]
    pool = a_pool(nodes=1, gpus=10, power_domain="hall")
    moved = {
        "gpus": lambda problem: problem.but(pools=(pool,)),
        "spend": lambda problem: problem.but(spend_usd_per_h=10.0),
        "power": lambda problem: problem.but(power=(PowerDomain(id="hall", cap_w=4000.0),)),
    }
    for left_out, last in moved.items():
        others = spent
        for family, move in moved.items():
            others = others if family == left_out else move(others)
        assert solve(others, solver="pulp").solution.status is Status.INFEASIBLE, left_out
        assert solve(last(others), solver="pulp").solution.status is Status.OPTIMAL


def test_looser_promises_of_two_services_add_up() -> None:
    problem = a_problem(
        [a_demand(), a_demand("search")],
        [a_candidate(), a_candidate("search", pool="west")],
        [a_pool(nodes=1), a_pool("west", nodes=1)],
    )

    def rerate(service: ServiceId, factor: float) -> Rerated:
        """Sized from the scenario, which knows nothing of what was moved before."""
        sized = [
            c.but(rated_rps=factor, surge_rps=factor) if c.service == service else c
            for c in problem.candidates
        ]
        return Rerated(problem.but(candidates=sized))

    looser = problem
    for service in ("chat", "search"):
        (slo,) = [
            each for each in limits_of(looser, rerate) if (each.family, each.key) == ("slo", (service,))
        ]
        looser = slo.moved(1.25) or looser
    assert [c.rated_rps for c in looser.candidates] == [1.25, 1.25]
    assert solve(looser, solver="pulp").solution.status is Status.OPTIMAL


def test_more_nodes_than_can_be_judged_are_an_estimate() -> None:
    problem = a_problem([a_demand(rps=1e6)], None, [a_pool(nodes=1)], spend_usd_per_h=10.0)
    found = explained(problem).together
    assert [(each.family, each.needed, each.verified, each.cost) for each in found] == [
        ("gpus", 1e6, False, None),
        ("spend", 1e6, False, None),
    ]


def test_every_limit_that_would_do_alone_is_shown() -> None:
    problem = capped(
        power=(PowerDomain(id="hall", cap_w=3000.0),),
        quotas=(Quota(id="team", gpus=20),),
    )
    pools = (a_pool(power_domain="hall"), a_pool("west", power_domain="other"))
    other = problem.but(
        pools=pools,
        candidates=(DRAWS, a_candidate(pool="west", power_w=800.0)),
        power=(PowerDomain(id="hall", cap_w=3000.0), PowerDomain(id="other", cap_w=800.0)),
    )
    found = {(r.key, r.needed) for r in explained(other).relaxations if r.verified}
    assert found == {(("hall",), 3600.0), (("other",), 2400.0)}


def test_rows_that_nothing_can_keep_are_named() -> None:
    problem = a_problem([a_demand(survive=Survive(failure_domains=("east",)))])
    conflict = explained(problem).conflict
    assert conflict is not None
    assert ("survive", "chat", "aggregated", "both", "east") in conflict.rows


def test_rows_of_the_conflict_are_minimal() -> None:
    # Search is not needed for the conflict: its pool has room.
    problem = a_problem(
        [a_demand(), a_demand("search", rps=2.0)],
        [a_candidate(), a_candidate("search", pool="west")],
        [a_pool(nodes=1), a_pool("west")],
    )
    conflict = explained(problem).conflict
    assert conflict is not None
    assert conflict.rows == (("rate", "chat", "aggregated", "both"), ("gpus", "east"))


def test_the_cheapest_plan_is_shown_first_with_its_cost() -> None:
    problem = a_problem(
        [a_demand(rps=10.0)],
        [a_candidate(cost=3.0), a_candidate(pool="west", cost=1.0)],
        [a_pool(nodes=1, gpus=4), a_pool("west", nodes=1, gpus=5)],
    )
    found = explained(problem).relaxations
    assert [(r.key, r.needed, r.cost) for r in found] == [(("west",), 6, 18.0), (("east",), 5, 20.0)]


def test_a_promise_of_latency_is_made_looser_by_whoever_can_size_again() -> None:
    problem = a_problem(None, None, [a_pool(nodes=1)])
    asked = []

    def rerate(service: ServiceId, factor: float) -> Rerated:
        asked.append((service, factor))
        return Rerated(
            problem.but(candidates=[c.but(rated_rps=factor, surge_rps=factor) for c in problem.candidates]),
            {"ttft_s": factor},
        )

    solution = solve(problem, solver="pulp").solution
    slo = next(r for r in explain(problem, solution, None, rerate=rerate).relaxations if r.family == "slo")
    assert (slo.key, slo.limit, slo.needed, slo.facts, slo.verified) == (
        ("chat",), 1.0, 1.25, {"ttft_s": 1.25}, True,
    )  # fmt: skip
    assert {service for service, _ in asked} == {"chat"}


def test_what_would_serve_all_is_told_where_demand_may_stay_unserved() -> None:
    problem = a_problem(None, None, [a_pool(nodes=1)], allow_unserved=True)
    solution = solve(problem, solver="pulp").solution
    found = explain(problem, solution, assess(problem, solution))
    assert found.conflict is not None
    assert [(r.family, r.needed, r.cost) for r in found.relaxations] == [("gpus", 10, 10.0)]


def test_without_time_nothing_is_claimed() -> None:
    problem, _, _ = CASES["quota"]
    solution = solve(problem, solver="pulp").solution
    found = explain(problem, solution, None, time_limit_s=0.0, clock=FakeClock())
    assert (found.conflict, found.relaxations) == (None, ())


def test_no_limit_is_set_free_once_time_has_run_out() -> None:
    problem = a_problem(
        [a_demand(), a_demand("search")],
        [a_candidate(), a_candidate("search", pool="west")],
        [a_pool(nodes=1), a_pool("west", nodes=1)],
    )
    clock, sized = FakeClock(), list[ServiceId]()

    def rerate(service: ServiceId, factor: float) -> Rerated:
        sized.append(service)
        clock.advance(60.0)
        return Rerated(problem)

    oracle = Oracle(clock=clock, deadline_s=clock.monotonic_s() + 30.0)
    conflict = Conflict(families=("gpus", "rate"))
    assert together(problem, conflict, oracle, rerate=rerate) == ()
    assert sized == ["chat"]


def test_a_problem_that_has_a_plan_has_no_conflict() -> None:
    assert conflict_of(a_problem(), Oracle(clock=FakeClock(), deadline_s=30.0)) is None
