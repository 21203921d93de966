"""Orders by hand: what comes first, in how many waves, and what the judge of a state allows."""

from __future__ import annotations

from typing import Any

import pytest

from models.plan import Plan, StepKind, WaveLimits
from models.problem import Problem
from models.solution import Solution, Status
from planner.errors import ConfigurationError
from planner.rollout import roll_out
from tests.builders import a_candidate, a_demand, a_node, a_pool, a_problem, a_solution, an_incumbent

OLD, NEW = "chat/old@east", "chat/new@east"


def steps(plan: Plan) -> list[list[str]]:
    """Waves as short words: ``start chat/new@east 0>2``."""
    return [
        [f"{s.kind.value} {s.candidate or s.pool} {s.before}>{s.after}" for s in wave.steps]
        for wave in plan.waves
    ]


def change_of_variant(
    *, ready: int = 2, gpus: int = 4, old: dict[str, Any] | None = None, **fields: Any
) -> Problem:
    """Service chat at 2 req/s on ``ready`` replicas of the old variant, each of 1 GPU and 1 req/s; one node."""
    candidates = [
        a_candidate(variant="old", current=ready, startup_s=90.0, **old or {}),
        a_candidate(variant="new", startup_s=120.0),
    ]
    demand = a_demand(rps=2.0, **fields.pop("demand", {}))
    return a_problem([demand], candidates, [a_pool(nodes=1, gpus=gpus)], **fields)


def test_the_new_is_ready_before_the_old_goes() -> None:
    problem = change_of_variant()
    plan = roll_out(problem, a_solution(problem, {NEW: 2}))
    assert steps(plan) == [[f"start {NEW} 0>2"], [f"drain {OLD} 2>2", f"remove {OLD} 2>0"]]
    assert [wave.duration_s for wave in plan.waves] == [120.0, 60.0]
    assert (plan.duration_s, plan.changes, plan.proven_fewest, plan.stuck) == (180.0, 4, True, None)
    assert [wave.extra_gpus for wave in plan.waves] == [{"east": 2}, {"east": 2}]


def test_with_room_for_one_it_goes_one_by_one() -> None:
    problem = change_of_variant(gpus=3)
    plan = roll_out(problem, a_solution(problem, {NEW: 2}))
    assert steps(plan) == [
        [f"start {NEW} 0>1"],
        [f"drain {OLD} 2>2", f"remove {OLD} 2>1"],
        [f"start {NEW} 1>2"],
        [f"drain {OLD} 1>1", f"remove {OLD} 1>0"],
    ]
    assert plan.proven_fewest


def test_a_replica_that_is_not_needed_drains_while_others_start() -> None:
    problem = change_of_variant(ready=3)
    plan = roll_out(problem, a_solution(problem, {OLD: 2, NEW: 1}))
    assert steps(plan) == [[f"start {NEW} 0>1", f"drain {OLD} 3>3", f"remove {OLD} 3>2"]]


def test_nothing_to_do_has_no_waves() -> None:
    problem = change_of_variant()
    plan = roll_out(problem, a_solution(problem, {OLD: 2}))
    assert (plan.waves, plan.duration_s, plan.changes, plan.proven_fewest) == ((), 0.0, 0, True)


def test_an_empty_fleet_starts_everything_at_once() -> None:
    problem = change_of_variant(ready=0)
    plan = roll_out(problem, a_solution(problem, {OLD: 1, NEW: 2}))
    assert steps(plan) == [[f"start {NEW} 0>2", f"start {OLD} 0>1"]]
    assert plan.duration_s == 120.0


def test_a_service_that_shall_serve_nothing_goes_at_once() -> None:
    problem = change_of_variant(allow_unserved=True)
    plan = roll_out(problem, a_solution(problem, {}, served=()), limits=WaveLimits(drain_s=30.0))
    assert steps(plan) == [[f"drain {OLD} 2>2", f"remove {OLD} 2>0"]]
    assert plan.duration_s == 30.0


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(4, ["await old 4>4"], id="as many as are on order"),
        pytest.param(
            5, ["await old 4>4", "start old 4>5"], id="one more is ordered, two are not ordered again"
        ),
        pytest.param(
            3, ["cancel old 4>3", "await old 3>3"], id="one is cancelled before anything is drained"
        ),
        pytest.param(2, ["cancel old 4>2"], id="both are cancelled"),
        pytest.param(1, ["cancel old 4>2", "drain old 2>2", "remove old 2>1"], id="ready ones go last"),
    ],
)
def test_replicas_on_order(wanted: int, expected: list[str]) -> None:
    problem = change_of_variant(old={"pending": 2}, gpus=8, allow_unserved=True)
    plan = roll_out(problem, a_solution(problem, {OLD: wanted}))
    assert steps(plan) == [[step.replace("old", OLD) for step in expected]]


def test_what_is_on_order_serves_only_after_the_first_wave() -> None:
    problem = change_of_variant(ready=1, old={"pending": 1}, demand={"min_replicas": 1})
    plan = roll_out(problem, a_solution(problem, {OLD: 1, NEW: 1}))
    assert steps(plan) == [[f"cancel {OLD} 2>1", f"start {NEW} 0>1"]]


def test_replicas_on_order_without_room_are_awaited_when_there_is_room() -> None:
    """Four GPUs: two ready replicas of the old variant with two each, and one of the new on order that cannot start."""
    candidates = [
        a_candidate(variant="old", current=2, gpus_per_pod=2, rated_rps=2.0),
        a_candidate(variant="new", pending=1, gpus_per_pod=2, rated_rps=2.0, startup_s=90.0),
    ]
    problem = a_problem([a_demand(rps=2.0)], candidates, [a_pool(nodes=1, gpus=4)])
    plan = roll_out(problem, a_solution(problem, {OLD: 1, NEW: 1}))
    assert steps(plan) == [[f"drain {OLD} 2>2", f"remove {OLD} 2>1"], [f"await {NEW} 1>1"]]
    assert plan.changes == 1


def test_nodes_are_there_before_pods_start_on_them() -> None:
    growth = {"gpus_per_node": 4, "max_nodes": 2, "usd_per_node_h": 3.0}
    problem = a_problem(
        [a_demand(rps=6.0)],
        [a_candidate(current=4, startup_s=50.0)],
        [a_pool(nodes=1, gpus=4, growth=growth)],
    )
    problem = problem.but(incumbents=(an_incumbent(problem.candidates[0], "east-0", count=4),))
    plan = roll_out(problem, a_solution(problem, {"chat/small@east": 6}, nodes_added={"east": 1}))
    assert steps(plan) == [["add_nodes east 0>1"], ["start chat/small@east 4>6"]]
    assert plan.waves[1].steps[0].nodes == ("east+0", "east+0")
    assert plan.duration_s == 350.0


def swap(*, free: int, known: bool = True) -> tuple[Problem, Solution]:
    """Two services, each with two replicas of 4 GPUs in one pool, want each other's pool; east has ``free`` nodes more."""
    figures = {"gpus_per_pod": 4, "rated_rps": 5.0}
    candidates = [
        a_candidate("chat", "a", "east", current=2, **figures),
        a_candidate("chat", "a", "west", **figures),
        a_candidate("code", "b", "west", current=2, **figures),
        a_candidate("code", "b", "east", **figures),
    ]
    pools = [
        a_pool("east", [a_node(f"e{i}", 4) for i in range(2 + free)]),
        a_pool("west", [a_node(f"w{i}", 4) for i in range(2)]),
    ]
    seats = [an_incumbent(candidates[0], f"e{i}") for i in range(2)]
    seats += [an_incumbent(candidates[2], f"w{i}") for i in range(2)]
    problem = a_problem(
        [a_demand("chat"), a_demand("code")], candidates, pools, incumbents=tuple(seats) if known else ()
    )
    return problem, a_solution(problem, {"chat/a@west": 2, "code/b@east": 2})


def test_two_services_swap_pools_through_two_free_nodes() -> None:
    plan = roll_out(*swap(free=2))
    assert [[step.split()[0] + " " + step.split()[1] for step in wave] for wave in steps(plan)] == [
        ["start code/b@east"],
        ["drain code/b@west", "remove code/b@west"],
        ["start chat/a@west"],
        ["drain chat/a@east", "remove chat/a@east"],
    ]
    assert plan.proven_fewest


@pytest.mark.parametrize("known", [True, False])
def test_two_services_swap_pools_through_one_free_node(known: bool) -> None:
    plan = roll_out(*swap(free=1, known=known))
    assert (len(plan.waves), plan.proven_fewest, plan.stuck) == (8, True, None)


def test_steps_name_the_nodes_of_their_pods_where_they_are_known() -> None:
    known, unknown = (roll_out(*swap(free=2, known=known)) for known in (True, False))
    nodes = [[step.nodes for step in wave.steps] for wave in known.waves]
    assert nodes == [[("e2", "e3")], [("w0", "w1")] * 2, [("w0", "w1")], [("e0", "e1")] * 2]
    assert {step.nodes for wave in unknown.waves for step in wave.steps} == {()}


def test_replicas_of_several_pods_start_where_all_their_pods_fit() -> None:
    figures = {"pods_per_replica": 2, "gpus_per_pod": 4, "rated_rps": 5.0}
    candidates = [
        a_candidate(variant="old", domain="rack", current=1, **figures),
        a_candidate(variant="new", domain="rack", **figures),
    ]
    nodes = [a_node(f"n{i}", 4, fabric_domain="rack") for i in range(4)]
    problem = a_problem(
        [a_demand(rps=5.0)],
        candidates,
        [a_pool(nodes=nodes)],
        incumbents=(an_incumbent(candidates[0], "n0", "n1"),),
    )
    plan = roll_out(problem, a_solution(problem, {f"{NEW}#rack": 1}))
    assert [[(s.kind, s.nodes) for s in wave.steps] for wave in plan.waves] == [
        [(StepKind.START, ("n2", "n3"))],
        [(StepKind.DRAIN, ("n0", "n1")), (StepKind.REMOVE, ("n0", "n1"))],
    ]


def test_pods_that_run_stay_where_they_are_until_they_drain() -> None:
    """Room for the large pod is where the small one leaves, not where another stays."""
    small = a_candidate("code", "s", current=2)
    large = a_candidate("chat", "l", gpus_per_pod=4, rated_rps=10.0)
    problem = a_problem(
        [a_demand("chat"), a_demand("code", rps=1.0)],
        [small, large],
        [a_pool(nodes=[a_node("a", 4), a_node("b", 4)])],
        incumbents=(an_incumbent(small, "a"), an_incumbent(small, "b")),
        allow_unserved=True,
    )
    plan = roll_out(problem, a_solution(problem, {small.id: 1, large.id: 1}))
    drained, started = plan.waves[0].steps[0], plan.waves[1].steps[0]
    assert (drained.kind, started.kind) == (StepKind.DRAIN, StepKind.START)
    assert started.nodes == drained.nodes


def test_a_replica_moves_if_that_is_allowed_and_nothing_else_does() -> None:
    small = a_candidate("code", "s", current=2, startup_s=30.0)
    large = a_candidate("chat", "l", gpus_per_pod=4, rated_rps=10.0)
    problem = a_problem(
        [a_demand("chat"), a_demand("code", rps=2.0)],
        [small, large],
        [a_pool(nodes=[a_node("a", 4), a_node("b", 4)])],
        incumbents=(an_incumbent(small, "a"), an_incumbent(small, "b")),
        incumbents_rule="movable",
        allow_unserved=True,
    )
    plan = roll_out(problem, a_solution(problem, {small.id: 2, large.id: 1}))
    kinds = [[f"{s.kind.value} {s.service}" for s in wave.steps] for wave in plan.waves]
    assert kinds == [["start code"], ["drain code", "remove code"], ["start chat"]]
    assert plan.changes == 2


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        pytest.param({"status": Status.INFEASIBLE}, "has no plan", id="no plan"),
        pytest.param({"counts": {"code/x@west": 1}}, "of another problem", id="unknown candidate"),
        pytest.param({"nodes_added": {"south": 1}}, "of another problem", id="unknown pool"),
    ],
)
def test_what_cannot_be_rolled_out_is_refused(solution: dict[str, Any], message: str) -> None:
    problem = change_of_variant()
    with pytest.raises(ConfigurationError, match=message):
        roll_out(problem, a_solution(problem).but(**solution))
