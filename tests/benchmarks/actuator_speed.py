"""How long actuators take for a fleet, and how many calls they make: a first round, one without change, one with a tenth changed.

The cluster is in memory, so calls take nothing but the work of both sides on a few bytes of JSON.

Usage: python tests/benchmarks/actuator_speed.py [--variants N]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from typing import Any, Final

from models.observation import Observation, VariantObservation
from models.variant import KubernetesObject
from planner.clock import SystemClock
from planner.control.actuators import Actuators, Connections, actuators_from
from planner.control.cluster import Api, MemoryCluster
from planner.control.protocols import Decision

ROUNDS: Final = ("first", "no change", "a tenth changes")
ACTUATORS: Final = {
    "gauge": "hpa", "hpa": "hpa", "keda": "keda", "scale": "scale", "variantautoscaling": "variantautoscaling",
    "draining": "hpa", "files": "hpa",
}  # fmt: skip


def a_fleet(variants: int, scaler: str) -> tuple[list[VariantObservation], list[dict[str, Any]]]:
    """Variants of so many services, ten to a namespace, and the objects that actuators write."""
    seen, objects = [], []
    for number in range(variants):
        name, namespace = f"v{number}", f"ns{number // 10}"
        target = KubernetesObject(namespace=namespace, name=name, scaler=scaler, scaler_name=name)  # type: ignore[arg-type]
        seen.append(
            VariantObservation(
                name=name, namespace=namespace, model=f"m{number}", target=target, accelerator="H100", wanted=10,
                ready=10, max_replicas=20,
            )
        )  # fmt: skip
        metadata = {"name": name, "namespace": namespace}
        objects += [
            {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 10}},
            {
                "kind": "HorizontalPodAutoscaler",
                "metadata": metadata,
                "spec": {"minReplicas": 1, "maxReplicas": 20},
            },
            {"kind": "ScaledObject", "metadata": metadata, "spec": {}},
            {"kind": "VariantAutoscaling", "metadata": metadata, "spec": {}},
        ]
    return seen, objects


def decided(seen: Sequence[VariantObservation], changed: int) -> list[Decision]:
    """The first ones get one replica more, all others stay."""
    return [
        Decision(variant=each, desired=10 + (place < changed), reason="Load")
        for place, each in enumerate(seen)
    ]


def rounds(name: str, variants: int, folder: str) -> list[tuple[float, int, int]]:
    """Seconds, calls and writes of each round of one actuator."""
    seen, objects = a_fleet(variants, ACTUATORS[name])
    cluster = MemoryCluster(objects)
    connections = Connections(clock=SystemClock(), apis=(Api(cluster, SystemClock()),), within_s=600)
    options = {"files": {"folder": folder}}
    fleet: Actuators = actuators_from([(name, options.get(name, {}))], connections)
    fleet.lead(leading=True)
    found = []
    for changed in (0, 0, variants // 10):
        before = len(cluster.calls), len(cluster.writes)
        began_s = time.perf_counter()
        fleet.saw(Observation(at_s=time.time(), variants=tuple(seen)))
        fleet.act(decided(seen, changed), dry_run=False)
        fleet.exposition()
        taken_s = time.perf_counter() - began_s
        found.append((taken_s, len(cluster.calls) - before[0], len(cluster.writes) - before[1]))
    return found


def main(variants: int) -> None:
    """Print a table."""
    print(f"{variants} variants, {variants * 10} replicas")
    print(f"{'actuator':20}" + "".join(f"{each:>30}" for each in ROUNDS))
    for name in ACTUATORS:
        with tempfile.TemporaryDirectory() as folder:
            row = rounds(name, variants, folder)
        print(f"{name:20}" + "".join(f"{s:>12.3f} s {calls:>5} / {writes:<6}" for s, calls, writes in row))
    print("seconds, calls / writes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--variants", type=int, default=1000)
    main(parser.parse_args().variants)
