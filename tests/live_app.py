"""What the app is shown beside: records of a controller, and a cluster that a plan can be carried out on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from planner.clock import FakeClock, SystemClock
from planner.ui.allowing import APPLY
from tests.control.controller_builders import Told, a_controller, led
from tests.control.test_run_cycles import SCALES, direct
from tests.kube_objects import a_node
from tests.live_objects import LiveCluster, a_workload, served_cluster

__all__ = ["SCENARIO", "a_fleet", "live_variables", "some_records"]

SCENARIO: Final = "data/scenarios/01-two-variants.yaml"
"""What runs on :func:`a_fleet`."""


def some_records(folder: Path) -> Path:
    """Records of the last quarter of an hour: a service that grew, and shrank again."""
    clock = FakeClock(SystemClock().unix_s() - 900.0)
    cluster, source = direct(), Told()
    controller = a_controller(cluster, source, SCALES, clock=clock, records=folder)
    for kv in (0.3, 0.3, 0.78, 0.78, 0.78, 0.5, 0.5, 0.05, 0.05):
        source.kv = kv
        for _ in range(6):
            led(controller).cycle(("timer",))
            cluster.settle()
            clock.advance(15.0)
    return folder


def a_fleet() -> LiveCluster:
    """What scenario 01 runs on; its replicas start in a second."""
    objects = [a_node("n1", 64), a_workload("llama-a100", 3, namespace="serving")]
    objects.append(a_workload("llama-h100", 2, namespace="serving"))
    return LiveCluster(objects, SystemClock(), start_s=1.0, end_s=0.5)


@contextmanager
def live_variables(fleet: LiveCluster, folder: Path) -> Iterator[dict[str, str]]:
    """Variables of an app that has a controller beside it and may act on a cluster, until the block ends.

    Args:
        fleet: the cluster.
        folder: for records and a kubeconfig.
    """
    with served_cluster(fleet, folder) as kubeconfig:
        yield {
            "FLEETPLAN_RECORDS": str(some_records(folder / "records")),
            APPLY: "1",
            "KUBECONFIG": str(kubeconfig),
            "XDG_STATE_HOME": str(folder / "state"),
        }
