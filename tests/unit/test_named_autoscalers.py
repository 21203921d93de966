"""Autoscalers by name: fresh ones for every variant, inside the bounds of each."""

from __future__ import annotations

import pytest

from planner.errors import ConfigurationError
from planner.simulation.autoscaling import AUTOSCALERS, bounds_of, named_autoscaler
from tests.observations import a_replica, a_twin, seen


@pytest.mark.parametrize("name", AUTOSCALERS)
def test_each_decides_for_every_variant_inside_its_bounds(name: str) -> None:
    twin = a_twin("a", "b", min_replicas=2, max_replicas=3, initial_replicas=2)
    autoscaler = named_autoscaler(name, twin)
    full = [
        a_replica(variant, name=f"{variant}-{index}", kv=0.99, waiting=50, running=256)
        for variant in ("a", "b")
        for index in range(2)
    ]
    answers = autoscaler.decide(seen(0.0, full), 0.0)
    assert answers.keys() == {"a", "b"}
    assert all(2 <= count <= 3 for count in answers.values())
    assert autoscaler.period_s > 0


@pytest.mark.parametrize("name", sorted(set(AUTOSCALERS) - {"static"}))
def test_each_grows_when_everything_is_full(name: str) -> None:
    full = [a_replica(name=f"v-{index}", kv=0.99, waiting=50, running=256) for index in range(2)]
    assert named_autoscaler(name, a_twin(initial_replicas=2)).decide(seen(0.0, full), 0.0)["v"] > 2


def test_two_of_one_name_share_nothing() -> None:
    twin = a_twin()
    assert named_autoscaler("wva", twin) is not named_autoscaler("wva", twin)


@pytest.mark.parametrize(
    ("least", "most", "initial", "bounds"),
    [(0, None, 1, (1, 10)), (2, 5, 2, (2, 5)), (0, None, 14, (1, 14)), (12, None, 12, (12, 12))],
)
def test_bounds(least: int, most: int | None, initial: int, bounds: tuple[int, int]) -> None:
    spec = a_twin(min_replicas=least, max_replicas=most, initial_replicas=initial).replicas[0]
    assert bounds_of(spec) == bounds


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'wva-v2'"):
        named_autoscaler("wva_v2", a_twin())
