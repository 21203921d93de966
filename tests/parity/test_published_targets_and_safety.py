"""Targets of the percentage analyzer, the enforcer's idle test and the safety net: published cases, and their repairs."""

from __future__ import annotations

from typing import Any

import pytest

from models.fleet import RunningReplica
from models.saturation import SaturationThresholds
from planner.saturation import (
    Activity,
    SaturationSignal,
    Shifting,
    analyze,
    enforce,
    safety_net,
    shift_one,
    shift_roles,
)
from planner.saturation.published import Reason, ServiceState, Targets, VariantState

FULL, CALM, STEADY = [(0.75, 2.0)] * 2, [(0.2, 1.0)] * 3, [(0.5, 1.0)] * 2


def signal(readings: list[tuple[float, float]]) -> SaturationSignal:
    return analyze([RunningReplica(kv_usage=kv, queue=q) for kv, q in readings], SaturationThresholds())


def variant(name: str, cost: float, current: int, *, desired: int | None = None, **more: Any) -> Shifting:
    state = VariantState(
        name=name, accelerator="H100", cost=cost, per_replica_capacity=0, current=current, **more
    )
    return Shifting(state=state, desired=desired)


def three(current: int = 2) -> list[Shifting]:
    return [
        variant("expensive", 20, current),
        variant("cheap", 5, current),
        variant("medium", 15, current),
    ]


@pytest.mark.parametrize(
    ("case", "variants", "readings", "expected"),
    [
        ("V1-12", three(), FULL, {"expensive": 2, "cheap": 3, "medium": 2}),
        ("V1-13", three(), CALM, {"expensive": 1, "cheap": 2, "medium": 2}),
        (
            "V1-14",
            [variant("expensive", 20, 2, desired=4), variant("cheap", 5, 2)],
            FULL,
            {"expensive": 4, "cheap": 2},
        ),
        ("V1-16", [variant("group", 5, 1)], FULL, {"group": 2}),
        ("V1-18-below", [variant("v", 5, 1, min_replicas=3)], STEADY, {"v": 3}),
        ("V1-18-above", [variant("v", 5, 5, max_replicas=4)], STEADY, {"v": 4}),
        ("at-its-ceiling", [variant("v", 5, 4, max_replicas=4)], FULL, {"v": 4}),
        ("pending", [variant("a", 5, 2, pending=1), variant("b", 9, 2)], FULL, {"a": 2, "b": 2}),
        ("held-out-of-bounds", [variant("v", 5, 2, desired=9, max_replicas=4)], STEADY, {"v": 9}),
        ("tie-up", [variant("b", 5, 2), variant("a", 5, 2)], FULL, {"a": 3, "b": 2}),
        ("tie-down", [variant("b", 5, 2), variant("a", 5, 2)], CALM, {"a": 2, "b": 1}),
        ("the-last-one-stays", [variant("a", 5, 1), variant("b", 9, 1)], CALM, {"a": 1, "b": 1}),
        ("dearest-with-two", [variant("a", 5, 2), variant("b", 9, 1)], CALM, {"a": 1, "b": 1}),
        ("no-cost-is-ten", [variant("a", 0, 2), variant("b", 11, 2)], FULL, {"a": 3, "b": 2}),
        ("steady", three(), STEADY, {"expensive": 2, "cheap": 2, "medium": 2}),
    ],
)
def test_targets(
    case: str, variants: list[Shifting], readings: list[tuple[float, float]], expected: dict[str, int]
) -> None:
    assert dict(shift_one(variants, signal(readings)).replicas) == expected, case


def test_roles_move_each_by_its_own_signal() -> None:
    variants = [
        variant("p", 5, 2, role="prefill"),
        variant("d", 5, 2, role="decode"),
        variant("b", 5, 2),
    ]
    found = shift_roles(variants, {"prefill": signal(FULL), "decode": signal(CALM), "both": None})
    assert dict(found.replicas) == {"p": 3, "d": 1, "b": 2}
    assert found.reasons["b"] is Reason.HELD


def test_one_role_in_transition_does_not_hold_the_other() -> None:
    variants = [variant("p", 5, 2, role="prefill", pending=1), variant("d", 5, 2, role="decode")]
    found = shift_roles(variants, {"prefill": signal(FULL), "decode": signal(FULL)})
    assert dict(found.replicas) == {"p": 2, "d": 3}


class TestEnforcer:
    """A service that somebody uses is not idle, whatever has been completed."""

    service = ServiceState(
        name="s",
        variants=tuple(
            VariantState(name=name, accelerator="H100", cost=cost, per_replica_capacity=1, current=1)
            for name, cost in (("b", 5), ("a", 5), ("dear", 20))
        ),
        signals=(),
    )

    def enforced(self, *, scale_to_zero: bool = True, target: int = 1, **activity: Any) -> dict[str, int]:
        targets = Targets(
            replicas=dict.fromkeys(("a", "b", "dear"), target),
            reasons=dict.fromkeys(("a", "b", "dear"), Reason.STEADY),
        )
        found = enforce(self.service, targets, activity=Activity(**activity), scale_to_zero=scale_to_zero)
        return dict(found.replicas)

    @pytest.mark.parametrize(
        ("case", "activity", "replicas"),
        [
            ("EN-1", {"completed": 0}, 0),
            ("EN-2-some", {"completed": 10}, 1),
            ("EN-2-error", {"completed": None}, 1),
            ("just-woken", {"completed": 0, "queued": 3}, 1),
            ("one-long-answer", {"completed": 0, "in_flight": 1}, 1),
            ("just-arrived", {"completed": 0, "arrivals": 1}, 1),
            ("unreadable-but-used", {"completed": None, "in_flight": 2}, 1),
            ("unreadable-queue", {"completed": 0, "queued": None}, 1),
        ],
    )
    def test_idle(self, case: str, activity: dict[str, Any], replicas: int) -> None:
        assert self.enforced(**activity) == dict.fromkeys(("a", "b", "dear"), replicas), case

    def test_en_3_without_scale_to_zero_the_cheapest_keeps_one(self) -> None:
        assert self.enforced(scale_to_zero=False, target=0, completed=0) == {"a": 1, "b": 0, "dear": 0}


@pytest.mark.parametrize(
    ("current", "previous", "expected"),
    [(2, 4, 4), (2, 0, 2), (2, None, 2), (0, 0, 0), (0, 3, 3)],
)
def test_the_safety_net_keeps_what_was_decided(current: int, previous: int | None, expected: int) -> None:
    before = {} if previous is None else {"v": previous}
    found = safety_net({"v": current}, before)
    assert dict(found.replicas) == {"v": expected}
    assert found.reasons == {"v": Reason.HELD}
