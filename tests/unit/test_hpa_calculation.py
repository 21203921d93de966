"""The Kubernetes HPA's arithmetic: one metric to a count, windows, policies, one reconciliation."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from models.autoscaling import (
    HpaBehavior,
    HpaMetric,
    HpaSpec,
    MetricSource,
    PolicySelect,
    PolicyType,
    ScalingPolicy,
    ScalingRules,
    TargetType,
)
from planner.simulation.autoscaling.hpa import HpaDecision, HpaTarget, reconcile
from planner.simulation.autoscaling.hpa_limits import At, HpaHistory, HpaReason, limit_rate, stabilize
from planner.simulation.autoscaling.hpa_metrics import (
    PodFigure,
    PodPhase,
    Tolerances,
    average_value,
    per_pod,
    value,
)

EVEN = Tolerances()
NO_METRIC = PodFigure(None)
PENDING = PodFigure(None, PodPhase.PENDING)


def pods(*values: float) -> list[PodFigure]:
    return [PodFigure(one) for one in values]


@pytest.mark.parametrize(
    ("case", "figures", "target", "current", "count"),
    [
        ("up", pods(20, 10, 30), 15, 3, 4),
        ("down", pods(12, 12, 12, 12, 12), 20, 5, 3),
        ("inside-the-tolerance", pods(1.05, 1.05), 1, 2, 2),
        ("at-its-edge", pods(1.1, 1.1), 1, 2, 2),
        ("beyond-it", pods(1.2, 1.2), 1, 2, 3),
        ("eleven-times", pods(1.1), 0.1, 1, 11),
        ("to-nothing", pods(0, 0), 1, 2, 0),
        # 2.0 over three pods with the silent one idle is 1.33.
        ("missing-is-idle-when-growing", [*pods(2, 2), NO_METRIC], 1, 3, 4),
        # 0.4, 0.4 and the silent one at its target: 0.6.
        ("missing-is-at-its-target-when-shrinking", [*pods(0.4, 0.4), NO_METRIC], 1, 3, 2),
        # 1.3 alone, 0.65 with the silent one: the direction would turn round.
        ("missing-turns-it-round", [*pods(1.3), NO_METRIC], 1, 2, 2),
        ("missing-brings-it-into-the-tolerance", [*pods(0.2), *[NO_METRIC] * 9], 1, 10, 10),
        ("pending-is-idle-when-growing", [*pods(2, 2), PENDING], 1, 3, 4),
        ("pending-does-not-count-when-shrinking", [*pods(0.4, 0.4), PENDING], 1, 3, 1),
        ("both", [*pods(3, 3), NO_METRIC, PENDING], 1, 4, 6),
        ("a-large-need-survives-idle-pods", [*pods(10), NO_METRIC, NO_METRIC], 1, 3, 10),
        # Three of ten report: 2.0 becomes 0.6 with seven idle ones.
        ("mostly-silent", [*pods(2, 2, 2), *[NO_METRIC] * 7], 1, 10, 10),
        ("exactly-at-the-target-silent-pods-are-idle", [*pods(1), NO_METRIC], 1, 2, 1),
        ("fewer-than-asked-for", pods(1.5, 1.5), 1, 4, 3),
        ("nobody-reports", [NO_METRIC, PENDING], 1, 2, None),
        ("nobody-there", [], 1, 2, None),
    ],
)
def test_a_metric_of_pods(
    case: str, figures: list[PodFigure], target: float, current: int, count: int | None
) -> None:
    assert per_pod(figures, target, current=current, tolerances=EVEN) == count, case


@pytest.mark.parametrize(
    ("case", "total", "target", "existing", "count"),
    [
        ("exact", 6, 2, 1, 3),
        ("rounded-up", 7, 2, 1, 4),
        ("inside-the-tolerance", 6.5, 2, 3, 3),
        ("beyond-it", 6.7, 2, 3, 4),
        ("nothing-asked", 0, 2, 3, 0),
        ("from-zero", 3, 1, 0, 3),
        ("decision-of-wva", 5, 1, 2, 5),
    ],
)
def test_an_external_average(case: str, total: float, target: float, existing: int, count: int) -> None:
    assert average_value(total, target, existing=existing, tolerances=EVEN) == count, case


@pytest.mark.parametrize(
    ("case", "total", "current", "ready", "count"),
    [
        ("double", 2, 2, 2, 4),
        ("only-ready-pods-count", 2, 4, 2, 4),
        ("inside-the-tolerance", 1.1, 7, 3, 7),
        ("half", 0.5, 4, 4, 2),
        ("from-zero", 2.5, 0, 0, 3),
        ("nothing", 0, 3, 3, 0),
    ],
)
def test_an_external_value(case: str, total: float, current: int, ready: int, count: int) -> None:
    assert value(total, 1, current=current, ready=ready, tolerances=EVEN) == count, case


def test_a_steady_value_compounds() -> None:
    """What a decision of 2 with target type Value does: 2, 4, 8, ... up to the maximum."""
    counts = [2]
    for _ in range(3):
        counts.append(value(2, 1, current=counts[-1], ready=counts[-1], tolerances=EVEN))
    assert counts == [2, 4, 8, 16]


def test_tolerances_may_differ_by_direction() -> None:
    careful = Tolerances(down=0.5, up=0.0)
    assert per_pod(pods(1.01, 1.01), 1, current=2, tolerances=careful) == 3
    assert per_pod(pods(0.6, 0.6), 1, current=2, tolerances=careful) == 2


def policy(kind: str, amount: int, period_s: float = 60.0) -> ScalingPolicy:
    return ScalingPolicy(type=PolicyType(kind), value=amount, period_s=period_s)


def behavior(**rules: ScalingRules) -> HpaBehavior:
    return HpaBehavior(**rules)


def rules(*policies: ScalingPolicy, **more: Any) -> ScalingRules:
    return ScalingRules(policies=policies, **more)


class TestRate:
    """How far a count may go at once."""

    def limited(
        self, current: int, desired: int, how: HpaBehavior | None, history: HpaHistory | None = None
    ) -> int:
        return limit_rate(
            history or HpaHistory(),
            desired,
            current=current,
            bounds=(1, 1000),
            behavior=how,
            now_s=100.0,
        )[0]

    @pytest.mark.parametrize(
        ("case", "current", "desired", "how", "count"),
        [
            ("without-behavior-four", 1, 50, None, 4),
            ("without-behavior-double", 5, 50, None, 10),
            ("without-behavior-down-at-once", 50, 1, None, 1),
            ("default-four-pods", 1, 50, behavior(), 5),
            ("default-double", 10, 50, behavior(), 20),
            ("default-down-at-once", 50, 1, behavior(), 1),
            ("pods-up", 10, 50, behavior(up=rules(policy("Pods", 3))), 13),
            ("percent-up-rounds-up", 3, 50, behavior(up=rules(policy("Percent", 10))), 4),
            (
                "largest-up",
                10,
                50,
                behavior(up=rules(policy("Pods", 3), policy("Percent", 50))),
                15,
            ),
            (
                "smallest-up",
                10,
                50,
                behavior(up=rules(policy("Pods", 3), policy("Percent", 50), select=PolicySelect.MIN)),
                13,
            ),
            ("up-disabled", 10, 50, behavior(up=ScalingRules(select=PolicySelect.DISABLED)), 10),
            ("pods-down", 10, 1, behavior(down=rules(policy("Pods", 3))), 7),
            # 7 x 0.9 = 6.3 leaves 6.
            ("percent-down-removes-the-part", 7, 1, behavior(down=rules(policy("Percent", 10))), 6),
            (
                "largest-down",
                80,
                1,
                behavior(down=rules(policy("Pods", 4), policy("Percent", 10))),
                72,
            ),
            (
                "smallest-down",
                80,
                1,
                behavior(down=rules(policy("Pods", 4), policy("Percent", 10), select=PolicySelect.MIN)),
                76,
            ),
            ("down-disabled", 10, 1, behavior(down=ScalingRules(select=PolicySelect.DISABLED)), 10),
            ("down-disabled-may-grow", 10, 12, behavior(down=ScalingRules(select=PolicySelect.DISABLED)), 12),
            ("inside", 10, 11, behavior(up=rules(policy("Pods", 3))), 11),
        ],
    )
    def test_policies(
        self, case: str, current: int, desired: int, how: HpaBehavior | None, count: int
    ) -> None:
        assert self.limited(current, desired, how) == count, case

    @pytest.mark.parametrize(
        ("case", "added", "removed", "count"),
        [
            ("nothing-yet", (), (), 13),
            ("two-in-this-period", (At(50.0, 2),), (), 11),
            ("all-in-this-period", (At(50.0, 1), At(90.0, 2)), (), 10),
            ("a-period-ago", (At(40.0, 3),), (), 13),
            ("removed-in-this-period", (), (At(60.0, 2),), 15),
        ],
    )
    def test_a_period_counts_what_has_been_done(
        self, case: str, added: tuple[At, ...], removed: tuple[At, ...], count: int
    ) -> None:
        how = behavior(up=rules(policy("Pods", 3, 60.0)))
        assert self.limited(10, 50, how, HpaHistory((), added, removed)) == count, case

    def test_more_than_a_period_allows_never_turns_round(self) -> None:
        history = HpaHistory((), (At(90.0, 9),), ())
        assert self.limited(10, 50, behavior(up=rules(policy("Pods", 3))), history) == 10


class TestWindows:
    """The safest recommendation of the window counts."""

    seen = HpaHistory((At(10.0, 8), At(50.0, 3), At(90.0, 5)))

    def stable(self, desired: int, current: int, up_s: float, down_s: float) -> tuple[int, HpaReason]:
        how = behavior(up=ScalingRules(stabilization_s=up_s), down=ScalingRules(stabilization_s=down_s))
        return stabilize(self.seen, desired, current=current, behavior=how, now_s=100.0)

    @pytest.mark.parametrize(
        ("case", "desired", "current", "up_s", "down_s", "count"),
        [
            ("no-windows-up", 9, 4, 0, 0, 9),
            ("no-windows-down", 2, 4, 0, 0, 2),
            ("largest-of-the-last-minute", 2, 6, 0, 60, 5),
            ("largest-of-all", 2, 9, 0, 300, 8),
            ("below-the-largest", 2, 4, 0, 300, 4),
            ("smallest-of-the-last-minute", 9, 2, 60, 0, 3),
            ("above-the-smallest", 9, 4, 60, 0, 4),
            ("exactly-at-the-edge-is-out", 2, 9, 0, 90, 5),
        ],
    )
    def test_windows(
        self, case: str, desired: int, current: int, up_s: float, down_s: float, count: int
    ) -> None:
        assert self.stable(desired, current, up_s, down_s)[0] == count, case

    def test_it_says_which_window_held(self) -> None:
        assert self.stable(2, 6, 0, 60)[1] is HpaReason.SCALE_DOWN_STABILIZED
        assert self.stable(9, 2, 60, 0)[1] is HpaReason.SCALE_UP_STABILIZED

    def test_without_behavior_the_largest_of_five_minutes(self) -> None:
        assert stabilize(self.seen, 2, current=3, behavior=None, now_s=100.0)[0] == 8
        assert stabilize(self.seen, 2, current=3, behavior=None, now_s=310.0)[0] == 5


QUEUE = HpaMetric(name="waiting", source=MetricSource.PODS, target=3)
KV = HpaMetric(name="kv_usage", source=MetricSource.PODS, target=0.5)
HELD = HpaMetric(name="router_queue", source=MetricSource.EXTERNAL, target=2)
AT_ONCE = behavior(up=rules(policy("Pods", 100, 15.0)), down=ScalingRules(stabilization_s=0))


def spec(*metrics: HpaMetric, **more: Any) -> HpaSpec:
    return HpaSpec(**{"max_replicas": 10, "behavior": AT_ONCE, "metrics": metrics or (QUEUE, KV), **more})


def target(asked: int, **more: Any) -> HpaTarget:
    return HpaTarget(**{"asked": asked, "existing": asked, "ready": asked, **more})


def decided(
    told: HpaSpec, seen: HpaTarget, history: HpaHistory | None = None, now_s: float = 0.0
) -> HpaDecision:
    return reconcile(told, history or HpaHistory(), target=seen, now_s=now_s)


class TestReconcile:
    """One pass of the controller."""

    @pytest.mark.parametrize(
        ("case", "figures", "count", "reason"),
        [
            ("largest-of-two", {"waiting": pods(6, 6), "kv_usage": pods(0.5, 0.5)}, 4, "DesiredWithinRange"),
            ("the-other-one", {"waiting": pods(0, 0), "kv_usage": pods(0.8, 0.8)}, 4, "DesiredWithinRange"),
            ("both-low", {"waiting": pods(0, 0), "kv_usage": pods(0.1, 0.1)}, 1, "DesiredWithinRange"),
            ("one-unreadable-may-grow", {"waiting": pods(6, 6)}, 4, "DesiredWithinRange"),
            ("one-unreadable-does-not-shrink", {"waiting": pods(0, 0)}, 2, "FailedGetMetrics"),
            ("all-unreadable", {}, 2, "FailedGetMetrics"),
            ("cut-at-its-maximum", {"waiting": pods(60, 60)}, 10, "TooManyReplicas"),
            ("held-at-its-minimum", {"waiting": pods(0, 0), "kv_usage": pods(0, 0)}, 1, "TooFewReplicas"),
        ],
    )
    def test_several_metrics(
        self, case: str, figures: dict[str, list[PodFigure]], count: int, reason: str
    ) -> None:
        found = decided(spec(), target(2, pods=figures))
        assert (found.replicas, found.reason) == (count, reason), case

    @pytest.mark.parametrize(("asked", "count"), [(12, 10), (1, 2)])
    def test_out_of_bounds_it_comes_back_without_metrics(self, asked: int, count: int) -> None:
        assert decided(spec(min_replicas=2), target(asked)).replicas == count

    def test_a_target_at_zero_is_left_alone(self) -> None:
        found = decided(spec(HELD), target(0, external={"router_queue": 50.0}))
        assert (found.replicas, found.reason) == (0, HpaReason.SCALING_DISABLED)

    def test_with_the_gate_it_wakes_and_sleeps(self) -> None:
        told = spec(HELD, min_replicas=0, scale_to_zero_gate=True)
        assert decided(told, target(0, external={"router_queue": 5.0})).replicas == 3
        assert decided(told, target(3, external={"router_queue": 0.0})).replicas == 0

    def test_it_shrinks_five_minutes_after_the_last_need(self) -> None:
        told, history, asked, counts = spec(HELD, behavior=behavior()), HpaHistory(), 1, []
        for cycle in range(26):
            need = 12.0 if cycle < 4 else 2.0
            found = decided(told, target(asked, external={"router_queue": need}), history, cycle * 15.0)
            history, asked = found.history, found.replicas
            counts.append(asked)
        # Needed until 45 s; the window of 300 s is over at 345 s, cycle 23.
        assert counts == [5, *[6] * 22, *[1] * 3]

    def test_growth_is_counted_against_its_period(self) -> None:
        told = spec(HELD, max_replicas=100, behavior=behavior(up=rules(policy("Pods", 10, 150.0))))
        history, asked, counts = HpaHistory(), 1, []
        for cycle in range(12):
            found = decided(told, target(asked, external={"router_queue": 200.0}), history, cycle * 15.0)
            history, asked = found.history, found.replicas
            counts.append(asked)
        assert counts == [*[11] * 10, *[21] * 2]

    def test_histories_are_values(self) -> None:
        before = HpaHistory()
        decided(spec(), target(2, pods={"waiting": pods(6, 6)}), before)
        assert before == HpaHistory()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"min_replicas": 11}, "min_replicas 11 above max_replicas 10"),
        ({"min_replicas": 0}, "needs scale_to_zero_gate"),
        ({"min_replicas": 0, "scale_to_zero_gate": True}, "source External"),
        ({"metrics": ()}, "at least 1 item"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        spec(**fields)


def test_a_metric_of_pods_is_an_average() -> None:
    with pytest.raises(ValidationError, match="AverageValue only"):
        HpaMetric(name="x", source=MetricSource.PODS, target_type=TargetType.VALUE, target=1)
