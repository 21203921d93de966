"""The controller, the real HPA controller and engines: load comes and goes, and no request is cut."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.controller.controller_process import ControllerProcess, settings_of
from tests.e2e.controller.engine_server import EngineSize
from tests.e2e.controller.traffic import Ending
from tests.e2e.controller.world import World, controller_test
from tests.e2e.kube.control_plane import wait_until
from tests.kube_objects import L4

pytestmark = controller_test()


def test_replicas_follow_the_load_up_and_down_and_no_request_is_cut(world: World, tmp_path: Path) -> None:
    """Replicas that go are idle before their end begins: the hook of their pods has nothing to wait for."""
    with (
        world.service() as service,
        ControllerProcess(world, tmp_path, settings_of(world, service.namespace)) as controller,
    ):
        service.variant("llama", replicas=1, most=5, gated=True)
        wait_until(lambda: service.ready() == 1, within_s=60, what="the first replica")
        service.clients.rps = 8.0
        wait_until(lambda: service.ready() >= 3, within_s=60, what="three replicas")
        service.clients.rps = 1.0
        wait_until(lambda: len(service.pods()) == 1, within_s=150, what="one replica")
        service.clients.rps = 0.0
        wait_until(lambda: not service.clients.waiting, what="the last answer")
        assert "out of routing" in str(controller.records())
    assert set(service.clients.endings) == {Ending.DONE}
    assert service.clients.endings[Ending.DONE] > 30
    ended = world.kubelets.busy_at_end.items()
    held = [busy for (namespace, _), busy in ended if namespace == service.namespace]
    assert len(held) >= 2
    assert not any(held)


def test_no_replica_goes_while_less_than_two_are_below_saturation(world: World, tmp_path: Path) -> None:
    """One replica has a queue, the other is idle: together they could spare one."""
    with world.service(size=EngineSize(batch=2)) as service:
        service.variant("llama", replicas=2)
        wait_until(lambda: service.ready() == 2, what="two replicas")
        service.picker.only = sorted(service.engines)[0]
        service.clients.prompt = 20
        service.clients.at_once = 9
        full = service.engines[service.picker.only]
        wait_until(lambda: len(full.waiting) >= 6, what="a queue")
        with ControllerProcess(world, tmp_path, settings_of(world, service.namespace)) as controller:
            wait_until(lambda: controller.desired().get("llama", 0) >= 2, what="a gauge")
            controller.wait_cycles(8)
            assert service.wanted("llama") >= 2
            # The queue goes, and with it what held the replica.
            service.clients.at_once = 0
            wait_until(lambda: service.wanted("llama") == 1, within_s=120, what="one replica")


def test_replicas_that_start_count_and_are_not_asked_for_again(world: World, tmp_path: Path) -> None:
    with world.service() as service:
        service.variant("llama", replicas=1, most=8)
        wait_until(lambda: service.ready() == 1, what="the first replica")
        world.kubelets.start_s[service.namespace] = 3600.0
        service.clients.at_once = 20
        wait_until(lambda: service.scraped("vllm:num_requests_waiting > 11"), what="a queue that is seen")
        with ControllerProcess(world, tmp_path, settings_of(world, service.namespace)) as controller:
            wait_until(lambda: service.wanted("llama") > 1, within_s=60, what="a further replica")
            controller.wait_cycles(3)
            first = controller.desired()["llama"]
            controller.wait_cycles(10)
            assert controller.desired() == {"llama": first}
            assert first < 8
            assert service.ready() == 1


def test_requests_that_the_picker_holds_count(world: World, tmp_path: Path) -> None:
    """Engines show no queue, and are not full: flow control holds what they could not do."""
    with world.service(at_most=3) as service:
        service.variant("llama", replicas=1, most=5)
        wait_until(lambda: service.ready() == 1, what="the first replica")
        service.clients.at_once = 24
        with ControllerProcess(world, tmp_path, settings_of(world, service.namespace)):
            wait_until(lambda: service.ready() >= 2, within_s=60, what="further replicas")
            assert all(not each.waiting for each in service.engines.values())


def test_the_cheapest_variant_wakes_for_the_first_request(world: World, tmp_path: Path) -> None:
    """Long before the next cycle."""
    with world.service() as service:
        service.declared_variant("dear", replicas=0, least=0, cost="20")
        service.declared_variant("cheap", replicas=0, least=0, cost="5", node=L4)
        settings = settings_of(
            world,
            service.namespace,
            cycle_s=600,
            actuators=[{"name": "scale"}],
            rules={"scale_to_zero": True},
        )
        with ControllerProcess(world, tmp_path, settings) as controller:
            wait_until(controller.cycles, what="the first cycle")
            service.clients.at_once = 1
            wait_until(lambda: service.clients.endings[Ending.DONE], within_s=60, what="an answer")
        assert service.wanted("cheap") >= 1
        assert service.wanted("dear") == 0


def test_queues_that_an_aborted_load_left_do_not_hold_replicas(world: World, tmp_path: Path) -> None:
    """Engines with that fault keep requests whose clients went away: all of them look full, and none has work."""
    with world.service(size=EngineSize(batch=2, keeps_the_dead=True)) as service:
        service.variant("llama", replicas=2)
        wait_until(lambda: service.ready() == 2, what="two replicas")
        service.clients.at_once = 24
        wait_until(lambda: all(len(each.waiting) > 6 for each in service.engines.values()), what="queues")
        service.clients.abort()
        full = "vllm:num_requests_waiting > 6"
        wait_until(lambda: len(service.scraped(full)) == 2, what="queues that are seen")
        settings = settings_of(world, service.namespace, rules={"stuck_s": 5})
        with ControllerProcess(world, tmp_path, settings) as controller:
            wait_until(lambda: controller.desired().get("llama", 0) >= 2, what="queues that are believed")
            # What engines made in the last minute is forgotten first.
            wait_until(lambda: service.wanted("llama") == 1, within_s=150, what="one replica")
            assert len(service.scraped(full)) >= 1
