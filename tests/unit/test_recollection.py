"""Remembered patterns are made right for the blocks of today, and are only proposals."""

from __future__ import annotations

import numpy as np
import pytest

from models.hardware import NodeGrowth
from models.problem import Problem
from planner.optimization.backends.column_generation.preparation import Prepared, prepared
from planner.optimization.backends.column_generation.recollection import Level, proposals, remember
from planner.optimization.formulation import formulate
from planner.optimization.formulation.goals import cost_goal
from planner.optimization.program import Key
from tests.builders import a_candidate, a_demand, a_pool, a_problem

SMALL: Key = ("n", "chat/small@east")
LARGE: Key = ("n", "chat/large@east")


def serving(rps: float, **demand: object) -> Problem:
    candidates = [
        a_candidate(rated_rps=1.0, cost=1.0),
        a_candidate(variant="large", gpus_per_pod=4, rated_rps=4.0, cost=3.5),
    ]
    return a_problem([a_demand(rps=rps, **demand)], candidates, [a_pool(nodes=4)])


def remembered(problem: Problem, *plans: dict[Key, int]) -> Level:
    ready = prepared(formulate(problem).program)
    (block,) = ready.shape.blocks
    return Level(tuple((block, plan) for plan in plans), {}, None)


def proposed(ready: Prepared, problem: Problem, level: Level) -> list[dict[Key, int]]:
    usage = ready.usage(cost_goal(formulate(problem).index).terms)
    found = proposals(ready, usage, [level])
    costs, _ = usage.of_each([pattern.decode() for pattern in found])
    assert [pattern.cost for pattern in found] == costs.tolist()
    return [{key: value for key, value in p.decode().items() if value and key[0] == "n"} for p in found]


@pytest.mark.parametrize(
    ("rps", "plan", "right"),
    [
        (9.0, {LARGE: 2, SMALL: 1}, [{LARGE: 2, SMALL: 1}]),
        (9.5, {LARGE: 2, SMALL: 1}, [{LARGE: 2, SMALL: 2}]),
        (12.9, {LARGE: 2, SMALL: 1}, [{LARGE: 3, SMALL: 1}]),
        (5.0, {LARGE: 3}, [{LARGE: 3}, {LARGE: 2}]),
        (8.0, {LARGE: 2, SMALL: 1}, [{LARGE: 2, SMALL: 1}, {LARGE: 2}]),
        (2.0, {SMALL: 9_999}, [{SMALL: 3}, {SMALL: 2}]),
    ],
    ids=["fits", "one small more", "one large more", "one large less", "one small less", "beyond its bound"],
)
def test_a_pattern_is_topped_up_and_made_smaller(
    rps: float, plan: dict[Key, int], right: list[dict[Key, int]]
) -> None:
    now = serving(rps)
    found = proposed(prepared(formulate(now).program), now, remembered(serving(9.0), plan))
    assert found == right


def test_what_no_change_of_one_candidate_makes_right_is_forgotten() -> None:
    now = serving(9.0, max_replicas=2)
    ready = prepared(formulate(now).program)
    assert proposed(ready, now, remembered(serving(9.0), {SMALL: 9})) == []


def test_patterns_of_a_service_that_is_gone_are_forgotten() -> None:
    gone = a_problem([a_demand("other", rps=2.0)], [a_candidate("other")], [a_pool()])
    now = serving(9.0)
    level = remembered(gone, {("n", "other/small@east"): 2})
    assert proposed(prepared(formulate(now).program), now, level) == []


def test_equal_patterns_are_proposed_once() -> None:
    now = serving(9.0)
    level = remembered(serving(9.0), {LARGE: 2, SMALL: 1}, {LARGE: 2, SMALL: 1})
    ready = prepared(formulate(now).program)
    assert len(proposed(ready, now, level)) == 1
    assert np.all(ready.ties.scales >= 1)


def test_what_the_linear_program_uses_is_remembered_beside_columns_of_no_service() -> None:
    services = ("chat", "code", "draft")
    problem = a_problem(
        [a_demand(name, rps=9.0) for name in services],
        [a_candidate(name, rated_rps=1.0, cost=1.0, gpus_per_pod=1) for name in services],
        [a_pool(nodes=4, growth=NodeGrowth(max_nodes=4, gpus_per_node=8))],
    )
    ready = prepared(formulate(problem).program)
    usage = ready.usage(cost_goal(formulate(problem).index).terms)
    relaxation = ready.relaxation(usage, np.full(len(ready.shape.tying), 1e3))
    master = relaxation.master
    assert master.columns
    relaxed = relaxation.run(gap=1e-9, keep_going=lambda: True, report=lambda value, bound: None)
    assert relaxed.answer is not None
    level = remember(ready, master, relaxed.answer, relaxed.prices, None)
    used = {
        pattern.block
        for pattern, weight in zip(master.patterns, relaxed.answer.weights, strict=False)
        if weight > 0
    }
    assert (
        used == {ready.shape.blocks.index(block) for block, _ in level.patterns} == set(range(len(services)))
    )
