"""The API server stops, is slow, is busy, refuses, loses answers: nothing is lost and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from planner.control.cluster.kinds import VARIANT_AUTOSCALINGS
from tests.e2e.controller.api_proxy import WRITES, ApiProxy, Failing, Fails, failing
from tests.e2e.controller.controller_process import ControllerProcess, settings_of
from tests.e2e.controller.world import Service, World, controller_test
from tests.e2e.kube.control_plane import wait_until

pytestmark = controller_test()

SCALE = ({"name": "scale"},)


@pytest.fixture
def proxy(world: World, tmp_path: Path) -> Iterator[ApiProxy]:
    folder = tmp_path / "proxy"
    folder.mkdir()
    with ApiProxy(world.plane, world.background, folder) as found:
        yield found


@pytest.fixture
def service(world: World) -> Iterator[Service]:
    """One replica, two at most, and work for more."""
    with world.service() as found:
        found.declared_variant("llama", replicas=1, most=2)
        wait_until(lambda: found.ready() == 1, what="the first replica")
        found.clients.at_once = 20
        yield found


BUSY = Failing(status=429, headers={"Retry-After": "1"})
EVERY = ("GET", *WRITES)
FAULTS: Mapping[str, Callable[[], Fails]] = {
    "conflicts": lambda: failing(Failing(status=409), *WRITES, path="/scale", times=3),
    "busy": lambda: failing(BUSY, *EVERY, path="/deployments", times=4),
    "denied": lambda: failing(Failing(status=403), *WRITES, path="/scale", times=4),
    "slow": lambda: failing(Failing(slow_s=1.5), *EVERY, path="/deployments", times=6),
    "too slow": lambda: failing(Failing(slow_s=5.0), *WRITES, path="/scale", times=2),
    "answers lost": lambda: failing(Failing(loses=True), *WRITES, path="/scale", times=1),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_change_is_made_once_however_the_server_fails(
    proxy: ApiProxy, service: Service, tmp_path: Path, *, fault: str
) -> None:
    proxy.fails = FAULTS[fault]()
    before = service.generation("llama")
    settings = settings_of(
        service.world, service.namespace, kubeconfig=proxy.kubeconfig(), actuators=list(SCALE)
    )
    with ControllerProcess(service.world, tmp_path, settings) as controller:
        wait_until(lambda: service.wanted("llama") == 2, within_s=90, what="the second replica")
        controller.wait_cycles(3)
    assert service.wanted("llama") == 2
    assert service.generation("llama") == before + 1


def test_a_denial_names_the_rule_that_is_missing(proxy: ApiProxy, service: Service, tmp_path: Path) -> None:
    proxy.fails = failing(Failing(status=403), *WRITES, path="/scale")
    settings = settings_of(
        service.world, service.namespace, kubeconfig=proxy.kubeconfig(), actuators=list(SCALE)
    )
    with ControllerProcess(service.world, tmp_path, settings) as controller:
        wait_until(lambda: "deployments/scale" in str(controller.records()), within_s=90, what="the rule")
        assert service.wanted("llama") == 1


def test_a_server_that_stops_is_waited_for_and_nothing_has_changed(
    world: World, service: Service, tmp_path: Path
) -> None:
    settings = settings_of(world, service.namespace, actuators=list(SCALE))
    with ControllerProcess(world, tmp_path, settings) as controller:
        wait_until(lambda: service.ready() == 2, within_s=90, what="two replicas")
        seen = service.generation("llama")
        world.plane.stop("apiserver")
        try:
            # Who cannot renew the lease might not be the only one, and stops.
            wait_until(lambda: not controller.leads(), within_s=90, what="the end of its lead")
            assert controller.desired() == {}
        finally:
            world.plane.start("apiserver")
            world.plane.wait_ready()
        wait_until(controller.leads, within_s=90, what="its lead")
        controller.wait_cycles(5)
        assert service.generation("llama") == seen
        world.admin.patch(VARIANT_AUTOSCALINGS, service.namespace, "llama", {"spec": {"maxReplicas": 3}})
        wait_until(lambda: service.wanted("llama") == 3, within_s=90, what="a third replica")
