"""Changes of size on the way: grows first, shrinks last, both sides of a redeploy held at once, and the way back."""

from __future__ import annotations

import pytest

from models.plan import Plan, StepKind
from models.problem import Candidate, Problem, Resize
from models.solution import Solution
from planner.rollout import reverse, roll_out
from planner.rollout.timeline import levels_of
from planner.wording.waves import wave_sentence
from tests.builders import a_candidate, a_demand, a_pool, a_problem, a_solution


def moe(current: int = 1) -> Candidate:
    return a_candidate(variant="moe", rated_rps=4.0, pods_per_replica=4, current=current, max_replicas=1)


def way(of: Candidate, pods: int, *, moving: int | None = None) -> Candidate:
    resize = Resize.model_validate(
        {
            "of": of.id,
            "mode": "C" if moving is None else "redeploy",
            "from_ranks": 4,
            "to_ranks": pods,
            "downtime_s": 0.82 if moving is None else 0,
            "lead_s": 92,
            "idle_gpu_seconds": 0,
            "hindered_requests": 0,
            "moving_gpus": max(of.gpus, pods) if moving is None else moving,
        }
    )
    return a_candidate(
        variant=f"moe-{pods}", pods_per_replica=pods, rated_rps=float(pods), resize=resize, startup_s=92.0
    )


def setting(*others: Candidate, nodes: int = 2, rps: float = 1.0) -> Problem:
    services = {c.service for c in others} | {"chat"}
    demands = [a_demand(service, rps=rps) for service in sorted(services)]
    return a_problem(demands, others, [a_pool(nodes=nodes, gpus=4)], allow_unserved=True)


def rolled(problem: Problem, counts: dict[str, int]) -> tuple[Plan, Solution]:
    solution = a_solution(problem, counts)
    return roll_out(problem, solution), solution


def kinds(plan: Plan) -> list[list[str]]:
    return [sorted({f"{step.kind}:{step.variant}" for step in wave.steps}) for wave in plan.waves]


def reached(problem: Problem, plan: Plan) -> dict[str, int]:
    counts = {c.id: c.on_order for c in problem.candidates}
    for wave in plan.waves:
        for step in wave.steps:
            assert step.candidate is not None
            assert counts[step.candidate] == step.before
            counts[step.candidate] = step.after
    return {name: count for name, count in counts.items() if count}


def test_a_change_of_size_is_one_wave_and_one_change() -> None:
    stays = moe()
    larger = way(stays, 6)
    problem = setting(stays, larger)
    plan, _ = rolled(problem, {larger.id: 1})
    assert kinds(plan) == [["resize:moe", "resize:moe-6"]]
    assert (plan.changes, plan.duration_s, plan.stuck, plan.proven_fewest) == (1, 92, None, True)
    assert reached(problem, plan) == {larger.id: 1}
    assert wave_sentence(plan.waves[0]) == (
        "resize 1 × chat/moe@east from 4 to 6 ranks by C (0.82 s without service); about 92 s"
    )


def test_grows_wait_for_accelerators_that_others_leave() -> None:
    stays, leaves = moe(), a_candidate("code", gpus_per_pod=4, current=1, startup_s=10.0)
    larger = way(stays, 8)
    problem = setting(stays, larger, leaves, rps=0.0)
    plan, _ = rolled(problem, {larger.id: 1})
    assert kinds(plan) == [["drain:small", "remove:small"], ["resize:moe", "resize:moe-8"]]
    assert reached(problem, plan) == {larger.id: 1}


def test_shrinks_come_last_but_before_where_others_need_the_room() -> None:
    stays = moe()
    smaller = way(stays, 2)
    comes = a_candidate("code", gpus_per_pod=2, startup_s=10.0)
    with_room = setting(stays, smaller, comes, rps=0.0, nodes=2)
    plan, _ = rolled(with_room, {smaller.id: 1, comes.id: 1})
    assert kinds(plan) == [["start:small"], ["resize:moe", "resize:moe-2"]]
    tight = setting(stays, smaller, comes, rps=0.0, nodes=1)
    plan, _ = rolled(tight, {smaller.id: 1, comes.id: 1})
    assert kinds(plan) == [["resize:moe", "resize:moe-2"], ["start:small"]]
    assert reached(tight, plan) == {smaller.id: 1, comes.id: 1}


@pytest.mark.parametrize(("nodes", "waves"), [(3, 1), (2, 0)])
def test_a_redeploy_holds_both_and_is_stuck_without_the_room(nodes: int, waves: int) -> None:
    stays = moe()
    anew = way(stays, 6, moving=10)
    problem = setting(stays, anew, nodes=nodes)
    plan, _ = rolled(problem, {anew.id: 1})
    assert len(plan.waves) == waves
    assert (plan.stuck is None) == bool(waves)
    if waves:
        assert plan.waves[0].extra_gpus == {"east": 4}


def test_the_way_back_turns_it_round() -> None:
    stays, leaves = moe(), a_candidate("code", gpus_per_pod=4, current=1, startup_s=10.0)
    larger = way(stays, 8)
    problem = setting(stays, larger, leaves, rps=0.0)
    plan, _ = rolled(problem, {larger.id: 1})
    back = reverse(plan, problem)
    assert kinds(back) == [["resize:moe", "resize:moe-8"], ["start:small"]]
    counts = {larger.id: 1}
    for wave in back.waves:
        for step in wave.steps:
            if step.kind is not StepKind.DRAIN:
                assert step.candidate is not None
                assert counts.get(step.candidate, 0) == step.before
                counts[step.candidate] = step.after
    assert {name: count for name, count in counts.items() if count} == {stays.id: 1, leaves.id: 1}
    assert "from 8 to 4 ranks" in wave_sentence(back.waves[0])


def test_accelerators_over_time_are_those_of_both_sides_while_it_runs() -> None:
    stays = moe()
    anew = way(stays, 6, moving=10)
    problem = setting(stays, anew, nodes=3)
    plan, _ = rolled(problem, {anew.id: 1})
    assert [(level.at_s, level.held) for level in levels_of(plan, problem)][1:] == [(0.0, 10), (92.0, 6)]
