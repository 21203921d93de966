"""What holds for the analyzers and their targets whatever they read."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.autoscaling import ScalingBounds
from models.fleet import RunningReplica
from models.saturation import SaturationThresholds
from planner.saturation import (
    Analysis,
    Cycle,
    EngineLimits,
    InstanceReading,
    ReplicaState,
    Shifting,
    TokenMemory,
    Traffic,
    VariantReading,
    analyze,
    analyze_tokens,
    shift_one,
    state_of,
    threshold_step,
)
from planner.saturation.published import ServiceState, VariantState, cost_aware

untimed = settings(deadline=None)  # a busy machine is no failure

usages = st.integers(0, 20).map(lambda twentieths: twentieths / 20)
queues = st.integers(0, 8).map(float)
replicas = st.builds(RunningReplica, kv_usage=st.none() | usages, queue=st.none() | queues)
instances = st.builds(
    InstanceReading,
    kv_usage=st.none() | usages,
    queue=st.none() | queues,
    kv_tokens=st.just(16_000),
)
traffics = st.builds(
    Traffic, input_tokens=st.integers(0, 4000).map(float), output_tokens=st.integers(0, 1000).map(float)
)


@st.composite
def variants(draw: st.DrawFn) -> list[Shifting]:
    return [
        Shifting(
            state=VariantState(
                name=f"v{index}",
                accelerator="H100",
                cost=draw(st.integers(0, 3)),
                per_replica_capacity=0,
                current=draw(st.integers(0, 5)),
                min_replicas=draw(st.none() | st.integers(0, 3)),
                max_replicas=draw(st.none() | st.integers(1, 6)),
            )
        )
        for index in range(draw(st.integers(1, 4)))
    ]


@st.composite
def readings(draw: st.DrawFn) -> list[VariantReading]:
    return [
        VariantReading(
            name=f"v{index}",
            instances=tuple(draw(st.lists(instances, max_size=3))),
            unreported=draw(st.integers(0, 2)),
            pending=draw(st.integers(0, 2)),
            limits=draw(st.none() | st.just(EngineLimits())),
        )
        for index in range(draw(st.integers(1, 3)))
    ]


def analyzed(fleet: list[VariantReading], traffic: Traffic) -> Analysis:
    found, _ = analyze_tokens("llm", fleet, traffic=traffic, memory=TokenMemory(), cycle=Cycle(now_s=0.0))
    return found


def spare_and_required(fleet: list[VariantReading], traffic: Traffic) -> tuple[float, float]:
    total = analyzed(fleet, traffic).total
    return total.spare, total.required


@untimed
@given(fleet=variants(), seen=st.lists(replicas, max_size=6), unreported=st.integers(0, 2))
def test_percentage_targets_stay_in_bounds_and_move_one(
    fleet: list[Shifting], seen: list[RunningReplica], unreported: int
) -> None:
    signal = analyze(seen, SaturationThresholds(), unreported=unreported)
    targets = shift_one(fleet, signal).replicas
    moved = 0
    for one in fleet:
        state, target = one.state, targets[one.state.name]
        ceiling = max(state.floor, state.room_above(0))
        assert state.floor <= target <= ceiling
        moved += state.floor <= state.current <= ceiling and target != state.current
    assert moved <= 1


@untimed
@given(seen=st.lists(replicas, max_size=6), unreported=st.integers(0, 2))
def test_nothing_goes_while_fewer_than_two_are_non_saturated(
    seen: list[RunningReplica], unreported: int
) -> None:
    thresholds = SaturationThresholds()
    calm = [one for one in seen if state_of(one, thresholds) is ReplicaState.NON_SATURATED]
    if len(calm) < 2:
        assert not analyze(seen, thresholds, unreported=unreported).scale_in_safe


@untimed
@given(seen=st.lists(replicas, min_size=1, max_size=6), data=st.data())
def test_a_metric_that_goes_missing_never_permits_scaling_in(
    seen: list[RunningReplica], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(seen) - 1))
    thresholds = SaturationThresholds()
    # A saturated replica does not enter the published forecast, whether it reports or not.
    if state_of(seen[index], thresholds) is ReplicaState.SATURATED:
        return
    blind = [*seen[:index], RunningReplica(), *seen[index + 1 :]]
    if analyze(blind, thresholds).scale_in_safe:
        assert (
            analyze(seen, thresholds).scale_in_safe
            or state_of(seen[index], thresholds) is ReplicaState.MISSING
        )


@untimed
@given(fleet=readings(), traffic=traffics, data=st.data())
def test_a_token_reading_that_goes_missing_neither_spares_nor_requires_more(
    fleet: list[VariantReading], traffic: Traffic, data: st.DataObject
) -> None:
    # Sizes are told by the reading of another instance of the variant, which is left as it is.
    index = data.draw(st.integers(0, len(fleet) - 1))
    alike = InstanceReading(kv_usage=data.draw(usages), queue=0.0, kv_tokens=16_000)
    seen = replace(
        fleet[index], instances=(alike, InstanceReading(kv_usage=0.1, queue=0.0, kv_tokens=16_000))
    )
    blind = replace(seen, instances=(alike,), unreported=seen.unreported + 1)
    known = [*fleet[:index], seen, *fleet[index + 1 :]]
    # A silent replica counts as full; that one was more than full nobody can know.
    assume(analyzed(known, traffic).variants[seen.name].per_replica >= 0.1 * 16_000)
    before = spare_and_required(known, traffic)
    after = spare_and_required([*fleet[:index], blind, *fleet[index + 1 :]], traffic)
    assert after[0] <= before[0] + 1e-6
    assert after[1] <= before[1] + 1e-6


@untimed
@given(silent=st.integers(0, 4), pending=st.integers(0, 2), traffic=traffics)
def test_a_silent_service_is_left_alone(silent: int, pending: int, traffic: Traffic) -> None:
    one = VariantReading(name="v", unreported=silent, pending=pending, limits=EngineLimits())
    assert spare_and_required([one], traffic) == (0, 0)


@untimed
@given(fleet=readings(), traffic=traffics, data=st.data())
def test_the_order_of_variants_and_instances_means_nothing(
    fleet: list[VariantReading], traffic: Traffic, data: st.DataObject
) -> None:
    mixed = [
        replace(one, instances=tuple(data.draw(st.permutations(one.instances))))
        for one in data.draw(st.permutations(fleet))
    ]
    assert spare_and_required(mixed, traffic) == spare_and_required(fleet, traffic)


@untimed
@given(
    demand=st.integers(0, 1000).map(float),
    supply=st.integers(0, 1000).map(float),
    pending=st.integers(0, 300).map(float),
)
def test_capacity_is_never_missing_and_to_spare_at_once(demand: float, supply: float, pending: float) -> None:
    step = threshold_step(demand, supply, anticipated=supply + pending, bounds=ScalingBounds())
    assert step.required == 0 or step.spare == 0
    if step.spare:
        assert demand <= 0.70 * (supply - step.spare) + 1e-9


@untimed
@given(fleet=readings(), traffic=traffics, data=st.data())
def test_token_targets_keep_minima_and_cover_what_is_left(
    fleet: list[VariantReading], traffic: Traffic, data: st.DataObject
) -> None:
    found = analyzed(fleet, traffic)
    states = tuple(
        VariantState(
            name=one.name,
            accelerator="H100",
            cost=data.draw(st.integers(1, 3)),
            per_replica_capacity=found.variants[one.name].per_replica,
            current=one.ready + one.pending,
            min_replicas=data.draw(st.integers(0, 2)),
        )
        for one in fleet
    )
    targets = cost_aware(ServiceState(name="s", variants=states, signals=(found.signal(),)))
    for state in states:
        assert targets.replicas[state.name] >= min(state.floor, state.current)
    shrunk = [one for one in states if targets.replicas[one.name] < one.current]
    assert not shrunk or found.total.spare > 0
