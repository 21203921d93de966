"""What carries out a plan with every kind of object, in each format, there and back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from planner.manifests import Route, one_stream, render_kustomize, render_manifests, render_script, route_of
from tests.rollouts import a_fleet, a_fleet_plan, undone

Golden = Callable[[str, str], None]


def streamed(route: Route) -> str:
    return one_stream(render_kustomize(route))


@pytest.mark.parametrize("way", ["there", "back"])
@pytest.mark.parametrize(
    ("name", "render"), [("kubectl", render_script), ("yaml", render_manifests), ("kustomize", streamed)]
)
def test_commands(name: str, render: Callable[[Route], str], way: str, golden: Golden) -> None:
    plan = a_fleet_plan()
    route = route_of(a_fleet(), plan) if way == "there" else undone(a_fleet(), plan)
    golden(f"commands_{name}_{way}.txt", render(route))
