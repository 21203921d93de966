"""Sizes of elastic deployments: floors, maxima, copies, versions, groups and room, each with every reason at once."""

from __future__ import annotations

from typing import Any

import pytest

from models.elastic import Dialect, ElasticEngine, ElasticShape
from models.resizing import SizeReason as Why
from planner.elastic import Room, floor_ranks, judge_size, reachable_sizes

NEW, V27, V23 = ElasticEngine(), ElasticEngine(version="0.27.1"), ElasticEngine(version="0.23.0")
BIG = 1024


def shape(
    experts: int, launch: int, copies: int = 0, *, tp: int = 1, most: int | None = BIG, group: int = 1
) -> ElasticShape:
    return ElasticShape(
        experts=experts,
        launch_ranks=launch,
        redundant_experts=copies,
        tensor_parallel=tp,
        max_ranks=most,
        rank_group=group,
    )


# experts, launch, copies, TP, maximum, wanted: copies then, reasons against it (from the launch size)
CASES = [
    (384, 16, 0, 1, BIG, 16, 0, ()),
    (384, 16, 0, 1, BIG, 20, 96, ()),
    (384, 16, 0, 1, BIG, 17, 24, ()),
    (384, 16, 0, 1, BIG, 12, -96, (Why.BELOW_FLOOR,)),
    (384, 16, 0, 1, BIG, 15, -24, (Why.BELOW_FLOOR,)),
    (384, 16, 0, 1, 20, 20, 96, ()),
    (384, 16, 0, 1, 20, 21, 120, (Why.ABOVE_MAXIMUM,)),
    (384, 16, 0, 1, None, 17, 24, (Why.ABOVE_MAXIMUM,)),
    (384, 12, 0, 1, BIG, 16, 128, ()),
    (384, 12, 0, 1, BIG, 11, -32, (Why.BELOW_FLOOR,)),
    (384, 16, 16, 1, BIG, 15, -9, (Why.BELOW_FLOOR,)),
    (384, 16, 96, 1, BIG, 13, 6, ()),
    (384, 16, 96, 1, BIG, 12, -24, (Why.BELOW_FLOOR,)),
    (384, 8, 0, 2, BIG, 10, 96, ()),
    (384, 8, 0, 2, BIG, 7, -48, (Why.BELOW_FLOOR,)),
    (384, 16, 0, 1, BIG, 58, 1008, ()),
    (384, 16, 0, 1, BIG, 59, 1032, (Why.REDUNDANCY_CAP,)),
    (384, 2, 0, 1, BIG, 8, 1152, (Why.REDUNDANCY_CAP,)),
    (384, 2, 0, 1, 4, 8, 1152, (Why.ABOVE_MAXIMUM, Why.REDUNDANCY_CAP)),
    (256, 16, 0, 1, BIG, 24, 128, ()),
    (256, 16, 32, 1, BIG, 15, 14, ()),
    (256, 16, 32, 1, BIG, 14, -4, (Why.BELOW_FLOOR,)),
    (256, 16, 32, 1, BIG, 24, 176, ()),
    (256, 16, 0, 1, BIG, 79, 1008, ()),
    (256, 16, 0, 1, BIG, 80, 1024, (Why.REDUNDANCY_CAP,)),
    (256, 8, 0, 2, BIG, 8, 0, ()),
    (256, 8, 0, 2, BIG, 9, 32, ()),
    (256, 8, 0, 4, BIG, 40, 1024, (Why.REDUNDANCY_CAP,)),
    (256, 12, 0, 1, BIG, 16, None, (Why.LAUNCH_DOES_NOT_DIVIDE,)),
    (256, 12, 8, 1, BIG, 12, 8, ()),
    (256, 12, 8, 1, BIG, 11, -14, (Why.BELOW_FLOOR,)),
    (256, 12, 32, 1, BIG, 11, 8, ()),
    (160, 8, 0, 1, BIG, 10, 40, ()),
    (160, 5, 0, 1, BIG, 4, -32, (Why.BELOW_FLOOR,)),
    (160, 8, 16, 1, BIG, 8, 16, ()),
    (160, 8, 16, 1, BIG, 7, -6, (Why.BELOW_FLOOR,)),
    (160, 20, 0, 2, BIG, 30, 80, ()),
    (160, 16, 0, 1, BIG, 32, 160, ()),
    (160, 7, 0, 1, BIG, 8, None, (Why.LAUNCH_DOES_NOT_DIVIDE,)),
    (128, 8, 0, 1, BIG, 9, 16, ()),
    (128, 8, 0, 1, BIG, 7, -16, (Why.BELOW_FLOOR,)),
    (128, 8, 64, 1, BIG, 6, 16, ()),
    (128, 8, 64, 1, BIG, 5, -8, (Why.BELOW_FLOOR,)),
    (128, 4, 0, 2, 8, 8, 128, ()),
    (128, 1, 0, 8, 2, 2, 128, ()),
    (64, 2, 0, 1, 8, 3, 32, ()),
    (64, 2, 0, 1, 8, 1, -32, (Why.BELOW_FLOOR,)),
    (64, 4, 0, 1, 8, 9, 80, (Why.ABOVE_MAXIMUM,)),
    (64, 4, 64, 1, 8, 2, 0, ()),
    (64, 2, 0, 1, 64, 34, 1024, (Why.REDUNDANCY_CAP,)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_size_is_judged_by_the_rule_of_slots(case: tuple[Any, ...]) -> None:
    experts, launch, copies, tp, most, wanted, then, why = case
    verdict = judge_size(shape(experts, launch, copies, tp=tp, most=most), wanted, engine=NEW, current=launch)
    assert verdict.redundant_experts == then
    assert tuple(each.reason for each in verdict.refusals) == why
    assert verdict.reachable == (not why)


OF_VERSIONS = [
    (V27, 16, 32, ()),
    (V27, 16, 33, (Why.RANK_CAP_OF_VERSION,)),
    (V27, 16, 15, (Why.BELOW_FLOOR,)),
    (V27.but(all2all_backend="deepep_low_latency"), 16, 40, ()),
    (V23, 16, 20, ()),
    (ElasticEngine(version="0.18.0"), 16, 20, (Why.NOT_ELASTIC,)),
    (ElasticEngine(elastic=False), 16, 20, (Why.NOT_ELASTIC,)),
    (ElasticEngine(version="0.29.1"), 16, 33, (Why.RANK_CAP_OF_VERSION,)),
    (ElasticEngine(version="0.30.0"), 16, 33, ()),
    (ElasticEngine(dialect=Dialect.SGLANG, version="0.5.23"), 16, 20, ()),
    (ElasticEngine(dialect=Dialect.SGLANG, version="0.5.23"), 20, 16, (Why.GROWS_ONLY,)),
]


@pytest.mark.parametrize(("engine", "current", "wanted", "why"), OF_VERSIONS)
def test_versions_refuse_what_they_cannot_do(
    engine: ElasticEngine, current: int, wanted: int, why: tuple[Why, ...]
) -> None:
    verdict = judge_size(shape(384, 16), wanted, engine=engine, current=current)
    assert tuple(each.reason for each in verdict.refusals) == why


def test_versions_that_lose_count_of_copies_never_go_below_the_launch() -> None:
    with_copies = shape(384, 16, 96)
    assert judge_size(with_copies, 14, engine=NEW, current=16).reachable
    refusals = judge_size(with_copies, 14, engine=V23, current=16).refusals
    assert [each.reason for each in refusals] == [Why.BELOW_LAUNCH_UNSAFE]


def test_old_versions_check_no_maximum_so_none_is_supposed() -> None:
    assert judge_size(shape(384, 16, most=None), 24, engine=V27, current=16).reachable


def test_one_rank_alone_is_nothing_for_dynamo() -> None:
    dynamo = ElasticEngine(dialect=Dialect.DYNAMO, version="0.31.0")
    refusals = judge_size(shape(64, 2, 64), 1, engine=dynamo, current=2).refusals
    assert [each.reason for each in refusals] == [Why.ONE_RANK_ALONE]


@pytest.mark.parametrize(
    ("tp", "domain", "elsewhere", "wanted", "why"),
    [
        (1, [4], [], 20, None),
        (1, [3], [], 20, Why.NO_ROOM_ON_NODES),
        (1, [3], [1], 20, Why.NO_ROOM_IN_FABRIC_DOMAIN),
        (2, [1, 1, 1, 1, 1, 1, 1, 1], [], 20, Why.NO_ROOM_ON_NODES),
        (2, [3, 3, 2], [], 19, None),
        (2, [3, 3, 2], [], 20, Why.NO_ROOM_ON_NODES),
        (1, [], [], 12, None),
    ],
)
def test_each_joiner_needs_its_accelerators_on_one_node_of_the_domain(
    tp: int, domain: list[int], elsewhere: list[int], wanted: int, why: Why | None
) -> None:
    elastic = shape(192 * tp, 16, 192 * tp, tp=tp)
    verdict = judge_size(elastic, wanted, engine=NEW, current=16, room=Room(domain, elsewhere))
    assert [each.reason for each in verdict.refusals] == ([] if why is None else [why])


def test_groups_come_and_go_whole() -> None:
    grouped = shape(384, 16, group=4)
    assert reachable_sizes(grouped.but(max_ranks=28), engine=NEW, current=16) == (16, 20, 24, 28)
    facts = judge_size(grouped, 18, engine=NEW, current=16).refusals[0].facts
    assert facts == {"group": 4, "current": 16}


def test_every_reason_is_told_at_once() -> None:
    verdict = judge_size(
        shape(384, 2, most=4, group=4), 9, engine=NEW.but(version="0.30.0"), current=2, room=Room([4])
    )
    assert [each.reason for each in verdict.refusals] == [
        Why.ABOVE_MAXIMUM,
        Why.REDUNDANCY_CAP,
        Why.WHOLE_GROUPS,
        Why.NO_ROOM_ON_NODES,
    ]


def test_reachable_sizes_are_those_that_nothing_speaks_against() -> None:
    assert reachable_sizes(shape(384, 16, most=20), engine=NEW, current=16) == (16, 17, 18, 19, 20)
    assert reachable_sizes(shape(384, 16, most=None), engine=NEW, current=16) == (16,)
    assert reachable_sizes(shape(384, 16), engine=NEW, current=16, room=Room([2])) == (16, 17, 18)
    assert reachable_sizes(shape(256, 12), engine=NEW, current=12) == (12,)
    assert floor_ranks(shape(256, 16, 32)) == 15


def test_every_size_between_floor_and_maximum_keeps_every_expert() -> None:
    for experts in (64, 128, 160, 256, 384):
        for launch in (2, 4, 8, 16, 32):
            for copies in range(0, 65, 32):
                elastic = shape(experts, launch, copies, most=64)
                for ranks in reachable_sizes(elastic, engine=NEW, current=launch):
                    verdict = judge_size(elastic, ranks, engine=NEW, current=launch)
                    assert verdict.redundant_experts is None or 0 <= verdict.redundant_experts <= 1023
