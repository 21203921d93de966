"""Builders for tests of the loop: a cluster in memory with one served variant, a source that says what it is told, a clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from models.observation import EngineObservation, Finding, TrafficObservation, VariantObservation
from planner.clock import FakeClock
from planner.control.cluster import Api, Limits, MemoryCluster
from planner.control.cluster.reading import at
from planner.control.protocols import MetricsReading
from planner.control.running.controller import Controller
from planner.control.running.layering import Layer
from planner.control.running.opening import Opening, open_controller
from planner.scenario.reading import read_yaml
from planner.scenario.tree import Complaints, Entry
from tests.kube_objects import a_deployment, a_node, a_pod, a_replica_set, an_hpa, notes

START = 1_780_000_000.0


@dataclass
class Told:
    """A source of metrics that says what a test tells it."""

    kv: float = 0.3
    waiting: float = 0.0
    queued: float | None = None
    answers: bool = True
    raises: Exception | None = None
    silent: set[str] = field(default_factory=set)
    asked: int = 0

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        self.asked += 1
        if self.raises is not None:
            raise self.raises
        if not self.answers:
            return MetricsReading(
                findings=(Finding(subject="Prometheus", problem="unreachable"),), complete=False
            )
        engines = tuple(
            self._engine(variant, pod)
            for variant in variants
            for pod in variant.pods
            if pod not in self.silent
        )
        traffic = tuple(
            TrafficObservation(
                model=variant.model, namespace=variant.namespace, arrival_rps=1.0, queued=self.queued, arrived=10.0,
                completed=10.0, in_flight=1.0,
            )
            for variant in variants
        )  # fmt: skip
        return MetricsReading(engines=engines, traffic=traffic)

    def _engine(self, variant: VariantObservation, pod: str) -> EngineObservation:
        return EngineObservation(
            instance=f"{pod}:8000", namespace=variant.namespace, pod=pod, variant=variant.name, model=variant.model,
            age_s=5.0, running=4.0, waiting=self.waiting, kv_usage=self.kv, kv_now=self.kv, kv_tokens=100_000.0,
            input_tokens=500.0, output_tokens=200.0,
        )  # fmt: skip


class Served(MemoryCluster):
    """A cluster whose Deployments have a ready pod for every replica, as soon as a test calls :meth:`settle`."""

    def __init__(self, *more: Any, replicas: int = 2, nodes: int = 3, **options: Any) -> None:
        things = [
            *(a_node(f"n{number}") for number in range(1, nodes + 1)),
            a_deployment(replicas=replicas),
            a_replica_set(),
            an_hpa(annotations=notes(), least=1, most=10),
            *more,
        ]
        super().__init__(things, **options)
        self.settle()

    def settle(self) -> None:
        """Give every Deployment of ``prod`` its pods, spread over the nodes."""
        for key in [key for key in self._objects if key[1] == "pods"]:
            del self._objects[key]
        nodes = sorted(key[3] for key in self._objects if key[1] == "nodes")
        for name in sorted(key[3] for key in self._objects if key[1] == "deployments"):
            for number in range(self.replicas(name)):
                owner = ("ReplicaSet", f"{name}-5d")
                pod = a_pod(f"{name}-{number}", owner, node=nodes[number % len(nodes)])
                self._keep(("", "pods", "prod", pod["metadata"]["name"]), pod)

    def replicas(self, name: str = "llama") -> int:
        """Replicas that a Deployment asks for."""
        return int(at(self._objects["apps", "deployments", "prod", name], "spec", "replicas") or 0)

    def edit(self, plural: str, name: str, group: str = "", **change: Any) -> None:
        """Change fields of an object, as somebody else would."""
        key = (group, plural, "prod" if plural != "nodes" else "", name)
        thing = self._objects[key]
        self._keep(
            key, {**thing, **{field: {**thing.get(field, {}), **value} for field, value in change.items()}}
        )

    def thing(self, plural: str, name: str, group: str = "", namespace: str = "prod") -> dict[str, Any]:
        """An object as it is."""
        return self._objects[group, plural, namespace, name]


def settings_layer(text: str) -> Layer:
    """Settings as a file would hold them."""
    complaints = Complaints()
    entry = (
        read_yaml(text, file="settings.yaml", complaints=complaints)
        if text.strip()
        else Entry({}, "", None, "")
    )
    assert entry is not None, complaints.findings
    return Layer("settings.yaml", entry)


def a_controller(
    cluster: MemoryCluster,
    source: Told | None = None,
    text: str = "",
    *,
    clock: FakeClock | None = None,
    who: str = "one",
    records: Path | None = None,
    **more: Any,
) -> Controller:
    """A controller of one cluster that acts, unless ``text`` (YAML of its settings) says otherwise."""
    now = clock or FakeClock(START)
    base = "act: true\nrules: {stabilize_down_s: 0}\n"
    layers = [settings_layer(base), settings_layer(text)]
    if records is not None:
        layers.append(settings_layer(f"records: {{folder: {records}}}"))
    api = Api(cluster, now, None, Limits(tries=2, within_s=5.0))
    opening = Opening(
        layers=layers, clock=now, apis=(api,), sources={"told": source or Told()}, who=who, environ={}, **more
    )
    return open_controller(opening)


def led(controller: Controller) -> Controller:
    """The same, after it became the leader."""
    assert controller.elect()
    return controller
