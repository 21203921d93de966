"""Fair share (GreedyByScore): the published decision cases, and more of the same kinds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from planner.saturation.published import (
    UNBOUNDED,
    Allowance,
    AnalyzerSignal,
    Budget,
    Provider,
    Reason,
    ServiceState,
    VariantState,
    fair_share,
    merge_providers,
)


def v(name: str, cost: float = 5, size: float = 10_000, **more: object) -> VariantState:
    fields: dict[str, object] = {"accelerator": "A100", "current": 1, "gpus_per_replica": 2, **more}
    return VariantState(name=name, cost=cost, per_replica_capacity=size, **fields)  # type: ignore[arg-type]


def asks(name: str, required: float, *variants: VariantState, **more: object) -> ServiceState:
    signal = AnalyzerSignal(required={"both": required}, spare={"both": 0.0})
    fields: dict[str, object] = {"signals": (signal,), **more}
    return ServiceState(name=name, variants=variants or (v(name),), **fields)  # type: ignore[arg-type]


def spares(name: str, spare: float, *variants: VariantState) -> ServiceState:
    signal = AnalyzerSignal(required={"both": 0.0}, spare={"both": spare})
    return ServiceState(name=name, variants=variants or (v(name, current=2),), signals=(signal,))


def paired(name: str, prefill: float, decode: float, *variants: VariantState) -> ServiceState:
    signal = AnalyzerSignal(required={"prefill": prefill, "decode": decode})
    return ServiceState(name=name, variants=variants, signals=(signal,))


def twice(name: str, required: float, scores: tuple[float, float]) -> ServiceState:
    signals = tuple(
        AnalyzerSignal(name=analyzer, required={"both": required}, score=score)
        for analyzer, score in zip(("saturation", "throughput"), scores, strict=True)
    )
    return ServiceState(name=name, variants=(v(name),), signals=signals)


PD = (v("p", role="prefill"), v("d", role="decode"))
SPLIT = (v("p", role="prefill", accelerator="H100"), v("d", role="decode"))
TWO_TYPES = (v("a"), v("h", cost=15, size=20_000, accelerator="H100", gpus_per_replica=4))

PUBLISHED = {
    "GS-1": ((asks("m", 20_000, *TWO_TYPES),), Budget({"A100": 10, "H100": 8}), {"a": 3, "h": 1}),
    "GS-2": ((asks("m", 50_000),), Budget({"A100": 4}), {"m": 3}),
    "GS-5": ((asks("x", 20_000), asks("y", 20_000)), Budget({"A100": 8}), {"x": 3, "y": 3}),
    "GS-7": ((asks("m", 30_000, *TWO_TYPES),), Budget({"A100": 4, "H100": 0}), {"a": 3, "h": 1}),
    "GS-8-zero": ((asks("m", 20_000),), Budget({"A100": 0}), {"m": 1}),
    "GS-8-nil": ((asks("m", 20_000),), None, {"m": 1}),
    "GS-9": (
        (asks("x", 20_000, priority=1), asks("y", 20_000, priority=5)),
        Budget({"A100": 4}),
        {"x": 1, "y": 3},
    ),
    "GS-10": ((twice("x", 20_000, (1, 2)), asks("y", 20_000)), Budget({"A100": 4}), {"x": 3, "y": 1}),
    "GS-11": ((asks("up", 10_000), spares("down", 10_000)), Budget({"A100": 4}), {"up": 2, "down": 1}),
    "GS-13": ((paired("m", 10_000, 10_000, *PD),), Budget({"A100": 8}), {"p": 2, "d": 2}),
    "GS-14": ((paired("m", 10_000, 10_000, *SPLIT),), Budget({"A100": 8, "H100": 0}), {"p": 1, "d": 1}),
    "GS-15": (
        (asks("m", 50_000, namespace="team-a"),),
        merge_providers(
            [
                Provider({"A100": Allowance(100)}),
                Provider(namespaces={"team-a": {"A100": Allowance(4, used=2)}}),
            ]
        ),
        {"m": 2},
    ),
    "GS-16-unlimited": ((asks("m", 50_000),), Budget({"A100": UNBOUNDED}), {"m": 6}),
    "GS-16-plenty": ((asks("m", 50_000),), Budget({"A100": 1000}), {"m": 6}),
    "GS-17": ((asks("m", 30_000, v("m", gpus_per_replica=0)),), Budget({"A100": 2}), {"m": 3}),
}

SAME_KIND = {
    "exact-fit": ((asks("m", 20_000),), Budget({"A100": 4}), {"m": 3}),
    "one-gpu-short": ((asks("m", 20_000),), Budget({"A100": 3}), {"m": 2}),
    "less-than-one-replica": ((asks("m", 20_000),), Budget({"A100": 1}), {"m": 1}),
    "no-size": ((asks("m", 20_000, v("m", size=0)),), Budget({"A100": 8}), {"m": 1}),
    "ceiling": ((asks("m", 50_000, v("m", max_replicas=3)),), Budget({"A100": 80}), {"m": 3}),
    "ceiling-spills": (
        (asks("m", 40_000, v("a", max_replicas=2), TWO_TYPES[1]),),
        Budget({"A100": 80, "H100": 80}),
        {"a": 2, "h": 3},
    ),
    "pending-still-picked": ((asks("m", 10_000, v("m", pending=1)),), Budget({"A100": 2}), {"m": 2}),
    "equal-services-share-alternately": (
        (asks("x", 20_000), asks("y", 20_000)),
        Budget({"A100": 4}),
        {"x": 2, "y": 2},
    ),
    "odd-replica-goes-by-name": (
        (asks("y", 20_000), asks("x", 20_000)),
        Budget({"A100": 6}),
        {"y": 2, "x": 3},
    ),
    "hungrier-first": ((asks("x", 10_000), asks("y", 40_000)), Budget({"A100": 4}), {"x": 1, "y": 3}),
    "priority-zero-counts-by-demand": (
        (asks("x", 20_000, priority=0), asks("y", 10_000, priority=1)),
        Budget({"A100": 2}),
        {"x": 2, "y": 1},
    ),
    "all-priorities-zero": (
        (asks("x", 20_000, priority=0), asks("y", 20_000, priority=0)),
        Budget({"A100": 8}),
        {"x": 3, "y": 3},
    ),
    "tiny-priority-alone-is-served-replica-by-replica": (
        (asks("x", 20_000, priority=0.0001),),
        Budget({"A100": 80}),
        {"x": 3},
    ),
    "blocked-service-leaves-gpus-to-the-next": (
        (asks("x", 90_000, v("x", accelerator="H100")), asks("y", 20_000)),
        Budget({"A100": 4, "H100": 0}),
        {"x": 1, "y": 3},
    ),
    "large-replicas-leave-what-they-cannot-use": (
        (asks("x", 90_000, v("x", gpus_per_replica=8)), asks("y", 20_000)),
        Budget({"A100": 6}),
        {"x": 1, "y": 3},
    ),
    "unknown-type": ((asks("m", 10_000, v("m", accelerator="unknown")),), Budget({"A100": 8}), {"m": 1}),
    "freed-gpus-are-not-handed-out": (
        (asks("up", 10_000), spares("down", 10_000)),
        Budget({"A100": 0}),
        {"up": 1, "down": 1},
    ),
    "nothing-to-do": ((spares("m", 0),), Budget({"A100": 8}), {"m": 2}),
    "no-services": ((), Budget({"A100": 8}), {}),
    "pair-cut-to-the-scarcer-role": (
        (paired("m", 30_000, 30_000, *SPLIT),),
        Budget({"A100": 80, "H100": 2}),
        {"p": 2, "d": 2},
    ),
    "pair-shares-one-pool": ((paired("m", 20_000, 20_000, *PD),), Budget({"A100": 8}), {"p": 3, "d": 3}),
    "pair-with-one-idle-role": ((paired("m", 0, 20_000, *PD),), Budget({"A100": 8}), {"p": 1, "d": 3}),
    "closed-namespace-denies-unlisted-types": (
        (asks("m", 10_000, namespace="team-a"),),
        Budget({"A100": 8}, {"team-a": {"H100": 8}}),
        {"m": 1},
    ),
    "empty-namespace-denies-all": (
        (asks("m", 10_000, namespace="team-a"),),
        Budget({"A100": 8}, {"team-a": {}}),
        {"m": 1},
    ),
    "unlimited-namespace-is-bound-by-the-cluster": (
        (asks("m", 90_000, namespace="team-a"),),
        Budget({"A100": 4}, {"team-a": {"A100": UNBOUNDED}}),
        {"m": 3},
    ),
    "namespace-alone-bounds-what-the-cluster-does-not-list": (
        (asks("m", 90_000, namespace="team-a"),),
        Budget({}, {"team-a": {"A100": 4}}),
        {"m": 3},
    ),
    "open-namespace-sees-the-cluster": (
        (asks("m", 20_000, namespace="team-b"),),
        Budget({"A100": 4}, {"team-a": {"A100": 2}}),
        {"m": 3},
    ),
    "two-namespaces-on-one-cluster": (
        (asks("x", 50_000, namespace="team-a"), asks("y", 50_000, namespace="team-b")),
        Budget({"A100": 100}, {"team-a": {"A100": 2}, "team-b": {"A100": 6}}),
        {"x": 2, "y": 4},
    ),
}


def answer(services: Sequence[ServiceState], budget: Budget | None) -> dict[str, int]:
    targets, _ = fair_share(services, budget)
    return {name: count for one in targets.values() for name, count in one.replicas.items()}


@pytest.mark.parametrize(("services", "budget", "expected"), PUBLISHED.values(), ids=PUBLISHED)
def test_a_published_case_gives_the_published_targets(
    services: tuple[ServiceState, ...], budget: Budget | None, expected: dict[str, int]
) -> None:
    assert answer(services, budget) == expected


@pytest.mark.parametrize(("services", "budget", "expected"), SAME_KIND.values(), ids=SAME_KIND)
def test_a_case_of_the_same_kind_follows_the_same_rules(
    services: tuple[ServiceState, ...], budget: Budget | None, expected: dict[str, int]
) -> None:
    for order in itertools.permutations(services):
        assert answer(order, budget) == expected


def test_three_paired_services_leave_with_their_first_share_only() -> None:
    """Known departure: with roles, a service counts as served once its first share is, though GPUs are left."""
    services = [
        paired(name, 30_000, 30_000, v(f"{name}-p", role="prefill"), v(f"{name}-d", role="decode"))
        for name in ("x", "y", "z")
    ]
    targets, left = fair_share(services, Budget({"A100": 100}))
    assert targets["default/x"].replicas == {"x-p": 3, "x-d": 3}
    assert targets["default/x"].unmet == {"decode": 10_000, "prefill": 10_000}
    assert left.cluster["A100"] > 0


def test_two_roles_take_the_last_gpus_of_one_pool_twice_and_say_so() -> None:
    """Known departure: prefill and decode both see the 2 GPUs that are free, and each takes them."""
    targets, left = fair_share([paired("m", 10_000, 10_000, *PD)], Budget({"A100": 2}))
    assert targets["default/m"].replicas == {"p": 2, "d": 2}
    assert targets["default/m"].conflict
    assert left == Budget({"A100": -2})


def test_within_the_budget_there_is_no_conflict() -> None:
    targets, _ = fair_share([paired("m", 10_000, 10_000, *PD)], Budget({"A100": 4}))
    assert not targets["default/m"].conflict


def test_what_gpus_could_not_cover_is_named() -> None:
    targets, left = fair_share([asks("m", 50_000)], Budget({"A100": 4}))
    assert targets["default/m"].limited == {"m"}
    assert targets["default/m"].reasons == {"m": Reason.GPUS_EXHAUSTED}
    assert targets["default/m"].unmet == {"both": 30_000}
    assert left == Budget({"A100": 0})


def test_spending_books_on_cluster_and_namespace() -> None:
    budget = Budget({"A100": 10, "H100": 3}, {"team-a": {"A100": 6}})
    _, left = fair_share([asks("m", 20_000, namespace="team-a")], budget)
    assert left == Budget({"A100": 6, "H100": 3}, {"team-a": {"A100": 2}})


def test_two_services_of_one_key_are_refused() -> None:
    with pytest.raises(ValueError, match="default/m"):
        fair_share([asks("m", 1), asks("m", 2)], None)


def test_two_variants_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="default/m: a"):
        fair_share([asks("m", 1, v("a"), v("a"))], None)


def test_one_llm_in_two_namespaces_is_two_services() -> None:
    services = [asks("m", 10_000, namespace="a"), asks("m", 10_000, namespace="b")]
    targets, _ = fair_share(services, Budget({"A100": 4}))
    assert {key: one.replicas for key, one in targets.items()} == {"a/m": {"m": 2}, "b/m": {"m": 2}}
