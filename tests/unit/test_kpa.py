"""Knative's KPA: windows, panic, rates, scale to zero."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.autoscaling import KpaSpec
from planner.errors import ConfigurationError
from planner.simulation.autoscaling import KpaAutoscaler, KpaMemory, scale
from tests.observations import a_replica, a_service, a_twin, seen


def spec(**more: Any) -> KpaSpec:
    """Ten at once per replica."""
    return KpaSpec(**{"target": 10, "target_utilization": 1.0, **more})


def run(
    told: KpaSpec, figures: list[float | None], *, ready: int | None = 1, memory: KpaMemory | None = None
) -> list[int | None]:
    """Counts of one tick after another, 2 s apart; ``ready`` None: replicas follow at once."""
    memory, counts, there = memory or KpaMemory(), [], ready
    for tick, figure in enumerate(figures):
        count, memory = scale(
            told, memory, ready=1 if there is None else there, figure=figure, now_s=2.0 * tick
        )
        counts.append(count)
        if ready is None:
            there = count
    return counts


@pytest.mark.parametrize(
    ("case", "told", "figure", "ready", "count"),
    [
        ("target", spec(), 35.0, 2, 4),
        ("exact", spec(), 30.0, 3, 3),
        ("utilization", spec(target_utilization=0.7), 35.0, 3, 5),
        ("at-most-the-rate", spec(max_scale_up_rate=2), 350.0, 3, 6),
        ("one-more-in-any-case", spec(max_scale_up_rate=1.1), 35.0, 2, 3),
        ("at-most-half-down", spec(), 10.0, 9, 4),
        ("min-scale", spec(min_replicas=3), 10.0, 3, 3),
        ("max-scale", spec(max_replicas=5), 350.0, 3, 5),
        ("activation-scale", spec(activation_replicas=4), 1.0, 1, 4),
        ("activation-scale-of-nothing", spec(activation_replicas=4, min_replicas=0), 0.0, 1, 1),
        ("nobody-ready-counts-as-one", spec(max_scale_up_rate=3), 350.0, 0, 3),
    ],
)
def test_one_tick(case: str, told: KpaSpec, figure: float, ready: int, count: int) -> None:
    assert scale(told, KpaMemory(), ready=ready, figure=figure, now_s=0.0)[0] == count, case


def test_without_data_nothing_changes() -> None:
    assert run(spec(), [None, None]) == [None, None]


def test_the_stable_window_smooths() -> None:
    """30 s of 10, then 30: no panic at 3 of 2 ready; the mean over 60 s rises slowly."""
    counts = run(spec(), [10.0] * 15 + [30.0] * 30, ready=2)
    assert counts[14] == 1
    assert counts[20] == 2
    assert counts[44] == 3


def test_panic_sees_the_last_six_seconds() -> None:
    """From 10 to 90 at once: the stable mean is far below, the panic mean is not."""
    counts = run(spec(), [10.0] * 30 + [90.0] * 3, ready=1)
    assert counts[29] == 1
    # (10 + 10 + 90)/3 = 36.7, (10 + 90 + 90)/3 = 63.3, 90.
    assert counts[30:] == [4, 7, 9]


def test_nothing_shrinks_in_panic_and_it_ends_a_stable_window_later() -> None:
    """Peak for 6 s, then almost nothing."""
    counts = run(spec(), [10.0] * 30 + [90.0] * 3 + [1.0] * 40, ready=None)
    peak = 9
    assert counts[32] == peak
    # Only at tick 30 (60 s) were twice as many wanted as were ready: 4 of 1, then 7 of 4 and 9 of 7.
    ended = next(tick for tick in range(33, 73) if counts[tick] != peak)
    assert ended == 61
    # Half of nine, then half of that.
    assert counts[ended] == 4


def test_a_new_kpa_keeps_what_runs_until_it_has_seen_enough() -> None:
    told, memory = spec(), KpaMemory.begun(6, 0.0)
    counts = run(told, [5.0] * 40, ready=6, memory=memory)
    assert counts[:31] == [6] * 31
    assert counts[31] == 3


def test_one_replica_begins_calmly() -> None:
    assert KpaMemory.begun(1, 0.0) == KpaMemory()


def test_a_lower_count_has_to_last_for_the_delay() -> None:
    counts = run(spec(scale_down_delay_s=20), [15.0] * 5 + [0.1] * 60, ready=2)
    plain = run(spec(), [15.0] * 5 + [0.1] * 60, ready=2)
    # The last tick that wanted two is 10 ticks back when it leaves the window of 20 s.
    assert counts.index(1) == plain.index(1) - 1 + 10


class TestZero:
    """To zero and back."""

    def test_it_takes_the_stable_window_and_the_grace_period(self) -> None:
        counts = run(spec(), [5.0] + [0.0] * 60)
        # The sample of 0 s leaves the window of 60 s at tick 30; 30 s of grace are over at tick 45.
        assert counts[:45] == [1] * 45
        assert counts[45] == 0

    def test_retention_keeps_the_last_one_longer(self) -> None:
        counts = run(spec(pod_retention_s=60), [5.0] + [0.0] * 70)
        assert counts.index(0) == 60

    def test_it_may_be_switched_off(self) -> None:
        assert 0 not in run(spec(scale_to_zero=False), [0.0] * 100)

    def test_use_begins_the_grace_period_anew(self) -> None:
        counts = run(spec(), [0.0] * 10 + [5.0] + [0.0] * 60)
        assert counts.index(0) == 10 + 30 + 15


class TestInARun:
    """What it reads."""

    def test_concurrency_counts_the_router_too(self) -> None:
        kpa = KpaAutoscaler({"v": spec()}, a_twin())
        found = seen(0.0, [a_replica(running=8, waiting=4)], a_service(router_queue=13))
        assert kpa.period_s == 2
        assert kpa.decide(found, 0.0) == {"v": 3}

    def test_variants_of_a_service_share_what_the_router_holds(self) -> None:
        kpa = KpaAutoscaler({"a": spec(), "b": spec()}, a_twin("a", "b"))
        found = seen(0.0, [a_replica("a", running=8), a_replica("b")], a_service(router_queue=24))
        assert kpa.decide(found, 0.0) == {"a": 2, "b": 2}

    def test_rates_need_two_readings(self) -> None:
        kpa = KpaAutoscaler({"v": spec(metric="rps")}, a_twin())
        assert kpa.decide(seen(0.0, [a_replica()], a_service(arrivals_total=5)), 0.0) == {}
        found = seen(2.0, [a_replica()], a_service(arrivals_total=55))
        assert kpa.decide(found, 2.0) == {"v": 3}

    def test_other_metrics_are_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="allowed: concurrency, rps"):
            KpaAutoscaler({"v": spec(metric="cpu")}, a_twin())


def test_bounds_that_contradict_are_refused() -> None:
    with pytest.raises(ValidationError, match="above max_replicas"):
        spec(min_replicas=4, max_replicas=3)
