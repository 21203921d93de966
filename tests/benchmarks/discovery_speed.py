"""How long it takes to make variants and pools of the objects of a large cluster.

Usage: python tests/benchmarks/discovery_speed.py [--variants N] [--replicas N]
"""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from planner.control.cluster.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    REPLICA_SETS,
    Kind,
)
from planner.control.discovery.kubernetes import DiscoveryOptions, read_snapshot
from planner.control.discovery.snapshot import Snapshot
from planner.control.protocols import ClusterReading
from tests.kube_objects import (
    CATALOG,
    H100,
    a_container,
    a_deployment,
    a_node,
    a_pod,
    a_replica_set,
    a_template,
    an_hpa,
)

_GPUS: Final = 8
_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def a_cluster(variants: int, replicas: int) -> Snapshot:
    """Deployments behind HPAs with so many pods each, on nodes of eight GPUs; every second one selects its accelerator."""
    nodes = -(-variants * replicas // _GPUS)
    objects: dict[Kind, list[Any]] = {
        kind: [] for kind in (NODES, PODS, DEPLOYMENTS, REPLICA_SETS, HORIZONTAL_POD_AUTOSCALERS)
    }
    objects[NODES] = [a_node(f"n{each}", _GPUS, taints=[_TAINT]) for each in range(nodes)]
    for number in range(variants):
        name = f"llama-{number}"
        template = a_template(
            tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}],
            nodeSelector=H100 if number % 2 else {},
        )
        template["spec"]["containers"] = [a_container(1, args=["--model", "m", "--max-num-seqs", "64"])]
        objects[DEPLOYMENTS].append(a_deployment(name, replicas, template=template))
        objects[REPLICA_SETS].append(a_replica_set(f"{name}-5d", name))
        objects[HORIZONTAL_POD_AUTOSCALERS].append(an_hpa(f"{name}-hpa", name))
        objects[PODS] += [
            a_pod(
                f"{name}-5d-{each}",
                ("ReplicaSet", f"{name}-5d"),
                node=f"n{(number * replicas + each) // _GPUS}",
            )
            for each in range(replicas)
        ]
    return Snapshot(objects={kind: tuple(each) for kind, each in objects.items()})


def read(seen: Snapshot) -> ClusterReading:
    """What discovery makes of it."""
    return read_snapshot(seen, DiscoveryOptions(), CATALOG)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", type=int, default=1000)
    parser.add_argument("--replicas", type=int, default=10)
    asked = parser.parse_args()
    seen = a_cluster(asked.variants, asked.replicas)
    times = []
    for _ in range(5):
        begun = time.process_time()
        reading = read(seen)
        times.append(time.process_time() - begun)
    print(
        f"{len(reading.variants)} variants, {len(seen.of(PODS))} pods, {len(seen.of(NODES))} nodes: {min(times):.2f} s"
    )


if __name__ == "__main__":
    main()
