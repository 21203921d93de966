"""What an hour of cycles writes into an API server, beside an autoscaler that updates every status in every cycle.

The cluster is in memory, time is simulated, loads follow half an hour up and half an hour down with noise on top.

Usage: python tests/benchmarks/control_writes.py [--variants N] [--hours H] [--actuators NAME...]
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from models.observation import EngineObservation, TrafficObservation, VariantObservation
from planner.clock import FakeClock
from planner.control.protocols import MetricsReading
from tests.control.controller_builders import START, Served, a_controller, led
from tests.kube_objects import a_deployment, a_replica_set, a_variant_autoscaling

_CYCLE_S: Final = 15.0
_HOUR_S: Final = 3600.0
_ELECTIONS: Final = 7
"""Steps of the election in a cycle, one about every two seconds."""
_PER_REPLICA: Final = 100_000.0
"""Tokens of the KV cache of one replica."""


@dataclass
class Load:
    """Says how full replicas are: each service has a demand of its own that goes up and down within the hour."""

    seed: int
    at_s: float = 0.0
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        """Seed it."""
        self.dice = random.Random(self.seed)  # noqa: S311 - the same loads in every run

    def tokens(self, name: str) -> float:
        """Demand of a variant now, in tokens."""
        number = int(name.rsplit("-", 2)[1])
        wave = 1.0 + 0.6 * math.sin(2 * math.pi * (self.at_s / _HOUR_S + number / 7))
        return (2 + number % 5) * 0.5 * _PER_REPLICA * wave * self.dice.uniform(0.97, 1.03)

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        """See :class:`planner.control.protocols.MetricsSource`."""
        self.at_s = now_s - START
        engines = tuple(one for variant in variants for one in self._engines(variant))
        traffic = tuple(
            TrafficObservation(
                model=each.model, namespace=each.namespace, arrival_rps=1.0, arrived=100.0, completed=100.0,
                in_flight=1.0,
            )
            for each in variants
        )  # fmt: skip
        return MetricsReading(engines=engines, traffic=traffic)

    def _engines(self, variant: VariantObservation) -> Sequence[EngineObservation]:
        usage = min(1.0, self.tokens(variant.name) / (_PER_REPLICA * max(1, len(variant.pods))))
        return [
            EngineObservation(
                instance=f"{pod}:8000", namespace=variant.namespace, pod=pod, variant=variant.name, model=variant.model,
                age_s=5.0, running=4.0, waiting=0.0, kv_usage=usage, kv_now=usage, kv_tokens=_PER_REPLICA,
                input_tokens=500.0, output_tokens=200.0,
            )
            for pod in variant.pods
        ]  # fmt: skip


def a_cluster(variants: int) -> Served:
    """Deployments that a VariantAutoscaling each speaks of, and nobody else scales."""
    names = [f"llama-{number}" for number in range(variants)]
    things = [
        *(a_deployment(name) for name in names),
        *(a_replica_set(f"{name}-5d", name) for name in names),
        *(
            a_variant_autoscaling(f"{name}-va", name, modelID=name, maxReplicas=20, minReplicas=1)
            for name in names
        ),
    ]
    cluster = Served(*things, nodes=variants)
    for key in [key for key in cluster._objects if key[3] in {"llama", "llama-5d", "llama-hpa"}]:
        del cluster._objects[key]
    cluster.settle()
    return cluster


def an_hour(
    variants: int, *, hours: float, actuators: Sequence[str], seed: int
) -> tuple[int, Mapping[str, int]]:
    """Cycles, and writes by what was written."""
    cluster, clock = a_cluster(variants), FakeClock(START)
    text = f"actuators: [{', '.join(f'{{name: {name}}}' for name in actuators)}]\nrules: {{stabilize_down_s: 300}}\n"
    controller = led(a_controller(cluster, Load(seed), text, clock=clock))  # type: ignore[arg-type]
    cycles = int(hours * _HOUR_S / _CYCLE_S)
    for _ in range(cycles):
        controller.cycle(("timer",))
        cluster.settle()
        for _ in range(_ELECTIONS):
            clock.sleep(_CYCLE_S / _ELECTIONS)
            controller.elect()
    return cycles, Counter(_what(call.path) for call in cluster.writes)


def _what(path: str) -> str:
    """What a path is of: the resource, with its subresource."""
    parts = [part for part in path.split("?", maxsplit=1)[0].split("/") if part]
    at = parts.index("namespaces") + 2 if "namespaces" in parts else 3
    return "/".join([parts[at], *parts[at + 2 :]])


def table(found: Mapping[str, int], cycles: int, variants: int) -> str:
    """Markdown: writes by what was written, beside one status of every variant in every cycle."""
    lines = ["| written | times |", "|---|--:|"]
    lines += [f"| {name} | {count:,} |" for name, count in sorted(found.items())]
    lines.append(f"| all | {sum(found.values()):,} |")
    lines.append(f"| a status of each variant in each cycle | {cycles * variants:,} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--variants", type=int, default=20)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--actuators", nargs="+", default=["gauge", "variantautoscaling", "scale"])
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(argv)
    cycles, found = an_hour(asked.variants, hours=asked.hours, actuators=asked.actuators, seed=asked.seed)
    print(f"{asked.variants} variants, {cycles} cycles of {_CYCLE_S:g} s")
    print(table(found, cycles, asked.variants))


if __name__ == "__main__":
    main()
