"""What a controller writes to the API in an hour of simulated cycles, beside updates in every cycle.

Status, events and counts are written where they change; the published controller writes the status of every variant and
an event about it in every cycle (llm-d autoscaling v0.8, reconciler; one event per variant and cycle).

Usage: PYTHONPATH=. python tests/benchmarks/write_counts.py [--services N] [--minutes M]
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from models.observation import EngineObservation, TrafficObservation, VariantObservation
from planner.clock import FakeClock
from planner.control.cluster import Api, MemoryCluster
from planner.control.cluster.reading import at
from planner.control.protocols import MetricsReading
from planner.control.running.opening import Opening, open_controller
from tests.control.controller_builders import START, settings_layer
from tests.kube_objects import a_deployment, a_node, a_pod, a_replica_set, a_template, a_variant_autoscaling

_CYCLE_S: Final = 15.0
_GPUS: Final = 8
_KV_TOKENS: Final = 100_000.0
_SETTINGS: Final = """
act: true
actuators: [{name: gauge}, {name: scale}, {name: variantautoscaling}]
rules: {stabilize_down_s: 120}
"""


class Fleet(MemoryCluster):
    """Services of one variant each; a replica is ready in the cycle after the one that asked for it."""

    def __init__(self, services: int) -> None:
        names = [f"s{number:03d}" for number in range(services)]
        nodes = [a_node(f"n{number}", _GPUS) for number in range(services * 10 // _GPUS + 1)]
        things: list[Any] = [*nodes]
        for name in names:
            template = a_template(labels={"app": name})
            things += [
                a_deployment(name, 2, template=template),
                a_replica_set(f"{name}-5d", name),
                a_variant_autoscaling(f"{name}-va", name, modelID=f"m-{name}", minReplicas=1, maxReplicas=9),
            ]
        super().__init__(things)
        self._names = names
        self._nodes = [each["metadata"]["name"] for each in nodes]
        self.settle()

    def settle(self) -> None:
        """Make pods of counts."""
        for key in [key for key in self._objects if key[1] == "pods"]:
            del self._objects[key]
        place = 0
        for name in self._names:
            for number in range(self.replicas(name)):
                node = self._nodes[place // _GPUS]
                place += 1
                pod = a_pod(f"{name}-{number}", ("ReplicaSet", f"{name}-5d"), node=node)
                self._keep(("", "pods", "prod", f"{name}-{number}"), pod)

    def replicas(self, name: str) -> int:
        """Replicas that are asked for."""
        return int(at(self._objects["apps", "deployments", "prod", name], "spec", "replicas") or 0)


@dataclass
class Tide:
    """Load of every service: a wave of an hour, each at another time, on which noise lies."""

    now_s: float = 0.0

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """What engines would say."""
        engines = tuple(
            EngineObservation(
                instance=f"{pod}:8000", namespace=one.namespace, pod=pod, variant=one.name, model=one.model, age_s=5.0,
                running=8.0, waiting=0.0, kv_usage=kv, kv_now=kv, kv_tokens=_KV_TOKENS, input_tokens=500.0,
                output_tokens=200.0,
            )
            for one in variants
            for kv in [self._kv(one)]
            for pod in one.pods
        )  # fmt: skip
        traffic = tuple(
            TrafficObservation(
                model=one.model,
                namespace=one.namespace,
                queued=0.0,
                arrived=10.0,
                completed=10.0,
                in_flight=1.0,
            )
            for one in variants
        )
        return MetricsReading(engines=engines, traffic=traffic)

    def _kv(self, variant: VariantObservation) -> float:
        phase = int(variant.name[1:4]) / 7.0
        wave = 1.5 + math.sin(2 * math.pi * self.now_s / 3600.0 + phase)
        noise = 0.05 * math.sin(self.now_s * 0.7 + 3 * phase)
        return min(0.99, max(0.01, (0.9 * wave + noise) / max(1, len(variant.pods))))


@dataclass(frozen=True)
class Counts:
    """What was written.

    Attributes:
        ours: by verb and resource.
        each_cycle: the same where every variant is written in every cycle.
        cycles: that were made.
        changes: decisions that changed a count.
    """

    ours: Mapping[str, int]
    each_cycle: Mapping[str, int]
    cycles: int
    changes: int


def measured(services: int, minutes: float) -> Counts:
    """Cycles of some minutes."""
    clock, cluster, tide = FakeClock(START), Fleet(services), Tide()
    changes = 0

    def told(record: Any) -> None:
        nonlocal changes
        changes += sum(each.applied and each.changed for each in record.outcomes if each.actuator == "scale")

    api = Api(cluster, clock)
    opening = Opening(
        layers=[settings_layer(_SETTINGS)],
        clock=clock,
        apis=(api,),
        sources={"tide": tide},
        who="bench",
        environ={},
        told=told,
    )
    controller = open_controller(opening)
    cycles = round(minutes * 60 / _CYCLE_S)
    for number in range(cycles):
        tide.now_s = number * _CYCLE_S
        for _ in range(7):
            controller.elect()
            clock.advance(2.0)
        controller.cycle(("timer",))
        cluster.settle()
        clock.advance(_CYCLE_S - 14.0)
    controller.end()
    variants = services
    ours = Counter(dict(controller.parts.actuators.writes))
    return Counts(
        ours=ours,
        each_cycle={
            "patch variantautoscalings/status": variants * cycles,
            "create events": variants * cycles,
        },
        cycles=cycles,
        changes=changes,
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--services", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60.0)
    asked = parser.parse_args()
    found = measured(asked.services, asked.minutes)
    print(f"{asked.services} services, {found.cycles} cycles, {found.changes} changes of a count")
    print(f"{'write':<44} {'on change':>10} {'every cycle':>12}")
    for name in sorted({*found.ours, *found.each_cycle}):
        print(f"{name:<44} {found.ours.get(name, 0):>10} {found.each_cycle.get(name, 0) or '–':>12}")
    without = sum(amount for name, amount in found.ours.items() if "leases" not in name)
    print(f"{'all but the lease':<44} {without:>10} {sum(found.each_cycle.values()):>12}")


if __name__ == "__main__":
    main()
