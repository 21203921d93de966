"""The percentage analyzer against the decision cases that its source publishes (τ 0.8 and 5, γ 0.1 and 3)."""

from __future__ import annotations

from typing import Any

import pytest

from models.explanation import Reason
from models.fleet import RunningReplica
from models.saturation import SaturationThresholds
from planner.saturation import ReplicaState, SaturationSignal, analyze, state_of

Reading = tuple[float | None, float | None]


def analyzed(readings: list[Reading], *, unreported: int = 0, **thresholds: Any) -> SaturationSignal:
    replicas = [RunningReplica(kv_usage=kv, queue=queue) for kv, queue in readings]
    return analyze(replicas, SaturationThresholds(**thresholds), unreported=unreported)


@pytest.mark.parametrize(
    ("case", "readings", "up", "safe"),
    [
        ("V1-1", [(0.75, 2), (0.76, 2)], True, False),
        ("V1-2", [(0.5, 3), (0.5, 3)], True, False),
        ("V1-3", [(0.5, 1), (0.5, 1)], False, False),
        ("V1-4", [(0.2, 1), (0.3, 1), (0.25, 1)], False, True),
        ("V1-5", [(0.70, 2), (0.75, 2)], True, False),
        ("V1-6", [(0.5, 2)], False, False),
        ("V1-8", [(0.85, 2), (0.5, 6), (0.9, 7)], True, False),
        ("V1-9", [], False, False),
    ],
)
def test_a_published_decision(case: str, readings: list[Reading], up: bool, safe: bool) -> None:
    signal = analyzed(readings)
    assert (signal.scale_up, signal.scale_in_safe) == (up, safe), case


def test_v1_1_spares() -> None:
    signal = analyzed([(0.75, 2), (0.76, 2)])
    assert signal.spare_kv == pytest.approx(0.045)
    assert signal.spare_queue == 3
    assert signal.up.reason is Reason.SPARE_BELOW_TRIGGER


def test_v1_2_spares() -> None:
    signal = analyzed([(0.5, 3), (0.5, 3)])
    assert (signal.spare_kv, signal.spare_queue) == (pytest.approx(0.3), 2)


def test_v1_4_keeps_the_trigger_with_one_replica_fewer() -> None:
    facts = analyzed([(0.2, 1), (0.3, 1), (0.25, 1)]).scale_in.facts
    # Loads 0.25 and 1, spread over two instead of three: 0.375 and 1.5.
    assert facts["spare_kv_after"] == pytest.approx(0.425)
    assert facts["spare_queue_after"] == pytest.approx(3.5)


def test_v1_8_has_no_spare_where_all_are_saturated() -> None:
    signal = analyzed([(0.85, 2), (0.5, 6), (0.9, 7)])
    assert (signal.spare_kv, signal.spare_queue, len(signal.saturated)) == (0, 0, 3)
    assert signal.up.reason is Reason.SATURATED


def test_v1_11_mean_usage_is_over_all_replicas() -> None:
    assert analyzed([(0.3, 0), (0.6, 0), (0.9, 0)]).usage_kv == pytest.approx(0.6)


def test_spare_leaves_saturated_replicas_out() -> None:
    signal = analyzed([(0.3, 0), (0.6, 0), (0.9, 0)])
    assert signal.spare_kv == pytest.approx((0.5 + 0.2) / 2)
    assert [replica.kv_usage for replica in signal.saturated] == [0.9]


@pytest.mark.parametrize(
    ("kv", "queue", "state"),
    [
        (0.8, 0, ReplicaState.SATURATED),
        (0.79, 5, ReplicaState.SATURATED),
        (0.79, 4.9, ReplicaState.NON_SATURATED),
        (None, 5, ReplicaState.SATURATED),
        (0.8, None, ReplicaState.SATURATED),
        (0.1, None, ReplicaState.MISSING),
        (None, 0, ReplicaState.MISSING),
        (None, None, ReplicaState.MISSING),
    ],
)
def test_tau_is_reached_by_either_figure(kv: float | None, queue: float | None, state: ReplicaState) -> None:
    assert state_of(RunningReplica(kv_usage=kv, queue=queue), SaturationThresholds()) is state


def test_a_spare_of_exactly_gamma_does_not_scale_up() -> None:
    assert not analyzed([(0.7, 2)]).scale_up
    # 0.9 - 0.8 falls short of 0.1 by its last bit.
    assert not analyzed([(0.8, 0)], tau_kv=0.9).scale_up


def test_a_spare_of_exactly_gamma_is_safe() -> None:
    # Load 0.35 on two becomes 0.7 on one, load 1 becomes 2: spares 0.1 and 3.
    assert analyzed([(0.35, 1), (0.35, 1)]).scale_in_safe
    assert not analyzed([(0.36, 1), (0.35, 1)]).scale_in_safe


class TestMissing:
    """A gap in the metrics moves nothing by itself."""

    def test_only_unknown_replicas_ask_for_nothing_and_permit_nothing(self) -> None:
        signal = analyzed([(None, None)], unreported=3)
        assert (signal.scale_up, signal.scale_in_safe, signal.missing) == (False, False, 4)
        assert (signal.usage_kv, signal.usage_queue) == (None, None)

    def test_unknown_counts_as_idle_when_scaling_up(self) -> None:
        full = [(0.75, 1.0), (0.75, 1.0)]
        assert analyzed(list(full)).scale_up
        # (0.05 + 0.05 + 0.8) / 3 = 0.3
        assert not analyzed(list(full), unreported=1).scale_up

    def test_unknown_counts_as_busy_when_scaling_in(self) -> None:
        calm = [(0.2, 1.0)] * 3
        assert analyzed(list(calm)).scale_in_safe
        # (3 x 1 + 5) / 3 = 2.67 waiting on each: a spare of 2.33 is below 3.
        assert not analyzed(list(calm), unreported=1).scale_in_safe

    def test_unknown_is_not_counted_as_non_saturated(self) -> None:
        signal = analyzed([(0.0, 0.0)], unreported=9)
        assert signal.scale_in.facts == {"non_saturated": 1, "needed": 2, "missing": 9}

    def test_many_calm_replicas_outweigh_one_unknown(self) -> None:
        assert analyzed([(0.1, 0.0)] * 6, unreported=1).scale_in_safe

    def test_it_enters_no_mean(self) -> None:
        signal = analyzed([(0.4, 2), (None, None)])
        assert (signal.usage_kv, signal.usage_queue) == (pytest.approx(0.4), 2)
        assert signal.spare_kv == pytest.approx(0.4)


class TestLeastNumber:
    """How many must be non-saturated before one may go is the user's to say."""

    @pytest.mark.parametrize("least", [0, 1])
    def test_the_last_one_may_go_only_if_it_holds_nothing(self, least: int) -> None:
        assert analyzed([(0.0, 0)], min_non_saturated_for_scale_in=least).scale_in_safe
        assert not analyzed([(0.01, 0)], min_non_saturated_for_scale_in=least).scale_in_safe
        assert not analyzed([(0.9, 0)], min_non_saturated_for_scale_in=least).scale_in_safe

    def test_more_can_be_asked_for(self) -> None:
        calm = [(0.2, 1.0)] * 3
        assert analyzed(list(calm), min_non_saturated_for_scale_in=3).scale_in_safe
        assert not analyzed(list(calm), min_non_saturated_for_scale_in=4).scale_in_safe


def test_the_order_of_replicas_means_nothing() -> None:
    readings: list[Reading] = [(0.9, 1), (0.1, 0), (0.85, 3), (None, 1)]
    assert analyzed(readings) == analyzed(readings[::-1])
