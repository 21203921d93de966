"""Budgets, minimums and the user's limits on waves hold on the way, as far as both ends hold them."""

from __future__ import annotations

from typing import Any

import pytest

from models.plan import Plan, WaveLimits
from models.problem import Problem
from planner.errors import ConfigurationError
from planner.rollout import roll_out
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution

OLD, NEW = "chat/old@east", "chat/new@east"


def fleet(*, ready: int = 2, gpus: int = 16, demand: dict[str, Any] | None = None, **fields: Any) -> Problem:
    """Service chat at 2 req/s on replicas of 1 GPU, 1 req/s, 700 W and 1 $/h."""
    candidates = [
        a_candidate(variant="old", current=ready, power_w=700.0),
        a_candidate(variant="new", power_w=700.0),
    ]
    pool = a_pool(nodes=1, gpus=gpus, power_domain="hall")
    return a_problem([a_demand(**{"rps": 2.0} | (demand or {}))], candidates, [pool], **fields)


def most_at_once(plan: Plan) -> int:
    """Replicas that one wave starts at most."""
    return max(sum(s.count for s in wave.steps if s.kind == "start") for wave in plan.waves)


BUDGETS = [
    pytest.param({"quotas": ({"id": "q", "gpus": 3},)}, id="quota"),
    pytest.param({"power": ({"id": "hall", "cap_w": 2100.0},)}, id="power"),
    pytest.param({"spend_usd_per_h": 3.0}, id="spend"),
    pytest.param({"demand": {"max_replicas": 3}}, id="maximum of replicas"),
    pytest.param({"gpus": 3}, id="accelerators"),
]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_with_room_for_one_lets_one_start_at_a_time(budget: dict[str, Any]) -> None:
    problem = fleet(**budget)
    plan = roll_out(problem, a_solution(problem, {NEW: 2}))
    assert (len(plan.waves), most_at_once(plan), plan.stuck) == (4, 1, None)


TIGHT = [
    pytest.param({"quotas": ({"id": "q", "gpus": 2},)}, ("quota", ("q",)), id="quota"),
    pytest.param({"power": ({"id": "hall", "cap_w": 1400.0},)}, ("power", ("hall",)), id="power"),
    pytest.param({"spend_usd_per_h": 2.0}, ("spend", ()), id="spend"),
    pytest.param({"demand": {"max_replicas": 2}}, ("bounds", ("chat",)), id="maximum of replicas"),
    pytest.param({"gpus": 2}, ("gpus", ("east",)), id="accelerators"),
]


@pytest.mark.parametrize(("budget", "row"), TIGHT)
def test_a_budget_without_room_stops_the_plan(
    budget: dict[str, Any], row: tuple[str, tuple[str, ...]]
) -> None:
    problem = fleet(**budget)
    plan = roll_out(problem, a_solution(problem, {NEW: 2}))
    assert plan.waves == ()
    assert plan.stuck is not None
    assert row in {(v.family, v.key) for v in plan.stuck.violations}
    assert (plan.stuck.proven, plan.stuck.drop) == (True, {"chat": 0.5})


def test_a_budget_that_the_start_breaks_may_stay_broken_as_much_and_no_more() -> None:
    problem = fleet(ready=4, quotas=({"id": "q", "gpus": 3},))
    plan = roll_out(problem, a_solution(problem, {NEW: 2}))
    held = 4
    for wave in plan.waves:
        starts = sum(s.count for s in wave.steps if s.kind == "start")
        assert held + starts <= 4
        held += starts - sum(s.count for s in wave.steps if s.kind == "remove")
    assert (held, len(plan.waves), plan.stuck) == (2, 3, None)


def test_a_budget_that_the_solution_breaks_may_be_broken_as_much_on_the_way() -> None:
    problem = fleet(quotas=({"id": "q", "gpus": 3},))
    plan = roll_out(problem, a_solution(problem, {OLD: 2, NEW: 2}))
    assert (len(plan.waves), plan.stuck) == (1, None)


def test_a_minimum_of_replicas_that_serve_holds() -> None:
    """Nothing arrives, so only the minimum keeps replicas from going first."""
    problem = fleet(gpus=3, demand={"rps": 0.0, "min_replicas": 2})
    plan = roll_out(problem, a_solution(problem, {NEW: 2}))
    assert (len(plan.waves), plan.proven_fewest) == (4, True)
    free = fleet(gpus=3, demand={"rps": 0.0})
    assert len(roll_out(free, a_solution(free, {NEW: 2})).waves) == 2


def test_a_service_that_serves_less_in_the_end_may_serve_as_little_on_the_way() -> None:
    problem = fleet(gpus=2, allow_unserved=True)
    plan = roll_out(problem, a_solution(problem, {NEW: 1}))
    assert [sorted(step.kind.value for step in wave.steps) for wave in plan.waves] == [
        ["drain", "remove"],
        ["start"],
        ["drain", "remove"],
    ]


LIMITS = [
    pytest.param({}, 2, id="none"),
    pytest.param({"max_surge_gpus": 2}, 4, id="two GPUs of surge"),
    pytest.param({"max_surge_gpus": 1}, 8, id="one GPU of surge"),
    pytest.param({"max_surge_replicas": 2}, 4, id="two replicas of surge"),
    pytest.param({"max_step_gpus": 1}, 5, id="steps of one GPU"),
    pytest.param({"max_step_gpus": 2}, 3, id="steps of two GPUs"),
]


@pytest.mark.parametrize(("limits", "waves"), LIMITS)
def test_limits_on_waves(limits: dict[str, int], waves: int) -> None:
    """Four replicas change their variant. Small steps overlap: while later ones start, earlier ones' elders drain."""
    problem = fleet(ready=4, demand={"rps": 4.0})
    plan = roll_out(problem, a_solution(problem, {NEW: 4}), limits=WaveLimits(**limits))
    assert (len(plan.waves), plan.proven_fewest, plan.limits) == (waves, True, WaveLimits(**limits))


def test_no_surge_at_all_is_no_way() -> None:
    problem = fleet()
    plan = roll_out(problem, a_solution(problem, {NEW: 2}), limits=WaveLimits(max_surge_gpus=0))
    assert plan.stuck is not None
    assert "surge" in {violation.family for violation in plan.stuck.violations}


@pytest.mark.parametrize(("most", "waves"), [(None, 2), (2, 2), (1, 4), (0, 2)])
def test_replicas_that_may_be_unavailable(most: int | None, waves: int) -> None:
    """Nothing arrives and two nodes are full, so all may go first; or as many as may lack; or none, through a surge."""
    gpus = 4 if most == 0 else 2
    problem = fleet(gpus=gpus, demand={"rps": 0.0})
    plan = roll_out(problem, a_solution(problem, {NEW: 2}), limits=WaveLimits(max_unavailable=most))
    assert (len(plan.waves), plan.stuck) == (waves, None)
    assert (plan.waves[0].steps[0].kind == "start") is (most == 0)


def test_a_step_smaller_than_a_replica_is_refused() -> None:
    problem = a_problem(candidates=[a_candidate(gpus_per_pod=4)])
    with pytest.raises(ConfigurationError, match="at least 4, one whole replica"):
        roll_out(problem, a_solution(problem, {"chat/small@east": 1}), limits=WaveLimits(max_step_gpus=2))
