"""What would make a runner-up win, and what another answer does differently."""

from __future__ import annotations

from typing import Any

from models.explanation import RunnerUp
from models.problem import Problem
from planner.clock import FakeClock
from planner.optimization import difference_of, solve
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.runners_up import runners_up
from planner.optimization.protocol import SolveOptions
from planner.referee import assess, state_with
from tests.builders import a_candidate, a_demand, a_pool, a_problem


def found(problem: Problem) -> dict[str, RunnerUp]:
    solution = solve(problem, solver="pulp", options=SolveOptions(gap=0)).solution
    close = runners_up(problem, solution, Oracle(clock=FakeClock(), deadline_s=60.0))
    return {each.candidate: each for each in close}


def rivals(**fields: Any) -> Problem:
    """Ten replicas of 1 req/s at 1 $/h, beside another variant."""
    return a_problem(None, [a_candidate(), a_candidate(variant="large", **fields)], [a_pool(nodes=4)])


def test_the_price_at_which_it_wins() -> None:
    one = found(rivals(rated_rps=2.0, cost=2.5))["chat/large@east"]
    assert (one.cost, one.extra_cost, one.price_cut) == (2.5, 0.5, 0.5)


def test_several_replicas_may_need_a_smaller_cut_than_one() -> None:
    # One of 2.5 req/s saves two replicas and costs half a dollar more than they do; four save all ten, at a dollar.
    one = found(rivals(rated_rps=2.5, cost=2.75))["chat/large@east"]
    assert (one.extra_cost, one.price_cut) == (0.5, 0.25)


def test_the_cut_is_enough_and_a_little_less_is_not() -> None:
    problem = rivals(rated_rps=2.5, cost=2.75)
    cut = found(problem)["chat/large@east"].price_cut
    assert cut is not None
    for share, wins in ((1.02, True), (0.98, False)):
        large = problem.candidate["chat/large@east"]  # type: ignore[index]
        cheaper = problem.but(
            candidates=(large.but(cost=2.75 - cut * share), problem.candidate["chat/small@east"])
        )  # type: ignore[index]
        solution = solve(cheaper, solver="pulp", options=SolveOptions(gap=0)).solution
        assert bool(solution.count(large.id)) is wins


def test_the_capacity_at_which_it_wins() -> None:
    # Five of them replace eight at 2 $/h more; at 2 req/s they replace all ten.
    one = found(rivals(rated_rps=1.6, surge_rps=1.6, cost=2.0))["chat/large@east"]
    assert (one.price_cut, one.capacity_gain) == (0.4, 0.25)


def test_what_costs_the_same_needs_nothing() -> None:
    one = found(rivals(rated_rps=1.0, cost=1.0, power_w=900.0))
    assert {(each.extra_cost, each.price_cut, each.capacity_gain) for each in one.values()} <= {
        (0.0, 0.0, 0.0)
    }


def test_what_would_lose_even_for_nothing_says_so() -> None:
    pools = [
        a_pool(nodes=1, gpus=10),
        a_pool("rented", nodes=0, growth={"gpus_per_node": 8, "usd_per_node_h": 9}),
    ]
    problem = a_problem(None, [a_candidate(), a_candidate(pool="rented", cost=0.0, rated_rps=1.0)], pools)
    one = found(problem)["chat/small@rented"]
    assert (one.price_cut, one.extra_cost) == (None, 1.0)


def test_what_no_limit_lets_in_is_no_runner_up() -> None:
    problem = a_problem(
        None, [a_candidate(), a_candidate(pool="west", gpus_per_pod=8)], [a_pool(), a_pool("west", nodes=0)]
    )
    assert found(problem) == {}


def test_the_closest_come_first_and_only_a_few() -> None:
    dearer = [a_candidate(variant=f"v{number}", cost=1.0 + number / 10) for number in range(1, 9)]
    close = list(found(a_problem(None, [a_candidate(), *dearer])))
    assert close == [f"chat/v{number}@east" for number in range(1, 6)]


def test_a_difference_lists_what_is_not_the_same() -> None:
    problem = a_problem(
        [a_demand(rps=4.0), a_demand("code", rps=2.0)],
        [a_candidate(power_w=100.0), a_candidate(variant="large", cost=3.0, rated_rps=2.0, power_w=300.0),
         a_candidate("code", power_w=100.0)],
        allow_unserved=True,
    )  # fmt: skip

    def answer(**counts: int) -> Any:
        named = {
            "chat/small@east": counts.get("small", 0),
            "chat/large@east": counts.get("large", 0),
            "code/small@east": counts.get("code", 0),
        }
        solution = state_with(problem, named)  # type: ignore[arg-type]
        return solution, assess(problem, solution)

    ours, theirs = answer(small=4, code=2), answer(large=2, code=1)
    difference = difference_of(ours, theirs, name="other")
    assert [(d.candidate, d.replicas, d.theirs, d.cost) for d in difference.allocations] == [
        ("chat/large@east", 0, 2, 6.0),
        ("chat/small@east", 4, 0, -4.0),
        ("code/small@east", 2, 1, -1.0),
    ]
    assert [(s.service, s.unserved_rps, s.theirs) for s in difference.services] == [("code", 0.0, 1.0)]
    figures = (difference.cost, difference.unserved_rps, difference.power_w, difference.changes)
    assert figures == (1.0, 1.0, 100.0, -3)
    back = difference_of(theirs, ours, name="ours")
    assert (back.cost, back.unserved_rps) == (-1.0, -1.0)
    assert difference_of(ours, ours, name="same").allocations == ()
