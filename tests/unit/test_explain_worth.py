"""What one more is worth: each case small enough to be solved on paper."""

from __future__ import annotations

from typing import Final

import pytest

from models.explanation import Evidence, Worth
from models.hardware import NodeGrowth, PowerDomain, Quota
from models.ids import ServiceId
from models.problem import Problem
from models.saturation import Headroom
from models.workload import ServiceKind
from planner.clock import FakeClock
from planner.optimization import look_closer, solve
from planner.optimization.backends.linear import relaxed_value
from planner.optimization.explaining.feasibility import Oracle
from planner.optimization.explaining.limits import Rerated
from planner.optimization.explaining.worth import worth_of
from planner.optimization.program import Goal, Row
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem
from tests.engines import a_program

DEAR: Final = a_candidate(variant="large", pool="west", cost=5.0)
WEST: Final = a_pool("west")


def worths(problem: Problem, **options: object) -> dict[tuple[str, tuple[str, ...]], Worth]:
    oracle = Oracle(clock=FakeClock(), deadline_s=60.0)
    return {(each.family, each.key): each for each in worth_of(problem, oracle, **options)}  # type: ignore[arg-type]


def short_of(gpus: int, **fields: object) -> Problem:
    """Ten replicas are needed; what the cheap pool lacks runs at five times the price."""
    pools = [a_pool(nodes=[a_node("n0", gpus)]), WEST]
    return a_problem(None, [a_candidate(), DEAR], pools, **fields)


def test_one_more_gpu_saves_what_the_dear_replica_costs_more() -> None:
    found = worths(short_of(8))[("gpus", ("east",))]
    assert (found.limit, found.unit, found.one.amount) == (8, "GPUs", 1)
    assert (found.one.level, found.one.value, found.one.unit) == ("cost", 4.0, "$/h")
    assert found.one.evidence is Evidence.PROVEN
    assert found.first == found.one


def test_what_is_not_scarce_is_worth_nothing_however_much_of_it() -> None:
    found = worths(short_of(8))[("gpus", ("west",))]
    assert (found.one.level, found.one.value, found.first, found.searched) == (None, 0.0, None, 64)


@pytest.mark.parametrize("pod", [2, 3, 4, 7, 8])
def test_the_first_step_that_pays_is_a_whole_pod(pod: int) -> None:
    cheap = a_candidate(gpus_per_pod=pod, rated_rps=5.0)
    problem = a_problem(
        None, [cheap, DEAR.but(cost=0.5)], [a_pool(nodes=[a_node("n0", 8 if pod > 4 else pod)]), WEST]
    )
    found = worths(problem)[("gpus", ("east",))]
    assert found.one.level is None
    assert found.first is not None
    assert (found.first.amount, found.first.level, found.first.value) == (pod, "cost", 1.5)


def test_under_scarcity_it_is_demand_that_is_served() -> None:
    problem = a_problem(None, None, [a_pool(nodes=1)], allow_unserved=True)
    one = worths(problem)[("gpus", ("east",))].one
    assert (one.level, one.value, one.unit) == ("unserved-share/priority1", pytest.approx(0.1), "share")


@pytest.mark.parametrize(
    ("problem", "key", "amount", "level", "value"),
    [
        (short_of(16, quotas=(Quota(id="q", gpus=10),)), ("quota", ("q",)), 1, None, 0),
        (a_problem(None, [a_candidate(power_w=4000.0)], [a_pool(power_domain="hall")], allow_unserved=True,
                   power=(PowerDomain(id="hall", cap_w=20_000.0),)),
         ("power", ("hall",)), 10_000, "unserved-share/priority1", 0.2),
        (a_problem(None, [a_candidate(cost=50.0)], allow_unserved=True, spend_usd_per_h=300.0),
         ("spend", ()), 100, "unserved-share/priority1", 0.2),
        (a_problem(None, [a_candidate(current=4)], allow_unserved=True, max_changes=2),
         ("change", ()), 1, "unserved-share/priority1", 0.1),
        (a_problem(None, None, [a_pool(nodes=0, growth=NodeGrowth(gpus_per_node=4, max_nodes=2))],
                   allow_unserved=True),
         ("nodes", ("east",)), 1, "unserved-share/priority1", 0.2),
        (a_problem([a_demand(headroom=Headroom(relative=0.2))]), ("headroom", ("chat",)), 0.05, "cost", 0.0),
        (a_problem([a_demand(headroom=Headroom(burst_rps=10.0))], [a_candidate(cost=2.0)], [a_pool(nodes=3)]),
         ("headroom", ("chat",)), 1.0, "cost", 2.0),
    ],
    ids=["quota", "power", "spend", "changes", "nodes", "relative headroom", "burst"],
)  # fmt: skip
def test_every_kind_has_a_step_of_its_own(
    problem: Problem, key: tuple[str, tuple[str, ...]], amount: float, level: str | None, value: float
) -> None:
    one = worths(problem)[key].one
    assert one.amount == amount
    assert (one.level, one.value) == ((level, pytest.approx(value)) if value else (None, 0.0))


def test_headroom_is_searched_down_to_nothing() -> None:
    found = worths(a_problem([a_demand(headroom=Headroom(relative=0.12))]))[("headroom", ("chat",))]
    assert found.first is not None
    assert (found.first.amount, found.first.value, found.searched) == (0.05, 1.0, 0.12)


def test_a_batch_service_has_no_headroom_to_give() -> None:
    demand = a_demand(kind=ServiceKind.BATCH, headroom=Headroom(relative=0.5))
    assert ("headroom", ("chat",)) not in worths(a_problem([demand]))


def test_looser_latency_promises_are_sized_again() -> None:
    problem = short_of(8)

    def rerate(_: ServiceId, factor: float) -> Rerated | None:
        if factor < 1.5:
            return None
        faster = [
            c.but(rated_rps=1.25, surge_rps=1.25) if c.pool == "east" else c for c in problem.candidates
        ]
        return Rerated(problem.but(candidates=faster), {"ttft_s": factor})

    found = worths(problem, rerate=rerate)[("slo", ("chat",))]
    assert found.one.level is None
    assert found.first is not None
    assert (found.first.amount, found.first.value) == (1.5, 10.0)


def test_without_time_nothing_is_said() -> None:
    assert worth_of(short_of(8), Oracle(clock=FakeClock(), deadline_s=0.0)) == ()


def test_what_time_does_not_reach_is_an_estimate_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    oracle = Oracle(clock=clock, deadline_s=60.0)
    plan = Oracle.plan

    def slow(self: Oracle, problem: Problem, **fields: object) -> object:
        found = plan(self, problem, **fields)  # type: ignore[arg-type]
        clock.advance(55.0)
        return found

    monkeypatch.setattr(Oracle, "plan", slow)
    found = {(each.family, each.key): each for each in worth_of(short_of(8), oracle)}
    one = found["gpus", ("east",)].one
    assert (one.evidence, one.level, one.value) == (Evidence.ESTIMATE, "cost", pytest.approx(4.0))
    assert found["gpus", ("west",)].one.level is None


def test_a_closer_look_finds_worth_only_when_asked() -> None:
    problem = short_of(8)
    solution = solve(problem, solver="pulp").solution
    assert look_closer(problem, solution).worth == ()
    assert look_closer(problem, solution, worth=True).worth != ()


def test_the_linear_relaxation() -> None:
    program = a_program({("a",): 10, ("b",): 10}, Row(("r",), {("a",): 2, ("b",): 3}, lower=7))
    assert relaxed_value(program, Goal("cost", {("a",): 1, ("b",): 2}), seconds=5) == pytest.approx(3.5)
    assert relaxed_value(
        program, Goal("cost", {("a",): 1}, constant=4, unit=0.5), seconds=5
    ) == pytest.approx(2.0)
    impossible = a_program({("a",): 1}, Row(("r",), {("a",): 1}, lower=2))
    assert relaxed_value(impossible, Goal("cost", {("a",): 1}), seconds=5) is None
    assert relaxed_value(program, Goal("cost", {("a",): 1}), seconds=0) is None
