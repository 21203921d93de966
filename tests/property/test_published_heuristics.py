"""What holds for the published heuristics whatever they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.saturation.published import (
    AnalyzerSignal,
    Budget,
    Claim,
    Growth,
    Reason,
    RescaleScope,
    ServiceState,
    VariantState,
    cost_aware,
    fair_share,
    greedy_by_saturation,
    rescale,
    rescaled_fair_share,
    scale_down,
    water_fill,
)

untimed = settings(deadline=None)  # a busy machine is no failure

TYPES = ("A100", "H100")
ROLES = (("both",), ("prefill", "decode"))
amounts = st.integers(0, 60).map(float)
budgets = st.fixed_dictionaries({kind: st.integers(0, 24) for kind in TYPES})


@st.composite
def services(draw: st.DrawFn) -> list[ServiceState]:
    """Up to four services of up to three variants, with minima and maxima that may contradict each other."""
    return [draw(a_service(f"s{index}")) for index in range(draw(st.integers(1, 4)))]


@st.composite
def a_service(draw: st.DrawFn, name: str) -> ServiceState:
    roles = draw(st.sampled_from(ROLES))
    variants = tuple(
        VariantState(
            name=f"{name}-{index}",
            accelerator=draw(st.sampled_from(TYPES)),
            cost=draw(st.integers(0, 4)),
            per_replica_capacity=draw(st.sampled_from([0, 3, 7, 10])),
            current=draw(st.integers(0, 5)),
            role=draw(st.sampled_from(roles)),
            min_replicas=draw(st.none() | st.integers(0, 3)),
            max_replicas=draw(st.none() | st.integers(0, 6)),
            gpus_per_replica=draw(st.sampled_from([0, 1, 2, 4])),
        )
        for index in range(draw(st.integers(1, 3)))
    )
    signals = tuple(
        AnalyzerSignal(
            name=analyzer,
            required={role: draw(amounts) for role in roles},
            spare={role: draw(amounts) for role in roles},
            demand={role: draw(amounts) for role in roles},
            live=draw(st.booleans()),
            score=draw(st.sampled_from([0.0, 1.0, 2.0])),
        )
        for analyzer in ("saturation", "throughput")[: draw(st.integers(1, 2))]
    )
    priority = draw(st.sampled_from([0.0, 1.0, 3.0]))
    return ServiceState(name=name, variants=variants, signals=signals, priority=priority)


@st.composite
def growths(draw: st.DrawFn) -> list[Growth]:
    variants = [variant for service in draw(services()) for variant in service.variants]
    return [
        Growth(
            service="s",
            variant=variant,
            target=draw(st.integers(0, 8)),
            headroom=draw(st.integers(-2, 2)) / 4,
        )
        for variant in variants
    ]


def gpus_added(fleet: list[ServiceState], replicas: Mapping[str, Mapping[str, int]]) -> Counter[str]:
    """GPUs by type that grown variants take, nothing set against them for shrunk ones."""
    added: Counter[str] = Counter()
    for service in fleet:
        for variant in service.variants:
            more = replicas[service.key][variant.name] - variant.current
            added[variant.accelerator] += max(0, more) * variant.gpus
    return added


@untimed
@given(fleet=services(), free=budgets)
def test_fair_share_stays_in_its_ceilings_and_says_when_it_overdraws(
    fleet: list[ServiceState], free: dict[str, int]
) -> None:
    targets, left = fair_share(fleet, Budget(free))
    added = gpus_added(fleet, {key: one.replicas for key, one in targets.items()})
    assert {kind: free[kind] - added[kind] for kind in TYPES} == left.cluster
    overdrawn = any(count < 0 for count in left.cluster.values())
    assert overdrawn == any(one.conflict for one in targets.values())
    for service in fleet:
        for variant in service.variants:
            if variant.max_replicas:
                target = targets[service.key].replicas[variant.name]
                assert target <= max(variant.current, variant.max_replicas)


@untimed
@given(fleet=services(), free=budgets, quota=budgets)
def test_a_namespace_quota_bounds_fair_share_too(
    fleet: list[ServiceState], free: dict[str, int], quota: dict[str, int]
) -> None:
    targets, left = fair_share(fleet, Budget(free, {"default": quota}))
    added = gpus_added(fleet, {key: one.replicas for key, one in targets.items()})
    conflict = any(one.conflict for one in targets.values())
    assert all(added[kind] <= min(free[kind], quota[kind]) for kind in TYPES) or conflict
    assert left.namespaces["default"] == {kind: quota[kind] - added[kind] for kind in TYPES}


@untimed
@given(fleet=services(), free=budgets)
def test_rescale_takes_no_gpu_that_is_not_free_now(fleet: list[ServiceState], free: dict[str, int]) -> None:
    targets, left = rescale(fleet, Budget(free), RescaleScope())
    settled = [service for service in fleet if service.key in targets]
    added = gpus_added(settled, {key: one.replicas for key, one in targets.items()})
    assert {kind: free[kind] - added[kind] for kind in TYPES} == left.cluster
    assert all(count >= 0 for count in left.cluster.values())


@untimed
@given(fleet=services(), free=budgets, data=st.data())
def test_the_order_of_services_variants_and_analyzers_does_not_matter(
    fleet: list[ServiceState], free: dict[str, int], data: st.DataObject
) -> None:
    shuffled = [
        ServiceState(
            name=service.name,
            priority=service.priority,
            variants=tuple(data.draw(st.permutations(service.variants))),
            signals=tuple(data.draw(st.permutations(service.signals))),
        )
        for service in data.draw(st.permutations(fleet))
    ]
    assert fair_share(shuffled, Budget(free)) == fair_share(fleet, Budget(free))
    scope = RescaleScope()
    assert rescaled_fair_share(shuffled, Budget(free), scope) == rescaled_fair_share(
        fleet, Budget(free), scope
    )
    assert {one.key: cost_aware(one) for one in shuffled} == {one.key: cost_aware(one) for one in fleet}


@untimed
@given(fleet=services())
def test_scale_down_never_grows_and_never_goes_below_a_minimum(fleet: list[ServiceState]) -> None:
    for service in fleet:
        after = scale_down(service).replicas
        for variant in service.variants:
            assert min(variant.current, variant.floor) <= after[variant.name] <= variant.current


@untimed
@given(fleet=services())
def test_scale_down_takes_no_more_than_any_live_analyzer_spares(fleet: list[ServiceState]) -> None:
    for service in fleet:
        after = scale_down(service).replicas
        for role in {variant.serves for variant in service.variants}:
            taken = sum(
                (variant.current - after[variant.name]) * variant.per_replica_capacity
                for variant in service.variants
                if variant.serves == role
            )
            spares = [signal.spare[role] for signal in service.signals if signal.live]
            assert taken <= min(spares, default=0.0)


@untimed
@given(fleet=services())
def test_cost_aware_covers_what_a_role_needs_or_names_what_is_left(fleet: list[ServiceState]) -> None:
    for service in fleet:
        answer = cost_aware(service)
        if Reason.HELD in answer.reasons.values() or Reason.SCALE_DOWN in answer.reasons.values():
            continue
        for role in {role for signal in service.signals for role in signal.required}:
            added = sum(
                (answer.replicas[variant.name] - variant.current) * variant.per_replica_capacity
                for variant in service.variants
                if variant.serves == role
            )
            required = max(signal.required[role] for signal in service.signals)
            assert added + answer.unmet.get(role, 0.0) >= required - 1e-6


@untimed
@given(wishes=growths(), free=budgets)
def test_greedy_exceeds_a_budget_only_through_a_published_minimum(
    wishes: list[Growth], free: dict[str, int]
) -> None:
    grants = greedy_by_saturation(wishes, free)
    spent: Counter[str] = Counter()
    for grant in grants:
        variant = grant.growth.variant
        spent[variant.accelerator] += grant.gpus
        if grant.target > variant.current and grant.reason is not Reason.MINIMUM_WITHOUT_GPUS:
            assert grant.gpus == (grant.target - variant.current) * variant.gpus
        if grant.reason is Reason.MINIMUM_WITHOUT_GPUS:
            assert grant.target == variant.min_replicas
    assert all(spent[kind] <= free[kind] for kind in TYPES)


@untimed
@given(wishes=growths(), free=budgets, data=st.data())
def test_the_order_of_wishes_does_not_matter(
    wishes: list[Growth], free: dict[str, int], data: st.DataObject
) -> None:
    def told(order: list[Growth]) -> dict[str, tuple[int, Reason]]:
        return {
            one.growth.variant.name: (one.target, one.reason) for one in greedy_by_saturation(order, free)
        }

    assert told(data.draw(st.permutations(wishes))) == told(wishes)


@st.composite
def claims(draw: st.DrawFn) -> list[Claim]:
    return [
        Claim(
            id=f"c{index}",
            priority=draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])),
            demand=draw(st.integers(0, 20)),
            floor_gpus=draw(st.integers(0, 4)),
            cap_gpus=draw(st.integers(0, 20)),
        )
        for index in range(draw(st.integers(1, 5)))
    ]


@untimed
@given(asking=claims(), budget=st.integers(0, 40))
def test_water_fills_the_budget_or_every_cap_or_conflicts(asking: list[Claim], budget: int) -> None:
    shares = water_fill(asking, budget)
    assert shares.conflict == (sum(claim.floor_gpus for claim in asking) > budget)
    total = sum(shares.gpus.values())
    if shares.conflict:
        assert shares.gpus == {claim.id: claim.floor_gpus for claim in asking}
        return
    room = sum(claim.above_floor for claim in asking if claim.weight > 0)
    floors = sum(claim.floor_gpus for claim in asking)
    assert total == min(budget, floors + room)
    for claim in asking:
        assert claim.floor_gpus <= shares.gpus[claim.id] <= max(claim.floor_gpus, claim.cap_gpus)
