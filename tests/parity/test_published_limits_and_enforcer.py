"""Merging limits and the enforcer: the published cases, and more of the same kinds."""

from __future__ import annotations

import pytest

from planner.saturation.published import (
    UNBOUNDED,
    Allowance,
    Budget,
    Provider,
    Reason,
    ServiceState,
    Targets,
    VariantState,
    is_exempt,
    keep_one,
    merge_providers,
    scale_to_zero_when_idle,
    used_gpus,
)
from planner.saturation.published.limiters import known_type, tighter


def pools(**limits: Allowance | int | None) -> Provider:
    return Provider(
        {kind: one if isinstance(one, Allowance) else Allowance(one) for kind, one in limits.items()}
    )


def quota(**limits: Allowance) -> Provider:
    return Provider(namespaces={"team": limits})


MERGES = {
    "QC-1-smaller": ((pools(A100=10), pools(A100=6)), Budget({"A100": 6})),
    "QC-1-unlimited": ((pools(A100=-1), pools(A100=5)), Budget({"A100": 5})),
    "QC-1-namespace": (
        (quota(A100=Allowance(8, used=1)), quota(A100=Allowance(4))),
        Budget({}, {"team": {"A100": 4}}),
    ),
    "only-unlimited": ((pools(A100=-1), pools(A100=-1)), Budget({"A100": UNBOUNDED})),
    "nil-denies": ((pools(A100=10), pools(A100=None)), Budget({"A100": 0})),
    "zero-blocks": ((pools(A100=10), pools(A100=0)), Budget({"A100": 0})),
    "free-and-not-limit-is-compared": (
        (pools(A100=Allowance(10, used=8)), pools(A100=Allowance(6, used=1))),
        Budget({"A100": 2}),
    ),
    "more-used-than-allowed-is-zero": ((pools(A100=Allowance(4, used=9)),), Budget({"A100": 0})),
    "types-unite": ((pools(A100=10), pools(H100=6)), Budget({"A100": 10, "H100": 6})),
    "no-answer-among-answers": ((None, pools(A100=6)), Budget({"A100": 6})),
    "no-answers": ((None, None), None),
    "no-providers": ((), None),
    "an-empty-answer-is-an-answer": ((Provider(),), Budget()),
    "an-empty-namespace-stays-closed": ((Provider(namespaces={"team": {}}),), Budget({}, {"team": {}})),
    "cluster-and-namespace": (
        (pools(A100=10), quota(A100=Allowance(-1), H100=Allowance(2))),
        Budget({"A100": 10}, {"team": {"A100": UNBOUNDED, "H100": 2}}),
    ),
}


@pytest.mark.parametrize(("providers", "budget"), MERGES.values(), ids=MERGES)
def test_providers_merge_to_the_tightest_budget(
    providers: tuple[Provider | None, ...], budget: Budget | None
) -> None:
    assert merge_providers(providers) == budget
    assert merge_providers(providers[::-1]) == budget


TIGHTER = {
    "both": (10, 6, 6),
    "first": (-1, 5, 5),
    "second": (5, -1, 5),
    "neither": (-1, -7, -1),
    "zero": (0, -1, 0),
}


@pytest.mark.parametrize(("first", "second", "expected"), TIGHTER.values(), ids=TIGHTER)
def test_minus_one_is_the_loosest_limit(first: int, second: int, expected: int) -> None:
    assert tighter(first, second) == expected


FREE = {
    "open-namespace": ("other", "A100", 10),
    "open-namespace-unlisted": ("other", "L4", 0),
    "closed-below-cluster": ("team", "A100", 4),
    "closed-above-cluster": ("team", "H100", 2),
    "closed-unlisted": ("team", "L40S", 0),
    "listed-by-the-namespace-alone": ("team", "T4", 7),
    "deny-all": ("nobody", "A100", 0),
}
MIXED = Budget({"A100": 10, "H100": 2, "L40S": 9}, {"team": {"A100": 4, "H100": 8, "T4": 7}, "nobody": {}})


@pytest.mark.parametrize(("namespace", "kind", "free"), FREE.values(), ids=FREE)
def test_a_namespace_with_a_list_is_closed(namespace: str, kind: str, free: int) -> None:
    assert MIXED.free(namespace, kind) == free


def test_spending_leaves_unlimited_and_unlisted_alone() -> None:
    budget = Budget({"A100": UNBOUNDED}, {"team": {"A100": 4}})
    assert budget.spend("team", "A100", 3) == Budget({"A100": UNBOUNDED}, {"team": {"A100": 1}})
    assert budget.spend("other", "H100", 3) == budget


TYPES = {
    "named": ("A100", {"A100", "H100"}, "A100"),
    "named-but-absent": ("L4", {"A100"}, None),
    "unknown-alone": ("unknown", {"A100"}, "A100"),
    "empty-alone": ("", {"A100"}, "A100"),
    "unknown-mixed": ("unknown", {"A100", "H100"}, None),
    "unknown-nothing": ("unknown", set(), None),
}


@pytest.mark.parametrize(("accelerator", "types", "expected"), TYPES.values(), ids=TYPES)
def test_an_unknown_accelerator_draws_from_the_only_type(
    accelerator: str, types: set[str], expected: str | None
) -> None:
    assert known_type(accelerator, types) == expected


def v(name: str, current: int, cost: float = 5.0, **more: object) -> VariantState:
    fields: dict[str, object] = {"accelerator": "A100", **more}
    return VariantState(name=name, cost=cost, per_replica_capacity=1, current=current, **fields)  # type: ignore[arg-type]


def m(*variants: VariantState) -> ServiceState:
    return ServiceState(name="m", variants=variants, signals=())


def test_used_gpus_are_current_replicas_times_gpus() -> None:
    services = [
        m(v("a", 3, gpus_per_replica=2), v("b", 1, accelerator="H100")),
        m(v("c", 2, gpus_per_replica=0)),
    ]
    assert used_gpus(services) == {"A100": 8, "H100": 1}


def now(service: ServiceState, **replicas: int) -> Targets:
    counts = {variant.name: variant.current for variant in service.variants} | replicas
    return Targets(replicas=counts, reasons=dict.fromkeys(counts, Reason.STEADY))


AB = m(v("a", 2), v("b", 1))

IDLE = {
    "EN-1": (AB, 0.0, {"a": 0, "b": 0}),
    "EN-2-requests": (AB, 10.0, {"a": 2, "b": 1}),
    "EN-2-error": (AB, None, {"a": 2, "b": 1}),
    "less-than-one-extrapolated-request": (AB, 0.2, {"a": 2, "b": 1}),
    "a-minimum-exempts-all": (m(v("a", 2, min_replicas=1), v("b", 1)), 0.0, {"a": 2, "b": 1}),
    "a-minimum-of-zero-does-not": (m(v("a", 2, min_replicas=0)), 0.0, {"a": 0}),
    "another-engine-exempts-all": (m(v("a", 2, engine="sglang"), v("b", 1)), 0.0, {"a": 2, "b": 1}),
}


@pytest.mark.parametrize(("service", "requests", "expected"), IDLE.values(), ids=IDLE)
def test_no_completed_requests_send_a_service_to_zero(
    service: ServiceState, requests: float | None, expected: dict[str, int]
) -> None:
    assert scale_to_zero_when_idle(service, now(service), completed_requests=requests).replicas == expected


KEEP = {
    "EN-3": (
        m(v("b", 1), v("a", 1), v("dear", 1, cost=9)),
        {"a": 0, "b": 0, "dear": 0},
        {"a": 1, "b": 0, "dear": 0},
    ),
    "cheapest": (m(v("a", 1, cost=9), v("b", 1)), {"a": 0, "b": 0}, {"a": 0, "b": 1}),
    "no-price-counts-as-ten": (m(v("a", 1, cost=0), v("b", 1, cost=9)), {"a": 0, "b": 0}, {"a": 0, "b": 1}),
    "negative-price-counts-as-ten": (
        m(v("a", 1, cost=-4), v("b", 1, cost=11)),
        {"a": 0, "b": 0},
        {"a": 1, "b": 0},
    ),
    "something-left": (AB, {"a": 0, "b": 1}, {"a": 0, "b": 1}),
    "exempt": (m(v("a", 1, engine="sglang")), {"a": 0}, {"a": 0}),
    "no-variants": (m(), {}, {}),
}


@pytest.mark.parametrize(("service", "replicas", "expected"), KEEP.values(), ids=KEEP)
def test_a_service_that_may_not_go_to_zero_keeps_its_cheapest_replica(
    service: ServiceState, replicas: dict[str, int], expected: dict[str, int]
) -> None:
    assert keep_one(service, now(service, **replicas)).replicas == expected


def test_the_enforcer_says_why() -> None:
    idle = scale_to_zero_when_idle(AB, now(AB), completed_requests=0)
    assert idle.reasons == {"a": Reason.IDLE, "b": Reason.IDLE}
    assert keep_one(AB, idle).reasons == {"a": Reason.KEPT_ONE, "b": Reason.IDLE}
    assert not is_exempt(AB)
