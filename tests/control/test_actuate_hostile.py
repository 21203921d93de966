"""Objects that anybody may have written, absurd counts and broken plug-ins: an outcome for each decision, never a crash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.observation import EngineObservation, Observation
from planner.control.actuators import Actuators, actuators_from
from planner.control.cluster import MemoryCluster
from planner.control.protocols import Decision, Outcome, OutcomeCode
from tests.control.actuator_builders import a_variant, connected, decided

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-10, 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KNOWN = st.sampled_from(
    [
        "spec", "status", "replicas", "minReplicas", "maxReplicas", "selector", "matchLabels", "template", "metadata",
        "labels", "annotations", "conditions", "type", "readinessGates", "conditionType", "desiredOptimizedAlloc",
        "fleetplan.dev/pinned", "fleetplan.dev/former-bounds", "fleetplan.dev/drain", "fleetplan.dev/serving",
        "autoscaling.keda.sh/paused-replicas", "scaleTargetRef", "clusterIP",
    ]
)  # fmt: skip
PARTS = st.dictionaries(KNOWN, st.dictionaries(KNOWN, JSON, max_size=4) | JSON, max_size=5)
KINDS = {
    "Deployment": "llama", "HorizontalPodAutoscaler": "llama-hpa", "ScaledObject": "llama-so",
    "VariantAutoscaling": "llama-va", "Service": "llama", "Pod": "llama-1",
}  # fmt: skip
ALL = ("draining", "gauge", "hpa", "keda", "scale", "variantautoscaling")


def a_thing(kind: str, parts: dict[str, Any]) -> dict[str, Any]:
    metadata = parts.get("metadata")
    kept = {
        key: value for key, value in (metadata if isinstance(metadata, dict) else {}).items()
        if key in {"labels", "annotations"} and (value is None or isinstance(value, dict))
    }  # fmt: skip
    return {**parts, "kind": kind, "metadata": {**kept, "name": KINDS[kind], "namespace": "prod"}}


def acted(
    cluster: MemoryCluster, decisions: Sequence[Decision], *, dry_run: bool = False
) -> tuple[Outcome, ...]:
    fleet = actuators_from([(name, {}) for name in ALL], connected(cluster, conflicts=1))
    fleet.lead(leading=True)
    variants = tuple(each.variant for each in decisions)
    engine = EngineObservation(instance="p", namespace="prod", pod="llama-1", running=0, waiting=0, age_s=0)
    fleet.saw(Observation(at_s=1e9, variants=variants, engines=(engine,)))
    return fleet.act(decisions, dry_run=dry_run)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(list(KINDS)), PARTS), max_size=6, unique_by=lambda each: each[0]),
    st.booleans(),
)
def test_no_object_breaks_an_actuator(things: list[tuple[str, dict[str, Any]]], dry_run: bool) -> None:
    cluster = MemoryCluster([a_thing(kind, parts) for kind, parts in things])
    decisions = [decided(a_variant(scaler), 1) for scaler in ("hpa", "keda", "scale", "variantautoscaling")]
    outcomes = acted(cluster, decisions, dry_run=dry_run)
    assert not [each.message for each in outcomes if "broke" in each.message]
    if dry_run:
        assert not cluster.writes


@pytest.mark.parametrize("count", [-(10**18), -1, 0, 10**9, 10**18])
def test_an_absurd_count_is_an_outcome(count: int) -> None:
    things = [a_thing(kind, {"spec": {"replicas": 2}}) for kind in KINDS if kind != "Pod"]
    decisions = [decided(a_variant(scaler), count) for scaler in ("hpa", "keda", "scale")]
    assert not [each for each in acted(MemoryCluster(things), decisions) if "broke" in each.message]


class Broken:
    """A plug-in that raises, with a secret in its words."""

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        raise RuntimeError("Bearer of-bad-news")

    def prepare(self, decisions: Sequence[Decision], *, dry_run: bool) -> Any:
        raise RuntimeError("Bearer of-bad-news")

    def saw(self, observation: Observation) -> None:
        raise RuntimeError("Bearer of-bad-news")

    def close(self) -> None:
        raise RuntimeError("Bearer of-bad-news")

    def release(self, variants: Any, *, dry_run: bool) -> Any:
        raise RuntimeError("Bearer of-bad-news")


class Keeping:
    """Remembers what it was to do."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def act(self, decisions: Sequence[Decision], *, dry_run: bool) -> Sequence[Outcome]:
        self.counts += [each.desired for each in decisions]
        return [Outcome(decision=each, applied=True, changed=True) for each in decisions]


def test_a_plug_in_that_breaks_stops_nobody_shows_no_secret_and_lets_nothing_fall() -> None:
    keeping = Keeping()
    fleet = Actuators({"broken": Broken(), "keeping": keeping}, connected(MemoryCluster()))
    fleet.saw(Observation(at_s=1e9))
    found = fleet.act([decided(a_variant(wanted=4), 1), decided(a_variant(wanted=4), 6)], dry_run=False)
    assert [each.code for each in found[:2]] == [OutcomeCode.FAILED] * 2
    assert found[0].message == "the actuator broken broke (RuntimeError)"
    assert keeping.counts == [4, 6]
    assert [each.code for each in fleet.release([a_variant()], dry_run=False)] == [OutcomeCode.FAILED]
    fleet.close()
