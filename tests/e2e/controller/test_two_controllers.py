"""Two controllers: one leads and has a gauge; when it is gone, the other takes over within the lease, without a jump."""

from __future__ import annotations

from pathlib import Path

from planner.clock import SystemClock
from tests.e2e.controller.controller_process import ControllerProcess, settings_of
from tests.e2e.controller.world import World, controller_test
from tests.e2e.kube.control_plane import wait_until

pytestmark = controller_test()


def test_the_other_takes_over_within_the_lease_and_nothing_jumps(world: World, tmp_path: Path) -> None:
    with world.service() as service:
        service.variant("llama", replicas=1, most=2)
        wait_until(lambda: service.ready() == 1, what="the first replica")
        settings = settings_of(world, service.namespace)
        lease_s = settings["lease"]["lease_s"]
        with (
            ControllerProcess(world, tmp_path, settings, name="one") as one,
            ControllerProcess(world, tmp_path, settings, name="two") as two,
        ):
            service.clients.at_once = 20
            wait_until(lambda: service.wanted("llama") == 2, within_s=90, what="the second replica")
            leader, other = (one, two) if one.desired() else (two, one)
            assert other.desired() == {}
            seen = service.generation("llama")
            began_s = SystemClock().monotonic_s()
            leader.kill()
            wait_until(
                lambda: other.desired() == {"llama": 2}, within_s=lease_s + 20, what="the other to lead"
            )
            assert SystemClock().monotonic_s() - began_s >= 1.0
            leader.start()
            other.wait_cycles(4)
            assert leader.desired() == {}
            assert service.generation("llama") == seen


def test_one_that_ends_well_hands_over_at_once(world: World, tmp_path: Path) -> None:
    with world.service() as service:
        service.variant("llama", replicas=1)
        wait_until(lambda: service.ready() == 1, what="the first replica")
        settings = settings_of(world, service.namespace, lease={
            "namespace": service.namespace, "lease_s": 60, "renew_s": 40, "retry_s": 0.5,
        })  # fmt: skip
        with ControllerProcess(world, tmp_path, settings, name="one") as one:
            wait_until(one.desired, what="a leader")
            with ControllerProcess(world, tmp_path, settings, name="two") as two:
                assert one.stop() == 0
                wait_until(two.desired, within_s=15, what="the other, long before the lease is over")
            one.start()
