"""The token analyzer and the threshold step against the decision cases that their source publishes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from models.autoscaling import ScalingBounds
from planner.saturation import (
    Analysis,
    CapacityFrom,
    Cycle,
    EngineLimits,
    InstanceReading,
    SchedulerQueue,
    Stored,
    TokenMemory,
    Traffic,
    VariantKey,
    VariantReading,
    analyze_tokens,
    compute_limit,
    is_live,
    median,
    threshold_step,
)

TOTAL = 16_000
TRAFFIC = Traffic(input_tokens=100, output_tokens=50)
LIMITS = EngineLimits(8192, 256)
NOTHING_QUEUED = SchedulerQueue()


def instance(resident: float | None, queue: float | None = 0, total: int | None = TOTAL) -> InstanceReading:
    usage = None if resident is None else resident / (total or 1)
    return InstanceReading(kv_usage=usage, queue=queue, kv_tokens=total)


def variant(*instances: InstanceReading, name: str = "v", **more: Any) -> VariantReading:
    return VariantReading(name=name, accelerator="H100", instances=instances, **more)


def analyzed(
    *variants: VariantReading,
    traffic: Traffic = TRAFFIC,
    queue: SchedulerQueue = NOTHING_QUEUED,
    memory: TokenMemory | None = None,
) -> Analysis:
    return analyze_tokens(
        "llm",
        variants,
        traffic=traffic,
        queue=queue,
        memory=memory or TokenMemory(),
        cycle=Cycle(now_s=1000.0),
    )[0]


def remembering(effective: int, *, of: str = "v", age_s: float = 60.0, **more: Any) -> TokenMemory:
    stored = Stored(effective=effective, at_s=1000.0 - age_s, accelerator="H100", **more)
    return TokenMemory().ran({VariantKey("llm", "default", of): stored}, now_s=stored.at_s)


@pytest.mark.parametrize(
    ("case", "resident", "queue", "capacity"),
    [("V2-1", 5000, 0, 12_800), ("V2-2", 8000, 6, 8000), ("V2-3", 4000, 10, 4000), ("at-tau", 4000, 5, 4000)],
)
def test_capacity_of_a_live_replica(case: str, resident: int, queue: float, capacity: int) -> None:
    assert analyzed(variant(instance(resident, queue))).variants["v"].per_replica == capacity, case


@pytest.mark.parametrize(
    ("case", "limits", "lengths", "tokens"),
    [
        ("V2-6", EngineLimits(4096, 256), (500, 100), 140_800),
        ("V2-7", EngineLimits(8192, 64), (100, 200), 12_800),
        ("V2-8-no-output", EngineLimits(8192, 64), (100, 0), 0),
        ("V2-8-no-parameters", None, (100, 200), 0),
    ],
)
def test_the_compute_limit_by_formula(
    case: str, limits: EngineLimits | None, lengths: tuple[int, int], tokens: int
) -> None:
    assert compute_limit(limits, Traffic(input_tokens=lengths[0], output_tokens=lengths[1])) == tokens, case


def test_v2_6_the_memory_limit_is_the_smaller_one() -> None:
    one = variant(instance(0), limits=EngineLimits(4096, 256))
    found = analyzed(one, traffic=Traffic(input_tokens=500, output_tokens=100))
    assert found.variants["v"].per_replica == 12_800


def test_v2_9_a_variant_without_replicas_keeps_its_live_capacity() -> None:
    sized = analyzed(variant(), memory=remembering(12_000)).variants["v"]
    assert (sized.per_replica, sized.reason) == (12_000, CapacityFrom.STORED)


class TestDerived:
    """V2-10: a variant that never ran is sized by the arguments of its engine."""

    traffic = Traffic(input_tokens=500, output_tokens=100)

    def size(self, *, traffic: Traffic = traffic, memory: TokenMemory | None = None, **more: Any) -> float:
        one = variant(limits=LIMITS, **more)
        return analyzed(one, traffic=traffic, memory=memory).variants["v"].per_replica

    def test_by_formula(self) -> None:
        assert self.size() == 140_800

    def test_bounded_by_an_alike_variant(self) -> None:
        assert self.size(memory=remembering(40_000, of="other", limits=LIMITS)) == 40_000

    def test_an_old_alike_variant_is_not_believed(self) -> None:
        assert self.size(memory=remembering(40_000, of="other", limits=LIMITS, age_s=1801)) == 140_800

    def test_bounded_by_its_own_cache(self) -> None:
        assert self.size(kv_tokens=1875 * 16) == 24_000

    def test_without_traffic_the_batch(self) -> None:
        assert self.size(traffic=Traffic()) == 8192

    def test_an_alike_variant_alone(self) -> None:
        memory = remembering(40_000, of="other")
        sized = analyzed(variant(), traffic=self.traffic, memory=memory).variants["v"]
        assert (sized.per_replica, sized.reason) == (40_000, CapacityFrom.ALIKE)

    def test_nothing_known(self) -> None:
        found = analyzed(variant())
        assert (found.variants["v"].reason, found.informative) == (CapacityFrom.NO_DATA, False)


def test_v2_11_queued_requests_weigh_their_tokens() -> None:
    traffic = replace(TRAFFIC, hit_share=0.5)
    found = analyzed(variant(instance(5000)), traffic=traffic, queue=SchedulerQueue(10, 4000))
    assert found.total.demand == 6000


def test_v2_13_roles_share_the_queue_and_sum_to_more() -> None:
    found = analyzed(
        variant(instance(3000), name="p", role="prefill"),
        variant(instance(2000), name="d", role="decode"),
        queue=SchedulerQueue(10, 0),
    )
    assert {role: step.demand for role, step in found.roles.items()} == {"prefill": 4000, "decode": 3500}
    assert found.total.demand == 6500


@pytest.mark.parametrize(("role", "demand"), [("prefill", 1400), ("decode", 1600), ("both", 1600)])
def test_v2_14_waiting_requests_weigh_what_the_role_holds(role: str, demand: float) -> None:
    assert analyzed(variant(instance(1000, 4), role=role)).variants["v"].demand == demand


def test_v2_16_without_cache_information_the_stored_capacity_counts() -> None:
    one = variant(InstanceReading(kv_usage=0.6, queue=0))
    sized = analyzed(one, memory=remembering(10_000)).variants["v"]
    assert (sized.per_replica, sized.demand) == (8000, 4800)


def test_v2_16_such_a_capacity_is_not_stored_again() -> None:
    memory = remembering(10_000)
    one = variant(InstanceReading(kv_usage=0.6, queue=0))
    for _ in range(3):
        found, memory = analyze_tokens(
            "llm", [one], traffic=TRAFFIC, memory=memory, cycle=Cycle(now_s=1000.0)
        )
    assert found.variants["v"].per_replica == 8000


def test_v2_18_without_both_the_replica_is_dropped() -> None:
    sized = analyzed(variant(InstanceReading(kv_usage=0.6, queue=0))).variants["v"]
    assert (sized.instances, sized.per_replica, sized.demand) == (0, 0, 0)


def test_v2_19_data_parallel_ranks_are_instances() -> None:
    sized = analyzed(variant(*[instance(1000)] * 8, pods=1, pending=1)).variants["v"]
    assert (sized.ready, sized.pending) == (8, 8)


@pytest.mark.parametrize(
    ("instances", "required", "spare"),
    [
        ([instance(1000)] * 2, False, True),
        ([instance(11_000, 3)], True, False),
        ([instance(10_000)], False, False),
    ],
)
def test_v2_20_decisions(instances: list[InstanceReading], required: bool, spare: bool) -> None:
    step = analyzed(variant(*instances)).roles["both"]
    assert (step.required > 0, step.spare > 0) == (required, spare)


@pytest.mark.parametrize(
    ("values", "middle"), [([1, 3, 5, 7], 4), ([9, 1, 4], 4), ([1, 2], 1), ([6], 6), ([], 0)]
)
def test_v2_21_the_median_is_whole(values: list[int], middle: int) -> None:
    assert median(values) == middle


@pytest.mark.parametrize(
    ("case", "demand", "supply", "anticipated", "required", "spare"),
    [
        ("T-1", 10_000, 10_000, 10_000, 1764.71, 0),
        ("T-2", 5000, 10_000, 10_000, 0, 2857.14),
        ("T-4", 8000, 7000, 10_000, 0, 0),
        ("T-6", 10_000, 10_000, 0, 11_764.71, 0),
    ],
)
def test_the_threshold_step(
    case: str, demand: float, supply: float, anticipated: float, required: float, spare: float
) -> None:
    step = threshold_step(demand, supply, anticipated=anticipated, bounds=ScalingBounds())
    assert (step.required, step.spare) == (
        pytest.approx(required, abs=0.01),
        pytest.approx(spare, abs=0.01),
    ), case


class TestHistory:
    """The window of observed compute limits, and what a variant is worth after its replicas are gone."""

    def cycle(
        self, memory: TokenMemory, resident: int, queue: float, now_s: float
    ) -> tuple[float, TokenMemory]:
        found, after = analyze_tokens(
            "llm",
            [variant(instance(resident, queue))],
            traffic=TRAFFIC,
            memory=memory,
            cycle=Cycle(now_s=now_s),
        )
        return found.variants["v"].per_replica, after

    def test_the_mean_of_what_was_seen_holds_when_the_queue_is_gone(self) -> None:
        memory = TokenMemory()
        for minute, resident in enumerate((4000, 6000)):
            _, memory = self.cycle(memory, resident, 9, minute * 60.0)
        assert self.cycle(memory, 100, 0, 180.0)[0] == 5000

    def test_ten_are_kept(self) -> None:
        memory = TokenMemory()
        for minute in range(12):
            _, memory = self.cycle(memory, 2000 if minute < 2 else 4000, 9, minute * 60.0)
        assert self.cycle(memory, 100, 0, 900.0)[0] == 4000

    def test_a_day_later_it_is_forgotten(self) -> None:
        _, memory = self.cycle(TokenMemory(), 4000, 9, 0.0)
        assert self.cycle(memory, 100, 0, 86_401.0)[0] == 12_800

    def test_capacities_are_forgotten_after_seven_days(self) -> None:
        memory = remembering(12_000, age_s=0)
        key = VariantKey("llm", "default", "v")
        assert memory.own(key, now_s=1000.0 + 7 * 86_400) is not None
        assert memory.own(key, now_s=1001.0 + 7 * 86_400) is None

    def test_memories_are_values(self) -> None:
        before = TokenMemory()
        self.cycle(before, 4000, 9, 0.0)
        assert before == TokenMemory()


class TestMissing:
    """A gap in the metrics asks for nothing and lets nothing go."""

    def test_a_silent_replica_counts_as_idle_when_growing(self) -> None:
        full = instance(11_000, 3)
        assert analyzed(variant(full)).total.required > 0
        assert analyzed(variant(full, unreported=1)).total.required == 0

    def test_a_silent_replica_counts_as_full_when_shrinking(self) -> None:
        calm = instance(1000)
        alone, beside = analyzed(variant(calm, calm)), analyzed(variant(calm, calm, unreported=1))
        assert beside.total.spare < alone.total.spare

    def test_only_silent_replicas_permit_nothing(self) -> None:
        found = analyzed(variant(unreported=3), memory=remembering(12_000))
        assert (found.total.required, found.total.spare) == (0, 0)

    @pytest.mark.parametrize("half", [instance(None, 1), instance(1000, None)])
    def test_half_a_reading_hides_a_full_replica(self, half: InstanceReading) -> None:
        sized = analyzed(variant(half)).variants["v"]
        assert sized.demand + sized.hidden == sized.per_replica


@pytest.mark.parametrize(("last", "live"), [(None, False), (55.0, True), (54.9, False), (100.0, True)])
def test_an_analyzer_is_live_for_three_intervals(last: float | None, live: bool) -> None:
    assert is_live(last, 100.0, interval_s=15.0) is live
