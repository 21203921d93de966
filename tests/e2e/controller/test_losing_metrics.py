"""Prometheus goes away and comes back: nothing moves meanwhile, and nothing jumps then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.control.cluster.kinds import VARIANT_AUTOSCALINGS
from tests.e2e.controller.controller_process import ControllerProcess, settings_of
from tests.e2e.controller.world import Service, World, controller_test
from tests.e2e.kube.control_plane import wait_until

pytestmark = controller_test()


@pytest.fixture
def with_prometheus(world: World) -> Iterator[None]:
    yield
    world.prometheus.start()


def condition(service: Service, name: str, kind: str) -> dict[str, Any]:
    status = service.world.admin.get(VARIANT_AUTOSCALINGS, service.namespace, name).get("status") or {}
    return next((each for each in status.get("conditions", []) if each["type"] == kind), {})


@pytest.mark.usefixtures("with_prometheus")
def test_replicas_hold_while_prometheus_is_away_and_do_not_jump_when_it_is_back(
    world: World, tmp_path: Path
) -> None:
    actuators = [{"name": name} for name in ("scale", "variantautoscaling")]
    with world.service() as service:
        service.declared_variant("llama", replicas=1, most=2)
        wait_until(lambda: service.ready() == 1, what="the first replica")
        settings = settings_of(world, service.namespace, actuators=actuators)
        with ControllerProcess(world, tmp_path, settings) as controller:
            service.clients.at_once = 20
            wait_until(lambda: service.ready() == 2, within_s=90, what="two replicas")
            wait_until(
                lambda: condition(service, "llama", "MetricsAvailable").get("status") == "True",
                what="metrics",
            )
            seen = service.generation("llama")
            world.prometheus.stop()
            # Nothing to do any more, if anybody could see it.
            service.clients.at_once = 0
            wait_until(
                lambda: condition(service, "llama", "MetricsAvailable").get("status") == "False",
                what="the condition",
            )
            controller.wait_cycles(3)
            assert service.generation("llama") == seen
            service.clients.at_once = 20
            world.prometheus.start()
            wait_until(
                lambda: condition(service, "llama", "MetricsAvailable").get("status") == "True",
                within_s=90,
                what="the condition to hold again",
            )
            controller.wait_cycles(5)
            assert service.generation("llama") == seen
