"""Where pods are: packing, incumbents that stay or move, and placements that a solution brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from models.problem import Incumbent, NodeState, Problem
from models.scenario import Incumbents, Mode
from models.solution import Placement
from planner.referee import Unplaced, added_node, assess, check, pack
from planner.referee.bays import Seat, kept_replicas
from tests.builders import a_candidate, a_node, a_pool, a_problem, a_solution, an_incumbent

SMALL, BIG = "chat/small@east", "chat/big@east"


def a_fleet(
    nodes: Sequence[NodeState], *sizes: int, incumbents: Sequence[Incumbent] = (), **fields: Any
) -> Problem:
    """One pool and candidates ``v<size>`` of one pod each; nothing is promised."""
    return a_problem(
        candidates=[a_candidate(variant=f"v{size}", gpus_per_pod=size) for size in sizes],
        pools=[a_pool(nodes=nodes)],
        incumbents=tuple(incumbents),
        allow_unserved=True,
        **fields,
    )


def counts(**replicas: int) -> dict[str, int]:
    return {f"chat/{variant}@east": n for variant, n in replicas.items()}


def found(
    problem: Problem, replicas: dict[str, int], placements: Sequence[Placement] = (), **fields: Any
) -> list[Any]:
    solution = a_solution(problem, replicas, served=(), placements=tuple(placements), **fields)
    return [(v.family, v.key, v.found, v.allowed) for v in check(problem, solution)]


@pytest.mark.parametrize(
    ("free", "replicas", "missing"),
    [
        pytest.param([4, 4], {"v8": 1}, (8, 1), id="eight GPUs in two halves"),
        pytest.param([8, 4], {"v8": 1, "v4": 1}, None, id="largest first"),
        pytest.param([6, 6], {"v4": 3}, (4, 1), id="two GPUs are left on each node"),
        pytest.param([8, 7], {"v3": 1, "v5": 1, "v4": 1}, None, id="sizes that do not divide"),
        pytest.param([6, 6, 6], {"v2": 3, "v4": 3}, None, id="full"),
        pytest.param([], {"v1": 1}, (1, 1), id="no node at all"),
        pytest.param([0, 0], {"v1": 2}, (1, 2), id="foreign pods hold everything"),
    ],
)
def test_a_pod_needs_its_gpus_on_one_node(
    free: list[int], replicas: dict[str, int], missing: tuple[int, int] | None
) -> None:
    nodes = [a_node(f"n{i}", free_gpus=gpus) for i, gpus in enumerate(free)]
    problem = a_fleet(nodes, *sorted(int(variant[1:]) for variant in replicas))
    answer = pack(problem, counts(**replicas))
    if missing is None:
        assert isinstance(answer, tuple)
        assert found(problem, counts(**replicas)) == []
    else:
        assert answer == Unplaced("east", *missing)
        size, pods = missing
        assert ("placement", ("east", str(size)), pods, 0) in found(problem, counts(**replicas))


def test_largest_first_is_not_the_last_word_where_sizes_do_not_divide() -> None:
    # the pod of 3 belongs with one of 2 on the larger node; largest first puts it where least is left over
    problem = a_fleet([a_node("n0", free_gpus=4), a_node("n1", free_gpus=5)], 2, 3)
    assert found(problem, counts(v3=1, v2=3)) == []
    assert pack(problem, counts(v3=2, v2=2)) == Unplaced("east", 2, 1)


def test_hundreds_of_nodes_with_sizes_that_do_not_divide() -> None:
    nodes = [a_node(f"n{i:03}") for i in range(300)]
    problem = a_fleet(nodes, 3, 5)
    assert isinstance(pack(problem, counts(v5=300, v3=300)), tuple)
    assert isinstance(pack(problem, counts(v5=300, v3=301)), Unplaced)
    assert isinstance(pack(problem, counts(v5=100, v3=500)), tuple)
    assert isinstance(pack(problem, counts(v5=100, v3=501)), Unplaced)


def test_pods_of_a_replica_stay_in_their_fabric_domain() -> None:
    nodes = [
        a_node("a0", fabric_domain="a"),
        a_node("a1", fabric_domain="a"),
        a_node("b0", fabric_domain="b"),
    ]
    wide = {"pods_per_replica": 2, "gpus_per_pod": 8}
    in_a, in_b, anywhere = (
        a_candidate(domain="a", **wide),
        a_candidate(domain="b", **wide),
        a_candidate(**wide),
    )
    problem = a_problem(candidates=[in_a, in_b, anywhere], pools=[a_pool(nodes=nodes)])
    assert isinstance(pack(problem, {in_a.id: 1}), tuple)
    assert pack(problem, {in_b.id: 1}) == Unplaced("east", 8, 1)
    assert isinstance(pack(problem, {anywhere.id: 1}), tuple)
    assert isinstance(pack(problem, {in_a.id: 1, anywhere.id: 1}), Unplaced)


def test_added_nodes_are_empty_and_of_no_fabric_domain() -> None:
    wide = a_candidate(domain="a", pods_per_replica=2, gpus_per_pod=4)
    single = a_candidate(variant="one", gpus_per_pod=4)
    pool = a_pool(nodes=0, growth={"gpus_per_node": 8, "max_nodes": 2})
    problem = a_problem(candidates=[wide, single], pools=[pool])
    assert isinstance(pack(problem, {wide.id: 1}, {"east": 2}), Unplaced)
    assert pack(problem, {single.id: 3}, {"east": 2}) == (
        Placement(candidate=single.id, node="east+0", pods=2),
        Placement(candidate=single.id, node=added_node("east", 1), pods=1),
    )


def test_pools_without_limits_have_no_placement() -> None:
    problem = a_fleet([], 8, mode=Mode.UNCONSTRAINED)
    assert pack(problem, counts(v8=50)) == ()
    assert found(problem, counts(v8=50)) == []


def seated(*nodes: str, size: int = 4, count: int = 1) -> Incumbent:
    return an_incumbent(a_candidate(variant=f"v{size}"), *nodes, count=count)


TWO_HALF_FULL = [seated("n0"), seated("n1")]


def test_pinned_replicas_keep_their_nodes_even_where_that_leaves_no_room() -> None:
    nodes = [a_node("n0"), a_node("n1")]
    pinned = a_fleet(nodes, 4, 8, incumbents=TWO_HALF_FULL)
    assert found(pinned, counts(v4=2, v8=1)) == [("incumbents", ("east", "8"), 1, 0)]
    movable = pinned.but(incumbents_rule=Incumbents.MOVABLE)
    assert found(movable, counts(v4=2, v8=1)) == []
    assert assess(movable, a_solution(movable, counts(v4=2, v8=1), served=())).changes == 2 + 1 + 1


def test_a_move_counts_as_a_change() -> None:
    nodes = [a_node("n0"), a_node("n1")]
    problem = a_fleet(
        nodes, 4, 8, incumbents=TWO_HALF_FULL, incumbents_rule=Incumbents.MOVABLE, max_changes=3
    )
    assert found(problem, counts(v4=2, v8=1)) == [("change", (), 4, 3)]


def test_which_of_the_pinned_replicas_go_is_free() -> None:
    nodes = [a_node("n0"), a_node("n1")]
    seats = [seated("n0", count=2), seated("n1", count=2)]
    problem = a_fleet(nodes, 4, 8, incumbents=seats)
    assert found(problem, counts(v4=2, v8=1)) == []
    assert found(problem, counts(v4=3, v8=1)) == [
        ("gpus", ("east",), 20, 16),
        ("placement", ("east", "8"), 1, 0),
    ]


def test_replicas_of_several_pods_go_or_stay_as_a_whole() -> None:
    wide = a_candidate(pods_per_replica=2, gpus_per_pod=4)
    big = a_candidate(variant="big", gpus_per_pod=8)
    nodes = [a_node(f"n{i}") for i in range(4)]
    seats = (an_incumbent(wide, "n0", "n1"), an_incumbent(wide, "n1", "n2"), an_incumbent(wide, "n2", "n3"))
    problem = a_problem(candidates=[wide, big], pools=[a_pool(nodes=nodes)], incumbents=seats)
    # dropping the replica on n0 and n1 frees n0, dropping the middle one frees nothing
    answer = pack(problem, {wide.id: 2, big.id: 1})
    assert isinstance(answer, tuple)
    assert {one.node for one in answer if one.candidate == big.id} <= {"n0", "n3"}
    assert isinstance(pack(problem, {wide.id: 1, big.id: 2}), tuple)
    assert isinstance(pack(problem, {wide.id: 2, big.id: 2}), Unplaced)


def test_a_cordoned_node_keeps_its_pods_and_gets_no_new_ones() -> None:
    nodes = [a_node("n0", accepts_pods=False), a_node("n1")]
    problem = a_fleet(nodes, 4, incumbents=[seated("n0")])
    assert pack(problem, counts(v4=3)) == (
        Placement(candidate="chat/v4@east", node="n0", pods=1, kept=1),
        Placement(candidate="chat/v4@east", node="n1", pods=2),
    )
    assert found(problem, counts(v4=4)) == [("gpus", ("east",), 16, 12), ("placement", ("east", "4"), 1, 0)]


def test_replicas_on_a_node_that_is_not_ready_are_lost() -> None:
    nodes = [a_node("n0", holds_pods=False), a_node("n1")]
    problem = a_fleet(nodes, 4, incumbents=[seated("n0")])
    assert pack(problem, counts(v4=1)) == (Placement(candidate="chat/v4@east", node="n1", pods=1),)


def test_fewest_replicas_move() -> None:
    # Room for one of 8 GPUs: moving the single 4 off n0 is one move, emptying n1 would be two
    nodes = [a_node("n0"), a_node("n1"), a_node("n2", free_gpus=4)]
    seats = [seated("n0"), seated("n1", size=2, count=2)]
    problem = a_fleet(nodes, 2, 4, 8, incumbents=seats, incumbents_rule=Incumbents.MOVABLE)
    answer = pack(problem, counts(v4=1, v2=2, v8=1))
    assert isinstance(answer, tuple)
    assert {(one.node, one.kept) for one in answer if one.candidate == "chat/v2@east"} == {("n1", 2)}


PINNED_PAIR = a_fleet(
    [a_node("n0"), a_node("n1", accepts_pods=False)], 4, incumbents=[seated("n0"), seated("n1")]
)


def placed(node: str, pods: int, kept: int = 0, candidate: str = "chat/v4@east") -> Placement:
    return Placement(candidate=candidate, node=node, pods=pods, kept=kept)


@pytest.mark.parametrize(
    ("replicas", "placements", "expected"),
    [
        pytest.param(3, [placed("n0", 2, 1), placed("n1", 1, 1)], [], id="good"),
        pytest.param(3, [placed("n0", 2), placed("n1", 1)], [], id="good without saying who stays"),
        pytest.param(
            3,
            [placed("n0", 1, 1), placed("n1", 2, 1)],
            [("placement", ("chat/v4@east", "n1"), 2, 1)],
            id="new pod on a cordoned node",
        ),
        pytest.param(
            2,
            [placed("n0", 2, 1)],
            [("incumbents", ("chat/v4@east",), 1, 2)],
            id="left its node",
        ),
        pytest.param(
            3,
            [placed("n0", 1, 1), placed("n1", 1, 1)],
            [("placement", ("chat/v4@east",), 2, 3)],
            id="a pod is nowhere",
        ),
        pytest.param(
            4,
            [placed("n0", 3, 1), placed("n1", 1, 1)],
            [("gpus", ("east",), 16, 12), ("placement", ("n0",), 12, 8)],
            id="more than a node has",
        ),
        pytest.param(
            3,
            [placed("n0", 1, 1), placed("n1", 1, 1), placed("moon", 1)],
            [("placement", ("moon",), 4, 0), ("placement", ("chat/v4@east", "moon"), 1, 0)],
            id="a node that is not there",
        ),
    ],
)
def test_placements_of_a_solution_are_judged(
    replicas: int, placements: list[Placement], expected: list[Any]
) -> None:
    assert found(PINNED_PAIR, counts(v4=replicas), placements) == expected


def test_a_pod_must_be_in_its_own_pool() -> None:
    problem = a_problem(candidates=[a_candidate()], pools=[a_pool(), a_pool("west")], allow_unserved=True)
    placements = [placed("west-0", 1, candidate=SMALL)]
    assert found(problem, {SMALL: 1}, placements) == [("placement", (SMALL, "west-0"), 1, 0)]


@pytest.mark.parametrize(
    ("pods", "kept"),
    [
        ({}, 0),
        ({"a": 1, "b": 1}, 1),
        ({"a": 2, "b": 2, "c": 2}, 2),
        ({"a": 1, "b": 2, "c": 1}, 2),
        ({"b": 9}, 0),
    ],
)
def test_replicas_that_can_be_where_they_were(pods: dict[Any, int], kept: int) -> None:
    candidate = a_candidate(pods_per_replica=2)
    seats = [Seat(candidate, (("a", 1), ("b", 1)), 1), Seat(candidate, (("b", 1), ("c", 1)), 1)]  # type: ignore[arg-type]
    assert kept_replicas(seats, pods) == kept
