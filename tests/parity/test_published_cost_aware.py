"""Cost-aware: the published decision cases, and more of the same kinds."""

from __future__ import annotations

import itertools

import pytest

from planner.saturation.published import (
    AnalyzerSignal,
    Reason,
    ServiceState,
    VariantState,
    cost_aware,
    scale_down,
    scale_up,
)


def v(name: str, cost: float, size: float, current: int, **more: object) -> VariantState:
    fields: dict[str, object] = {"accelerator": "A100", **more}
    return VariantState(name=name, cost=cost, per_replica_capacity=size, current=current, **fields)  # type: ignore[arg-type]


def both(required: float = 0.0, spare: float = 0.0, **more: object) -> AnalyzerSignal:
    return AnalyzerSignal(required={"both": required}, spare={"both": spare}, **more)  # type: ignore[arg-type]


def roles(
    required: dict[str, float] | None = None, spare: dict[str, float] | None = None, **more: object
) -> AnalyzerSignal:
    names = sorted({*(required or {}), *(spare or {})})
    return AnalyzerSignal(
        required={name: (required or {}).get(name, 0.0) for name in names},
        spare={name: (spare or {}).get(name, 0.0) for name in names},
        **more,  # type: ignore[arg-type]
    )


def service(*variants: VariantState, by: AnalyzerSignal | tuple[AnalyzerSignal, ...]) -> ServiceState:
    return ServiceState(name="svc", variants=variants, signals=by if isinstance(by, tuple) else (by,))


P, D = {"role": "prefill"}, {"role": "decode"}
CA12 = (v("p", 15, 10_000, 2, **P), v("d", 5, 10_000, 3, **D))

PUBLISHED = {
    "CA-1": ((v("cheap", 5, 10_000, 2), v("exp", 15, 20_000, 1)), both(5_000), (3, 1)),
    "CA-2": ((v("cheap", 5, 10_000, 1), v("mid", 10, 15_000, 1)), both(25_000), (4, 1)),
    "CA-3": ((v("cheap", 5, 10_000, 2, pending=1), v("mid", 10, 15_000, 1)), both(5_000), (3, 1)),
    "CA-4": ((v("zero", 1, 0, 0), v("normal", 10, 10_000, 1)), both(5_000), (0, 2)),
    "CA-6": ((v("cheap", 5, 10_000, 3), v("exp", 15, 20_000, 2)), both(spare=15_000), (2, 2)),
    "CA-7": ((v("exp", 15, 20_000, 1), v("cheap", 5, 10_000, 1)), both(spare=30_000), (0, 1)),
    "CA-8": ((v("exp", 15, 20_000, 1), v("cheap", 5, 10_000, 1)), both(spare=15_000), (1, 0)),
    "CA-10": (
        (v("exp", 15, 20_000, 3, min_replicas=2), v("cheap", 5, 10_000, 3)),
        both(spare=50_000),
        (2, 0),
    ),
    "CA-11": (
        (v("keep", 15, 20_000, 2, min_replicas=1), v("expendable", 5, 10_000, 3, min_replicas=0)),
        both(spare=80_000),
        (1, 0),
    ),
    "CA-12": (CA12, roles(spare={"prefill": 0, "decode": 20_000}), (2, 1)),
    "CA-14": (
        (v("decode-exp", 10, 10_000, 1, **D), v("decode-cheap", 5, 10_000, 1, **D)),
        roles(spare={"decode": 20_000}),
        (0, 1),
    ),
    "CA-15": ((*CA12, v("orphan", 20, 10_000, 2)), roles(spare={"prefill": 0, "decode": 20_000}), (2, 1, 2)),
    "CA-16": (
        (v("p", 5, 10_000, 1, **P), v("d", 5, 10_000, 1, **D)),
        roles({"prefill": 20_000, "decode": 20_000}),
        (3, 3),
    ),
    "CA-18": (
        (v("p", 5, 10_000, 2, **P), v("d", 5, 10_000, 1, **D)),
        roles({"prefill": 0, "decode": 10_000}),
        (2, 2),
    ),
    "CA-21": ((v("a", 5, 10_000, 2),), (both(5_000), both(25_000, name="throughput")), (5,)),
    "CA-22": ((v("a", 5, 10_000, 2),), both(), (2,)),
}

SAME_KIND = {
    "exactly-one-replica": ((v("a", 5, 10_000, 1),), both(10_000), (2,)),
    "a-hair-over-one-replica": ((v("a", 5, 10_000, 1),), both(10_000.001), (3,)),
    "from-zero-replicas": ((v("a", 5, 10_000, 0),), both(1), (1,)),
    "efficiency-beats-price": ((v("cheap", 5, 5_000, 1), v("large", 8, 20_000, 1)), both(20_000), (1, 2)),
    "efficiency-tie-goes-by-name": ((v("b", 5, 10_000, 1), v("a", 10, 20_000, 1)), both(5_000), (1, 2)),
    "free-variant-first": ((v("free", 0, 1_000, 0), v("paid", 1, 10_000, 0)), both(3_000), (3, 0)),
    "ceiling-spills-to-the-next": (
        (v("cheap", 5, 10_000, 2, max_replicas=3), v("mid", 10, 15_000, 1)),
        both(30_000),
        (3, 3),
    ),
    "ceiling-already-reached": (
        (v("cheap", 5, 10_000, 3, max_replicas=3), v("mid", 10, 15_000, 1)),
        both(5_000),
        (3, 2),
    ),
    "ceiling-below-what-runs": (
        (v("cheap", 5, 10_000, 5, max_replicas=3), v("mid", 10, 15_000, 1)),
        both(5_000),
        (5, 2),
    ),
    "ceiling-zero-is-no-ceiling": ((v("a", 5, 10_000, 1, max_replicas=0),), both(45_000), (6,)),
    "all-ceilings-reached": ((v("a", 5, 10_000, 1, max_replicas=2),), both(45_000), (2,)),
    "nobody-has-a-size": ((v("a", 5, 0, 1),), both(5_000), (1,)),
    "negative-size-is-no-size": ((v("a", 1, -5, 1), v("b", 2, 1_000, 1)), both(1_000), (1, 2)),
    "no-variants": ((), both(5_000), ()),
    "all-pending-still-picked": ((v("a", 5, 10_000, 2, pending=2),), both(5_000), (3,)),
    "spare-just-short-of-a-replica": ((v("a", 5, 10_000, 3),), both(spare=9_999), (3,)),
    "spare-exactly-a-replica": ((v("a", 5, 10_000, 3),), both(spare=10_000), (2,)),
    "alone-keeps-one": ((v("a", 5, 10_000, 3),), both(spare=1e9), (1,)),
    "alone-with-min-two": ((v("a", 5, 10_000, 3, min_replicas=2),), both(spare=1e9), (2,)),
    "below-min-is-left-alone": ((v("a", 5, 10_000, 1, min_replicas=2),), both(spare=1e9), (1,)),
    "at-zero-stays-zero": ((v("a", 5, 10_000, 0),), both(spare=1e9), (0,)),
    "equal-cost-keeps-the-larger": (
        (v("small", 5, 5_000, 1), v("large", 5, 10_000, 1)),
        both(spare=1e9),
        (0, 1),
    ),
    "equal-cost-and-size-keeps-the-last-name": (
        (v("b", 5, 5_000, 1), v("a", 5, 5_000, 1)),
        both(spare=1e9),
        (1, 0),
    ),
    "sizeless-last-takes-the-protection": (
        (v("exp", 15, 10_000, 2), v("none", 1, 0, 0)),
        both(spare=1e9),
        (0, 0),
    ),
    "three-in-order-of-cost": (
        (v("a", 1, 10_000, 2), v("b", 2, 10_000, 2), v("c", 3, 10_000, 2)),
        both(spare=35_000),
        (2, 1, 0),
    ),
    "skips-one-too-large-to-spare": (
        (v("big", 9, 50_000, 1), v("s", 1, 10_000, 3)),
        both(spare=20_000),
        (1, 1),
    ),
    "up-wins-over-down": ((v("a", 5, 10_000, 1),), both(10_000, spare=50_000), (2,)),
    "shortage-of-decode-postpones-release-of-prefill": (
        (v("p", 5, 10_000, 4, **P), v("d", 5, 10_000, 1, **D)),
        roles({"decode": 10_000}, {"prefill": 30_000}),
        (4, 2),
    ),
    "each-role-keeps-one": (
        (v("p", 5, 10_000, 4, **P), v("d", 5, 10_000, 3, **D)),
        roles(spare={"prefill": 1e9, "decode": 1e9}),
        (1, 1),
    ),
    "role-without-variants-stops-all": (
        (v("d", 5, 10_000, 1, **D),),
        roles({"prefill": 10_000, "decode": 10_000}),
        (1,),
    ),
    "role-that-needs-nothing-but-cannot-be-picked-stops-all": (
        (v("p", 5, 10_000, 2, max_replicas=2, **P), v("d", 5, 10_000, 1, **D)),
        roles({"prefill": 0, "decode": 10_000}),
        (2, 1),
    ),
    "capped-prefill-holds-decode-back": (
        (v("p", 5, 10_000, 1, max_replicas=2, **P), v("d", 5, 10_000, 1, **D)),
        roles({"prefill": 40_000, "decode": 40_000}),
        (2, 2),
    ),
    "roles-of-unequal-size": (
        (v("p", 5, 20_000, 1, **P), v("d", 5, 5_000, 1, **D)),
        roles({"prefill": 40_000, "decode": 40_000}),
        (3, 9),
    ),
    "empty-role-is-both": ((v("a", 5, 10_000, 1, role=""),), both(5_000), (2,)),
}


@pytest.mark.parametrize(("variants", "by", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_published_case_gives_the_published_targets(
    variants: tuple[VariantState, ...],
    by: AnalyzerSignal | tuple[AnalyzerSignal, ...],
    expected: tuple[int, ...],
) -> None:
    assert tuple(cost_aware(service(*variants, by=by)).replicas.values()) == expected


def test_of_two_services_one_grows_and_one_shrinks() -> None:
    """CA-20: each is decided by itself, whatever the other one needs."""
    services = [
        ServiceState(name="up", variants=(v("a", 5, 10_000, 1),), signals=(both(5_000),)),
        ServiceState(name="down", variants=(v("a", 5, 10_000, 2),), signals=(both(spare=10_000),)),
    ]
    for order in itertools.permutations(services):
        targets = {each.name: cost_aware(each).replicas for each in order}
        assert targets == {"up": {"a": 2}, "down": {"a": 1}}


@pytest.mark.parametrize(("variants", "by", "expected"), SAME_KIND.values(), ids=SAME_KIND)
def test_a_case_of_the_same_kind_follows_the_same_rules(
    variants: tuple[VariantState, ...],
    by: AnalyzerSignal | tuple[AnalyzerSignal, ...],
    expected: tuple[int, ...],
) -> None:
    assert tuple(cost_aware(service(*variants, by=by)).replicas.values()) == expected


TWO = v("a", 5, 10_000, 5)
DEAD = {"live": False}
OTHER = {"name": "throughput"}

BALLOTS = {
    "down-is-the-smallest-spare": ((both(spare=35_000), both(spare=12_000, **OTHER)), 4),
    "one-without-spare-vetoes": ((both(spare=35_000), both(spare=0, **OTHER)), 5),
    "a-dead-one-does-not-veto": ((both(spare=35_000), both(spare=0, **OTHER, **DEAD)), 2),
    "a-dead-one-does-not-permit": ((both(spare=5_000), both(spare=50_000, **OTHER, **DEAD)), 5),
    "a-disabled-one-does-not-ask": ((both(0), both(50_000, **OTHER, enabled=False)), 5),
    "a-disabled-one-does-not-veto": ((both(spare=35_000), both(spare=0, **OTHER, enabled=False)), 2),
    "all-dead-holds": ((both(spare=35_000, **DEAD),), 5),
    "all-disabled-holds": ((both(50_000, enabled=False),), 5),
    "nobody-informative-holds": ((both(50_000, informative=False),), 5),
    "no-analyzers-holds": ((), 5),
    "up-in-own-units": ((both(5_000), both(90, **OTHER, capacities={"a": 30})), 8),
    "down-in-own-units": ((both(spare=35_000), both(spare=65, **OTHER, capacities={"a": 30})), 3),
    "without-a-size-for-the-variant-no-say-in-how-many": (
        (both(spare=25_000), both(spare=1, **OTHER, capacities={})),
        3,
    ),
    "saturation-dead-the-other-sizes": ((both(**DEAD), both(90, **OTHER, capacities={"a": 30})), 8),
    "saturation-dead-two-others-hold": (
        (both(**DEAD), both(90, **OTHER, capacities={"a": 30}), both(90, name="slo", capacities={"a": 30})),
        5,
    ),
}


@pytest.mark.parametrize(("ballot", "expected"), BALLOTS.values(), ids=BALLOTS)
def test_several_analyzers_take_the_maximum_up_and_the_unanimous_minimum_down(
    ballot: tuple[AnalyzerSignal, ...], expected: int
) -> None:
    for order in itertools.permutations(ballot):
        assert cost_aware(service(TWO, by=order)).replicas == {"a": expected}


def test_a_capped_pick_over_credits_an_analyzer_of_another_unit() -> None:
    """Known departure: 10,000 tokens are taken from a demand of 90 tokens/s, so the second variant gets nothing."""
    cheap, dear = v("cheap", 1, 10_000, 1, max_replicas=2), v("dear", 9, 10_000, 1)
    ballot = (both(5_000), both(90, name="throughput", capacities={"cheap": 30, "dear": 30}))
    assert cost_aware(service(cheap, dear, by=ballot)).replicas == {"cheap": 2, "dear": 1}


def test_scale_down_ties_are_broken_by_score_weighted_size() -> None:
    ballot = (
        both(spare=30_000),
        both(spare=1e9, name="throughput", score=9, capacities={"x": 5_000, "y": 1_000}),
    )
    x, y = v("x", 5, 10_000, 1), v("y", 5, 20_000, 1)
    assert cost_aware(service(x, y, by=ballot)).replicas == {"x": 1, "y": 0}


def test_greedy_keeps_cost_15_where_10_would_do() -> None:
    variants, by, _ = PUBLISHED["CA-8"]
    kept = cost_aware(service(*variants, by=by)).replicas
    cost = {variant.name: variant.cost for variant in variants}
    capacity = {variant.name: variant.per_replica_capacity for variant in variants}
    needed = 30_000 - 15_000
    cheapest = min(
        n * cost["exp"] + m * cost["cheap"]
        for n, m in itertools.product(range(4), repeat=2)
        if n * capacity["exp"] + m * capacity["cheap"] >= needed
    )
    assert sum(cost[name] * count for name, count in kept.items()) == 15
    assert cheapest == 10


def test_reasons_and_what_is_left_are_data() -> None:
    grown = scale_up(
        service(v("a", 5, 10_000, 1, max_replicas=2), v("b", 9, 10_000, 1, max_replicas=1), by=both(25_000))
    )
    assert grown.reasons == {"a": Reason.SCALE_UP, "b": Reason.STEADY}
    assert grown.unmet == {"both": 15_000}
    shrunk = scale_down(service(v("a", 5, 10_000, 3), by=both(spare=10_000)))
    assert shrunk.reasons == {"a": Reason.SCALE_DOWN}
    held = cost_aware(service(TWO, by=()))
    assert held.reasons == {"a": Reason.HELD}
