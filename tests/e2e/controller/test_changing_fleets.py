"""What the cluster does meanwhile: a target is deleted, a node is cordoned, others fill a quota."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.control.cluster.kinds import DEPLOYMENTS, NODES, RESOURCE_QUOTAS
from tests.e2e.controller.controller_process import ControllerProcess, settings_of
from tests.e2e.controller.world import World, controller_test
from tests.e2e.kube.control_plane import wait_until
from tests.kube_objects import L4

pytestmark = controller_test()


def test_a_deleted_target_has_no_gauge_and_the_other_variant_goes_on(world: World, tmp_path: Path) -> None:
    with world.service() as service:
        service.variant("gone", replicas=1)
        service.variant("stays", replicas=1)
        wait_until(lambda: service.ready() == 2, what="two replicas")
        with ControllerProcess(world, tmp_path, settings_of(world, service.namespace)) as controller:
            wait_until(lambda: controller.desired().keys() == {"gone", "stays"}, what="two gauges")
            world.admin.delete(DEPLOYMENTS, service.namespace, "gone")
            wait_until(lambda: controller.desired().keys() == {"stays"}, what="one gauge")
            assert "TargetNotFound" in str(controller.status())
            service.clients.at_once = 14
            wait_until(
                lambda: service.wanted("stays") > 1, within_s=60, what="a further replica of the other"
            )
            service.workload("gone", 1)
            wait_until(lambda: controller.desired().keys() == {"gone", "stays"}, what="both gauges")


def test_gpus_of_a_cordoned_node_are_not_counted_on(world: World, tmp_path: Path) -> None:
    """Each node has room for one more replica of four GPUs."""
    with world.service() as service:
        world.admin.patch(NODES, "", "l4-b", {"spec": {"unschedulable": True}})
        try:
            service.variant("llama", replicas=1, node=L4, gpus=4)
            wait_until(lambda: service.ready() == 1, what="the first replica")
            service.clients.at_once = 20
            with ControllerProcess(world, tmp_path, settings_of(world, service.namespace)) as controller:
                wait_until(controller.desired, what="a gauge")
                controller.wait_cycles(6)
                assert controller.desired() == {"llama": 1}
                world.admin.patch(NODES, "", "l4-b", {"spec": {"unschedulable": None, "taints": None}})
                wait_until(lambda: service.ready() == 2, within_s=60, what="the second replica")
        finally:
            world.admin.patch(NODES, "", "l4-b", {"spec": {"unschedulable": None, "taints": None}})


def test_a_quota_that_others_fill_is_not_exceeded(world: World, tmp_path: Path) -> None:
    hard: dict[str, Any] = {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "4"}}}
    with world.service() as service:
        world.admin.create(RESOURCE_QUOTAS, service.namespace, hard)
        service.workload("others", 1, gpus=3)
        wait_until(lambda: service.ready() == 1, what="a foreign pod")
        service.variant("llama", replicas=1)
        wait_until(lambda: service.ready() == 2, what="the first replica")
        service.picker.only = next(name for name in service.engines if name.startswith("llama"))
        service.clients.at_once = 20
        with ControllerProcess(world, tmp_path, settings_of(world, service.namespace)) as controller:
            wait_until(controller.desired, what="a gauge")
            controller.wait_cycles(6)
            assert controller.desired() == {"llama": 1}
            world.admin.delete(DEPLOYMENTS, service.namespace, "others")
            wait_until(lambda: service.wanted("llama") >= 2, within_s=60, what="the second replica")
