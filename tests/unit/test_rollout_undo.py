"""The way back leads to where it began, through the same states."""

from __future__ import annotations

from typing import Any

import pytest

from models.plan import Plan, WaveLimits
from models.problem import Problem
from planner.rollout import reverse, roll_out
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution

OLD, NEW = "chat/old@east", "chat/new@east"


def fleet(**old: Any) -> Problem:
    candidates = [
        a_candidate(variant="old", startup_s=90.0, **{"current": 2} | old),
        a_candidate(variant="new", startup_s=120.0),
    ]
    growth = {"gpus_per_node": 4, "max_nodes": 2}
    return a_problem([a_demand(rps=2.0)], candidates, [a_pool(nodes=1, gpus=4, growth=growth)])


def steps(plan: Plan) -> list[list[str]]:
    return [
        [f"{s.kind.value} {s.candidate or s.pool} {s.before}>{s.after}" for s in wave.steps]
        for wave in plan.waves
    ]


def test_waves_and_steps_are_turned_round() -> None:
    problem = fleet()
    plan = roll_out(problem, a_solution(problem, {NEW: 2}), limits=WaveLimits(drain_s=30.0))
    back = reverse(plan, problem)
    assert steps(back) == [[f"start {OLD} 0>2"], [f"drain {NEW} 2>2", f"remove {NEW} 2>0"]]
    assert [wave.duration_s for wave in back.waves] == [90.0, 30.0]
    assert (back.duration_s, back.derived_from) == (120.0, plan.fingerprint)
    assert [wave.extra_gpus for wave in back.waves] == [{"east": 2}, {"east": 2}]


def test_nodes_go_last_and_are_empty_by_then() -> None:
    problem = fleet()
    plan = roll_out(problem, a_solution(problem, {OLD: 2, NEW: 4}, nodes_added={"east": 1}))
    assert steps(plan) == [["add_nodes east 0>1", f"start {NEW} 0>2"], [f"start {NEW} 2>4"]]
    assert steps(reverse(plan, problem)) == [
        [f"drain {NEW} 4>4", f"remove {NEW} 4>2"],
        [f"drain {NEW} 2>2", f"remove {NEW} 2>0", "remove_nodes east 1>0"],
    ]


def test_what_was_cancelled_is_ordered_again_at_the_end_and_what_was_awaited_stays() -> None:
    problem = fleet(pending=2)
    plan = roll_out(problem, a_solution(problem, {OLD: 3, NEW: 1}))
    assert steps(plan) == [[f"cancel {OLD} 4>3", f"await {OLD} 3>3", f"start {NEW} 0>1"]]
    assert steps(reverse(plan, problem)) == [[f"drain {NEW} 1>1", f"remove {NEW} 1>0"], [f"start {OLD} 3>4"]]


@pytest.mark.parametrize("counts", [{OLD: 2}, {NEW: 2}, {OLD: 1, NEW: 3}])
def test_there_and_back_is_where_it_began(counts: dict[str, int]) -> None:
    problem = fleet()
    plan = roll_out(problem, a_solution(problem, counts))
    now = {OLD: 2, NEW: 0}
    for wave in (*plan.waves, *reverse(plan, problem).waves):
        for step in wave.steps:
            assert step.candidate is not None
            assert step.before == now[step.candidate]
            now[step.candidate] = step.after
    assert now == {OLD: 2, NEW: 0}
