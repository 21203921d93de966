"""Rescale: the published water-filling and reclaim cases, and more of the same kinds."""

from __future__ import annotations

import itertools

import pytest

from planner.saturation.published import (
    UNBOUNDED,
    AnalyzerSignal,
    Budget,
    Claim,
    Reason,
    RescaleScope,
    ServiceState,
    VariantState,
    rescale,
    rescaled_fair_share,
    water_fill,
)
from planner.saturation.published.rescale import demand_gpus
from planner.saturation.published.water_filling import split_by_weight


def c(name: str, priority: float, demand: float, cap: int, floor: int = 0) -> Claim:
    return Claim(id=name, priority=priority, demand=demand, floor_gpus=floor, cap_gpus=cap)


WATER = {
    "RS-1": ((c("A", 1, 8, 8), c("B", 3, 8, 8)), 8, {"A": 2, "B": 6}, False),
    "RS-2": ((c("A", 1, 8, 8), c("B", 3, 4, 4)), 8, {"A": 4, "B": 4}, False),
    "RS-5": ((c("idle", 1, 0, 5, floor=1), c("busy", 1, 8, 8)), 6, {"idle": 1, "busy": 5}, False),
    "RS-6": ((c("A", 1, 8, 8, floor=4), c("B", 1, 8, 8, floor=3)), 6, {"A": 4, "B": 3}, True),
    "no-claims": ((), 6, {}, False),
    "one-claim-under-its-cap": ((c("A", 1, 9, 9),), 6, {"A": 6}, False),
    "one-claim-at-its-cap": ((c("A", 1, 4, 4),), 6, {"A": 4}, False),
    "budget-zero": ((c("A", 1, 4, 4), c("B", 1, 4, 4)), 0, {"A": 0, "B": 0}, False),
    "negative-budget-is-a-conflict": ((c("A", 1, 4, 4),), -1, {"A": 0}, True),
    "floors-use-all": ((c("A", 1, 8, 8, floor=4), c("B", 1, 8, 8, floor=2)), 6, {"A": 4, "B": 2}, False),
    "floor-plus-share": ((c("A", 1, 8, 8, floor=2), c("B", 1, 8, 8)), 8, {"A": 5, "B": 3}, False),
    "remainder-by-id": ((c("B", 1, 5, 5), c("A", 1, 5, 5)), 5, {"B": 2, "A": 3}, False),
    "largest-remainder": ((c("A", 1, 10, 9), c("B", 1.9, 10, 9)), 4, {"A": 1, "B": 3}, False),
    "three-way-remainder": (
        (c("A", 1, 4, 4), c("B", 1, 4, 4), c("C", 1, 4, 4)),
        8,
        {"A": 3, "B": 3, "C": 2},
        False,
    ),
    "excess-splits-again": (
        (c("A", 9, 1, 1), c("B", 1, 9, 9), c("C", 2, 9, 9)),
        10,
        {"A": 1, "B": 3, "C": 6},
        False,
    ),
    "cap-below-floor-is-the-floor": ((c("A", 1, 8, 1, floor=3), c("B", 1, 8, 8)), 8, {"A": 3, "B": 5}, False),
    "priority-zero-stays-at-its-floor": (
        (c("A", 0, 8, 8, floor=1), c("B", 1, 4, 4)),
        8,
        {"A": 1, "B": 4},
        False,
    ),
    "all-caps-met-leaves-gpus": ((c("A", 1, 2, 2), c("B", 1, 3, 3)), 8, {"A": 2, "B": 3}, False),
}


@pytest.mark.parametrize(("claims", "budget", "expected", "conflict"), WATER.values(), ids=WATER)
def test_water_fills_by_weight_between_floors_and_caps(
    claims: tuple[Claim, ...], budget: int, expected: dict[str, int], conflict: bool
) -> None:
    for order in itertools.permutations(claims):
        shares = water_fill(order, budget)
        assert (shares.gpus, shares.conflict) == (expected, conflict)


def test_one_id_may_claim_once() -> None:
    with pytest.raises(ValueError, match="unique"):
        water_fill([c("A", 1, 1, 1), c("A", 1, 2, 2)], 4)


SPLITS = {
    "one-role-takes-all": (7, {"both": 0}, {"both": 0}, {"both": 9}, {"both": 7}),
    "by-weight": (8, {"d": 6, "p": 2}, {"d": 0, "p": 0}, {"d": 0, "p": 0}, {"d": 6, "p": 2}),
    "floors-first": (8, {"d": 6, "p": 0}, {"d": 0, "p": 0}, {"d": 0, "p": 2}, {"d": 6, "p": 2}),
    "fallback-without-weight": (4, {"d": 0, "p": 0}, {"d": 1, "p": 3}, {"d": 0, "p": 0}, {"d": 1, "p": 3}),
    "nothing-to-weigh-by": (4, {"d": 0, "p": 0}, {"d": 0, "p": 0}, {"d": 1, "p": 1}, {"d": 3, "p": 1}),
    "remainder-by-role": (3, {"d": 1, "p": 1}, {"d": 0, "p": 0}, {"d": 0, "p": 0}, {"d": 2, "p": 1}),
    "below-floors": (1, {"d": 1, "p": 1}, {"d": 0, "p": 0}, {"d": 1, "p": 1}, {"d": 1, "p": 1}),
}


@pytest.mark.parametrize(("total", "weights", "fallback", "floors", "expected"), SPLITS.values(), ids=SPLITS)
def test_roles_split_a_share_by_demand_above_their_floors(
    total: int,
    weights: dict[str, int],
    fallback: dict[str, int],
    floors: dict[str, int],
    expected: dict[str, int],
) -> None:
    assert split_by_weight(total, weights=weights, fallback=fallback, floors=floors) == expected


def s(name: str, priority: float, demand: float, current: int, **more: object) -> ServiceState:
    fields: dict[str, object] = {"accelerator": "A100", "cost": 5.0, **more}
    namespace = str(fields.pop("namespace", "default"))
    variant = VariantState(name=name, per_replica_capacity=1000, current=current, **fields)  # type: ignore[arg-type]
    required = max(0.0, demand - 1000 * current)
    signal = AnalyzerSignal(required={"both": required}, spare={"both": 0.0}, demand={"both": demand})
    return ServiceState(
        name=name, namespace=namespace, priority=priority, variants=(variant,), signals=(signal,)
    )


DEMANDS = {
    "RS-7": (8500, 1000, 1, 9),
    "exact": (8000, 1000, 1, 8),
    "two-gpus-each": (8500, 1000, 2, 18),
    "nothing": (0, 1000, 1, 0),
    "negative": (-5, 1000, 1, 0),
    "no-size": (8500, 0, 1, 0),
}


@pytest.mark.parametrize(("demand", "size", "gpus", "expected"), DEMANDS.values(), ids=DEMANDS)
def test_demand_in_gpus_is_rounded_up_to_replicas(
    demand: float, size: float, gpus: int, expected: int
) -> None:
    signal = AnalyzerSignal(demand={"decode": demand, "prefill": 1e9})
    variant = VariantState(
        name="d",
        accelerator="A100",
        cost=1,
        per_replica_capacity=size,
        current=0,
        role="decode",
        gpus_per_replica=gpus,
    )
    service = ServiceState(name="m", variants=(variant,), signals=(signal,))
    assert demand_gpus(service, signal, "decode") == expected


GROUPS = {
    "RS-8": ((s("A", 1, 8000, 8), s("B", 3, 8000, 0)), Budget({"A100": 0}), {"A": 2, "B": 0}),
    "next-cycle-fills": ((s("A", 1, 8000, 2), s("B", 3, 8000, 0)), Budget({"A100": 6}), {"A": 2, "B": 6}),
    "fills-what-is-free": ((s("A", 1, 8000, 6), s("B", 3, 8000, 0)), Budget({"A100": 2}), {"A": 2, "B": 2}),
    "more-important-fills-first": (
        (s("A", 1, 8000, 0), s("B", 3, 8000, 0), s("C", 1, 8000, 8)),
        Budget({"A100": 2}),
        {"A": 0, "B": 2, "C": 2},
    ),
    "floor-stops-the-reclaim": (
        (s("A", 1, 8000, 8, min_replicas=5), s("B", 3, 8000, 0)),
        Budget({"A100": 0}),
        {"A": 6, "B": 0},
    ),
    "uncontended-is-left-to-fair-share": ((s("A", 1, 2000, 2), s("B", 3, 2000, 2)), Budget({"A100": 9}), {}),
    "unlimited-is-left-to-fair-share": (
        (s("A", 1, 8000, 8), s("B", 3, 8000, 0)),
        Budget({"A100": UNBOUNDED}),
        {},
    ),
    "keeps-one-of-the-last-variant": (
        (s("A", 0, 8000, 8), s("B", 3, 8000, 0)),
        Budget({"A100": 0}),
        {"A": 1, "B": 0},
    ),
    "whole-replicas-only": (
        (s("A", 1, 8000, 4, gpus_per_replica=2), s("B", 2, 8000, 0, gpus_per_replica=2)),
        Budget({"A100": 0}),
        {"A": 2, "B": 0},
    ),
}


@pytest.mark.parametrize(("services", "budget", "expected"), GROUPS.values(), ids=GROUPS)
def test_a_contended_group_moves_towards_its_shares(
    services: tuple[ServiceState, ...], budget: Budget, expected: dict[str, int]
) -> None:
    for order in itertools.permutations(services):
        targets, _ = rescale(order, budget, RescaleScope())
        assert {name: count for one in targets.values() for name, count in one.replicas.items()} == expected


def test_floors_above_the_budget_are_flagged_as_a_conflict() -> None:
    services = (s("A", 1, 8000, 4, min_replicas=4), s("B", 1, 8000, 2, min_replicas=3))
    targets, left = rescale(services, Budget({"A100": 0}), RescaleScope())
    assert all(one.conflict for one in targets.values())
    assert targets["default/A"].replicas == {"A": 4}
    assert targets["default/B"].replicas == {"B": 2}
    assert left == Budget({"A100": 0})


def test_reclaims_and_fills_say_so_and_fills_are_spent() -> None:
    targets, left = rescale((s("A", 1, 8000, 6), s("B", 3, 8000, 0)), Budget({"A100": 2}), RescaleScope())
    assert targets["default/A"].reasons == {"A": Reason.RECLAIMED}
    assert targets["default/B"].reasons == {"B": Reason.FILLED}
    assert left == Budget({"A100": 0})


def test_a_service_on_two_types_is_left_to_fair_share() -> None:
    mixed = s("A", 1, 8000, 8)
    other = VariantState(name="A2", accelerator="H100", cost=9, per_replica_capacity=1000, current=0)
    mixed = ServiceState(name="A", variants=(*mixed.variants, other), signals=mixed.signals)
    targets, _ = rescale((mixed, s("B", 3, 8000, 0)), Budget({"A100": 0}), RescaleScope())
    assert "default/A" not in targets


SCOPES = {
    "the-cluster-switch-does-not-rule-a-quota": (RescaleScope(cluster=True), {}),
    "the-namespace-switch-does": (
        RescaleScope(cluster=False, namespaces=frozenset({"team"})),
        {"A": 2, "B": 0},
    ),
    "all-off": (RescaleScope(cluster=False), {}),
}


@pytest.mark.parametrize(("scope", "expected"), SCOPES.values(), ids=SCOPES)
def test_a_quota_is_rescaled_by_its_own_switch(scope: RescaleScope, expected: dict[str, int]) -> None:
    services = (s("A", 1, 8000, 8, namespace="team"), s("B", 3, 8000, 0, namespace="team"))
    targets, _ = rescale(services, Budget({"A100": 0}, {"team": {"A100": 0}}), scope)
    assert {name: count for one in targets.values() for name, count in one.replicas.items()} == expected


def test_a_quota_fills_no_more_than_the_cluster_has_free() -> None:
    services = (s("A", 1, 8000, 0, namespace="team"), s("B", 3, 8000, 0, namespace="team"))
    scope = RescaleScope(namespaces=frozenset({"team"}))
    targets, left = rescale(services, Budget({"A100": 3}, {"team": {"A100": 8}}), scope)
    assert {key: sum(one.replicas.values()) for key, one in targets.items()} == {"team/A": 0, "team/B": 3}
    assert left == Budget({"A100": 0}, {"team": {"A100": 5}})


def test_prefill_and_decode_both_keep_their_share() -> None:
    variants = tuple(
        VariantState(name=role, accelerator="A100", cost=5, per_replica_capacity=1000, current=4, role=role)
        for role in ("prefill", "decode")
    )
    signal = AnalyzerSignal(demand={"prefill": 2000, "decode": 6000})
    pair = ServiceState(name="A", variants=variants, signals=(signal,))
    targets, _ = rescale((pair, s("B", 1, 8000, 0)), Budget({"A100": 0}), RescaleScope())
    assert targets["default/A"].replicas == {"prefill": 1, "decode": 3}


def test_the_rest_is_settled_by_fair_share_with_what_is_left() -> None:
    services = (s("A", 1, 8000, 8), s("B", 3, 8000, 0), s("L", 1, 2000, 1, accelerator="L4"))
    targets, left = rescaled_fair_share(services, Budget({"A100": 0, "L4": 4}), RescaleScope())
    assert {key: one.replicas for key, one in targets.items()} == {
        "default/A": {"A": 2},
        "default/B": {"B": 0},
        "default/L": {"L": 2},
    }
    assert left == Budget({"A100": 0, "L4": 3})
