"""The throughput analyzer: published figures, and the two tiers of its latency model."""

from __future__ import annotations

import pytest

from models.autoscaling import ScalingBounds
from planner.saturation import (
    Analysis,
    InstanceReading,
    Pace,
    PaceHistory,
    PaceMemory,
    Sample,
    Tier,
    TokenRates,
    Traffic,
    VariantReading,
    analyze_throughput,
    fit_pace,
    instance_rate,
    queue_rate,
)

TRAFFIC = Traffic(input_tokens=400, output_tokens=200)
CACHE = 50_000


def history(*kvs: float, slope: float = 0.05, base: float = 0.01, **more: float) -> PaceHistory:
    samples = tuple(Sample(0.0, kv, slope * kv + base) for kv in kvs)
    return PaceHistory(samples=samples, base_s=more.get("known"))


def spread(number: int, low: float = 0.2, high: float = 0.6) -> list[float]:
    return [low + (high - low) * index / (number - 1) for index in range(number)]


def analyzed(
    *instances: InstanceReading,
    arrival: float | None = 5.0,
    queued: float = 0.0,
    memory: PaceMemory | None = None,
    now_s: float = 0.0,
    role: str = "both",
) -> tuple[Analysis, PaceMemory]:
    one = VariantReading(name="v", instances=instances, role=role)
    return analyze_throughput(
        [one],
        traffic=TRAFFIC,
        asked=TokenRates(arrival_rps=arrival, queued=queued),
        memory=memory or PaceMemory(),
        now_s=now_s,
        bounds=ScalingBounds(),
    )


def instance(kv: float, *, slope: float = 0.05, rate: float | None = None) -> InstanceReading:
    return InstanceReading(
        kv_usage=kv, queue=0, kv_tokens=CACHE, kv_now=kv, itl_s=slope * kv + 0.01, token_rate=rate
    )


def test_tier_one_recovers_the_line() -> None:
    pace = fit_pace(history(*spread(10)))
    assert (pace.tier, pace.slope_s, pace.base_s) == (
        Tier.OLS,
        pytest.approx(0.05),
        pytest.approx(0.01),
    )


@pytest.mark.parametrize(
    ("case", "seen", "tier"),
    [
        ("enough", history(*spread(10)), Tier.OLS),
        ("nine", history(*spread(9)), Tier.DEFAULT),
        ("narrow", history(*spread(10, 0.4, 0.69)), Tier.DEFAULT),
        ("narrow-and-fitted-before", history(*spread(10, 0.4, 0.6), known=0.01), Tier.PINNED),
        ("falling", history(*spread(10), slope=-0.02, base=0.05), Tier.DEFAULT),
        ("nothing", history(), Tier.FAILED),
        ("below-its-base", history(0.3, 0.5, slope=0.0, base=0.004), Tier.FAILED),
    ],
)
def test_tiers(case: str, seen: PaceHistory, tier: Tier) -> None:
    assert fit_pace(seen).tier is tier, case


def test_tier_two_fits_the_slope_with_the_base_pinned() -> None:
    pace = fit_pace(history(0.4, 0.5, base=0.006))
    assert (pace.slope_s, pace.base_s) == (pytest.approx(0.05), 0.006)


def test_an_instance_is_rated_at_its_reference_usage() -> None:
    # 0.85 x 50,000 / (400 + 100) = 85 requests, a token each per 0.0525 s.
    rate = instance_rate(Pace(0.05, 0.01, Tier.OLS), CACHE, TRAFFIC)
    assert rate == pytest.approx(85 / 0.0525)


def test_prefix_hits_leave_room_for_more() -> None:
    half = Traffic(input_tokens=400, output_tokens=200, hit_share=0.5)
    pace = Pace(0.05, 0.01, Tier.OLS)
    assert instance_rate(pace, CACHE, half) == pytest.approx(instance_rate(pace, CACHE, TRAFFIC) * 500 / 300)


@pytest.mark.parametrize(("arrival", "demand", "more"), [(15, 3000, True), (5, 1000, False)])
def test_tp_2_demand_is_arrivals_times_outputs(arrival: float, demand: float, more: bool) -> None:
    found, _ = analyzed(instance(0.4), arrival=arrival)
    assert found.total.demand == demand
    assert (found.total.required > 0) is more


def test_tp_3_the_queue_is_to_be_cleared_in_time() -> None:
    assert queue_rate(100, 0.05) == 1000


def test_the_queue_is_demand() -> None:
    calm, held = analyzed(instance(0.4))[0], analyzed(instance(0.4), queued=100)[0]
    assert held.total.demand > calm.total.demand


def test_prefill_makes_no_tokens() -> None:
    assert analyzed(instance(0.4), role="prefill")[0].variants == {}


def test_a_variant_at_zero_shows_its_last_size() -> None:
    first, memory = analyzed(instance(0.4))
    asleep, _ = analyzed(memory=memory)
    assert asleep.variants["v"].reason == Tier.ASLEEP
    assert asleep.variants["v"].per_replica == first.variants["v"].per_replica > 0


def test_unknown_arrivals_permit_nothing() -> None:
    step = analyzed(*[instance(0.2)] * 4, arrival=None)[0].total
    assert (step.required, step.spare) == (0, 0)
    assert analyzed(*[instance(0.2)] * 4)[0].total.spare > 0


class TestWindow:
    """What is remembered, and what makes it worthless."""

    def test_twenty_samples_of_thirty_minutes(self) -> None:
        seen = PaceHistory()
        for minute in range(30):
            seen = seen.seen([Sample(minute * 60.0, 0.4, 0.03)], now_s=minute * 60.0)
        assert len(seen.samples) == 20
        assert seen.seen([], now_s=29 * 60.0 + 1800.1).samples == ()

    @pytest.mark.parametrize(("kv", "kept"), [(0.14, 0), (0.15, 1), (0.85, 1), (0.86, 0)])
    def test_only_usages_that_tell_something(self, kv: float, kept: int) -> None:
        assert len(PaceHistory().seen([Sample(0.0, kv, 0.03)], now_s=0.0).samples) == kept

    @pytest.mark.parametrize(
        ("lengths", "kept"), [((480, 200), 2), ((481, 200), 0), ((400, 161), 2), ((400, 159), 0)]
    )
    def test_other_lengths_empty_it(self, lengths: tuple[float, float], kept: int) -> None:
        seen = history(0.3, 0.5).of_lengths((400.0, 200.0))
        assert len(seen.of_lengths(lengths).samples) == kept

    def test_three_wrong_cycles_in_a_row_empty_it(self) -> None:
        seen = history(0.3, 0.5)
        for _ in range(2):
            seen = seen.judged([(0.5, 0.2)])
        assert seen.judged([(0.5, 0.1)]).wrong == 0
        assert len(seen.judged([(0.2, 0.9)]).samples) == 2
        assert seen.judged([(0.5, 0.2)]).samples == ()

    def test_a_wrong_token_rate_is_noticed(self) -> None:
        memory = analyzed(instance(0.5), instance(0.4))[1]
        for cycle in range(1, 4):
            _, memory = analyzed(instance(0.5, rate=1.0), memory=memory, now_s=cycle * 15.0)
        assert len(memory.histories["v"].samples) == 1
