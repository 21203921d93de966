"""Room on single nodes: free GPUs of a pool that no pod can use, because no node has enough of them."""

from __future__ import annotations

from typing import Any

import pytest

from models.problem import Problem
from models.report import RowUse
from models.scenario import Incumbents
from planner.referee import assess
from tests.builders import a_candidate, a_node, a_pool, a_problem, a_solution, an_incumbent, fully_served

FOUR, ONE = "chat/four@east", "chat/one@east"


def a_fragmented_problem(*free: int, **fields: Any) -> Problem:
    """Pods of 4 GPUs and of 1 on nodes of 8 of which so many are free."""
    nodes = [a_node(f"n{i}", free_gpus=gpus) for i, gpus in enumerate(free)]
    candidates = [a_candidate(variant="four", gpus_per_pod=4), a_candidate(variant="one")]
    return a_problem(candidates=candidates, pools=[a_pool(nodes=nodes)], **fields)


def rows(problem: Problem, counts: dict[str, int], **fields: Any) -> dict[str, RowUse]:
    answer = assess(problem, a_solution(problem, counts, served=fully_served(problem, 0.0), **fields))
    return {row.key[1]: row for row in answer.rows if row.family == "placement"}


@pytest.mark.parametrize(
    ("free", "counts", "expected"),
    [
        # used, limit, free GPUs
        ((5, 3, 6), {FOUR: 2}, (2, 2, 6)),
        ((5, 3, 8), {FOUR: 2}, (2, 3, 8)),
        ((8, 8), {}, (0, 4, 16)),
        ((3, 3, 3), {}, (0, 0, 9)),
        # a pod of 1 may go where it breaks no slot of 4
        ((5, 4), {FOUR: 1, ONE: 1}, (1, 2, 4)),
        ((4, 4), {FOUR: 1, ONE: 1}, None),
    ],
    ids=["none", "one-more", "empty", "never", "gap", "the-row-gpus-says-it"],
)
def test_pods_that_find_no_node(
    free: tuple[int, ...], counts: dict[str, int], expected: tuple[int, int, int] | None
) -> None:
    row = rows(a_fragmented_problem(*free), counts).get("4")
    assert (row and (row.used, row.limit, row.facts["free_gpus"])) == expected


def test_the_row_binds_where_not_one_more_fits_however_pods_are_placed() -> None:
    row = rows(a_fragmented_problem(5, 3, 6), {FOUR: 2})["4"]
    assert (row.binds, row.unit, row.step) == (True, "pods of 4 GPUs", 1)


def test_pods_of_one_gpu_have_no_row_of_their_own() -> None:
    assert set(rows(a_fragmented_problem(8, 8), {ONE: 3})) == {"4"}


@pytest.mark.parametrize(("rule", "more"), [(Incumbents.PINNED, 0), (Incumbents.MOVABLE, 1)])
def test_pinned_pods_keep_a_slot_that_moving_them_would_free(rule: Incumbents, more: int) -> None:
    plain = a_fragmented_problem(4, 3)
    one = plain.candidate[ONE].but(current=1)  # type: ignore[index]  # a plain text is a name
    problem = plain.but(
        candidates=(plain.candidates[0], one), incumbents=(an_incumbent(one, "n0"),), incumbents_rule=rule
    )
    row = rows(problem, {ONE: 1})["4"]
    assert (row.used, row.limit) == (0, more)


def test_a_pool_that_may_grow_has_room() -> None:
    problem = a_fragmented_problem(3, 3)
    pool = problem.pools[0].but(growth={"gpus_per_node": 8})
    assert rows(problem.but(pools=(pool,)), {}) == {}


def test_nodes_that_take_no_pods_have_no_room() -> None:
    nodes = [a_node("n0", free_gpus=3), a_node("n1", free_gpus=3), a_node("n2", accepts_pods=False)]
    problem = a_fragmented_problem(8).but(pools=(a_pool(nodes=nodes),))
    row = rows(problem, {})["4"]
    assert (row.limit, row.facts) == (0, {"free_gpus": 6})
