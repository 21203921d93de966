"""All of it together: a Kubernetes API with its controllers, engines in pods, a Prometheus that looks at them, and the adapter.

with World(folder, binaries) as world:
    service = world.service("prod")                 a namespace with a fleet of its own
    service.variant("llama", replicas=2)            a Deployment, and the HPA that scales it
    service.clients.rps = 8                         people who ask
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml

from planner.control.cluster import Api
from planner.control.cluster.kinds import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    PODS,
    SERVICES,
    VARIANT_AUTOSCALINGS,
)
from planner.control.cluster.reading import Object, namespace_of
from tests.e2e.controller.background import Background
from tests.e2e.controller.engine_server import Engine, EngineSize
from tests.e2e.controller.pod_life import EngineKubelets
from tests.e2e.controller.prometheus_server import PROMETHEUS, PrometheusServer
from tests.e2e.controller.traffic import Clients, Picker
from tests.e2e.kube.aggregated import external_metrics, install_crd
from tests.e2e.kube.control_plane import ControlPlane, kube_test, wait_until
from tests.kube_objects import H100, L4, notes
from tests.loopback import free_port

__all__ = ["Service", "World", "controller_test"]

_NUMBERS: Final = itertools.count(1)
NODES_OF: Final[Mapping[str, tuple[dict[str, str], int]]] = {
    "h100-a": (H100, 8), "h100-b": (H100, 8), "l4-a": (L4, 4), "l4-b": (L4, 4),
}  # fmt: skip
"""Nodes: labels and GPUs."""
_SAMPLES: Final = Path(__file__).parents[3] / "deploy" / "samples"


def controller_test() -> list[pytest.MarkDecorator]:
    """Marks of a module whose tests need a control plane and a Prometheus."""
    reason = "prometheus is not installed (apt-get install prometheus)"
    # A control plane of their own: another worker may run these.
    marks = [each for each in kube_test() if each.name != "xdist_group"]
    return [
        *marks, pytest.mark.xdist_group("controller"), pytest.mark.skipif(PROMETHEUS is None, reason=reason)
    ]  # fmt: skip


class World:
    """Everything that a controller meets, as long as the block lasts.

    Args:
        folder: for data, certificates and logs; empty.
        binaries: folder of those of Kubernetes.
    """

    def __init__(self, folder: Path, binaries: Path) -> None:
        self.folder = folder
        self.background = Background()
        self.plane = ControlPlane(folder, binaries, scheduler=True)
        self.prometheus = PrometheusServer(folder)
        self.sizes: dict[str, EngineSize] = {}
        """What engines of a namespace can do; pods of others are no engines."""
        self._stack = ExitStack()

    @property
    def admin(self) -> Api:
        return self.plane.admin

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.background)
            stack.enter_context(self.plane)
            stack.enter_context(self.prometheus)
            self.kubelets = stack.enter_context(
                EngineKubelets(
                    self.admin,
                    self.background,
                    self._size_of,
                    lambda seen: self.prometheus.tell("pods", seen),
                )
            )
            for name, (labels, gpus) in NODES_OF.items():
                held: dict[str, Any] = {"nvidia.com/gpu": gpus}
                self.plane.add_node(name, labels=labels, **held)
            install_crd(self.plane, VARIANT_AUTOSCALINGS)
            stack.enter_context(external_metrics(self.plane, self.prometheus.read))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _size_of(self, pod: Object) -> EngineSize | None:
        return self.sizes.get(namespace_of(pod))

    @contextmanager
    def service(
        self, name: str = "fleet", *, size: EngineSize | None = None, at_most: int = 1000
    ) -> Iterator[Service]:
        """A namespace with engines, a picker and clients of its own; all of it goes with the block."""
        namespace = f"{name}-{next(_NUMBERS)}"
        self.sizes[namespace] = size or EngineSize()
        self.admin.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        service = Service(self, namespace, self.sizes[namespace], at_most)
        service.begin()
        try:
            yield service
        finally:
            service.end()
            for kind in (VARIANT_AUTOSCALINGS, HORIZONTAL_POD_AUTOSCALERS, DEPLOYMENTS):
                for each in self.admin.list(kind, namespace).items:
                    self.admin.delete(kind, namespace, each["metadata"]["name"])
            self.kubelets.end_now(namespace)
            # The next test may want their accelerators.
            wait_until(lambda: not self.admin.list(PODS, namespace).items, what="the end of its pods")
            self.admin.delete(NAMESPACES, "", namespace)


@dataclass
class Service:
    """One served model in a namespace of its own."""

    world: World
    namespace: str
    size: EngineSize
    at_most: int
    picker: Picker = field(init=False)
    clients: Clients = field(init=False)

    def begin(self) -> None:
        """Let the picker be scraped, and people come. It routes to the pods that the Service selects."""
        router = _routing(self.model)
        self.world.admin.create(SERVICES, self.namespace, router)
        self.picker = Picker(
            self.size.model,
            self.namespace,
            lambda: self.world.kubelets.endpoints(self.namespace, self._routed),
            at_most=self.at_most,
        )
        self.clients = Clients(self.picker, self.world.background)
        port = free_port()
        self.world.background.run(self.picker.serve("127.0.0.1", port))
        labels = {"namespace": self.namespace, "pod": "picker-0", "job": "picker"}
        self.world.prometheus.tell(self.namespace, [{"targets": [f"127.0.0.1:{port}"], "labels": labels}])
        self.clients.begin()

    @property
    def _routed(self) -> Mapping[str, str]:
        """Labels by which requests are routed."""
        found = _routing(self.model)["spec"]["selector"]
        assert isinstance(found, dict)
        return found

    def end(self) -> None:
        """Everybody goes away."""
        self.clients.abort()
        self.world.prometheus.tell(self.namespace, [])
        self.world.background.run(self.picker.close())

    @cached_property
    def model(self) -> str:
        return self.size.model

    def variant(self, name: str, *, replicas: int = 1, most: int = 6, cost: str = "10", **pod: Any) -> None:
        """A Deployment of engines, and an annotated HPA of its name that follows the gauge.

        Args:
            name: of both.
            replicas: at first.
            most: replicas at most.
            cost: of a replica.
            pod: ``node``, labels of nodes that it runs on, ``gpus`` of a pod, and whether it is ``gated``.
        """
        self.workload(name, replicas, **pod)
        scaler = _hpa(name, self.namespace, most, notes(self.model, cost))
        self.world.admin.create(HORIZONTAL_POD_AUTOSCALERS, self.namespace, scaler)

    def declared_variant(
        self, name: str, *, replicas: int = 1, least: int = 1, most: int = 6, cost: str = "10", **pod: Any
    ) -> None:
        """A Deployment of engines, and a VariantAutoscaling of its name: nobody scales it but the controller."""
        self.workload(name, replicas, **pod)
        thing = _sample("variantautoscaling.yaml")
        thing["metadata"] = {"name": name}
        thing["spec"]["scaleTargetRef"] |= {"name": name}
        thing["spec"] |= {
            "modelID": self.model,
            "minReplicas": least,
            "maxReplicas": most,
            "variantCost": cost,
        }
        self.world.admin.create(VARIANT_AUTOSCALINGS, self.namespace, thing)

    def workload(
        self, name: str, replicas: int, *, node: Mapping[str, str] = H100, gpus: int = 1, gated: bool = False
    ) -> None:
        """A Deployment of engines that nobody scales; gated ones are ready when the controller lets them be."""
        thing = _deployment(name, replicas, self.model, node=node, gpus=gpus)
        template = thing["spec"]["template"]
        if gated:
            template["metadata"]["labels"]["fleetplan.dev/gated"] = "true"
            template["spec"]["readinessGates"] = [{"conditionType": "fleetplan.dev/serving"}]
        self.world.admin.create(DEPLOYMENTS, self.namespace, thing)

    def wanted(self, name: str) -> int:
        """``spec.replicas`` of a Deployment."""
        return int(self.world.admin.get(DEPLOYMENTS, self.namespace, name)["spec"]["replicas"])

    def generation(self, name: str) -> int:
        """How often the spec of a Deployment was changed."""
        return int(self.world.admin.get(DEPLOYMENTS, self.namespace, name)["metadata"]["generation"])

    def ready(self) -> int:
        """Pods that a picker may send requests to."""
        return len(self.world.kubelets.endpoints(self.namespace, {}))

    def pods(self) -> list[Object]:
        return list(self.world.admin.list(PODS, self.namespace).items)

    def scraped(self, question: str) -> list[float]:
        """Values that Prometheus has of engines here, for ``series`` or ``series > value``."""
        name, *rest = question.split(" ", 1)
        asked = f'{name}{{namespace="{self.namespace}"}} {"".join(rest)}'
        return [value for _, value in self.world.prometheus.query(asked)]

    @property
    def engines(self) -> dict[str, Engine]:
        """Engines by pod."""
        return self.world.kubelets.engines(self.namespace)


def _sample(file: str) -> dict[str, Any]:
    """An object as the deploy kit shows it to users."""
    found = next(yaml.safe_load_all((_SAMPLES / file).read_text()))
    assert isinstance(found, dict)
    return found


def _deployment(
    name: str, replicas: int, model: str, *, node: Mapping[str, str], gpus: int
) -> dict[str, Any]:
    """The sample engine, for another model on other nodes."""
    thing = _sample("engine.yaml")
    thing["metadata"] = {"name": name}
    thing["spec"] |= {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
    template = thing["spec"]["template"]
    template["metadata"]["labels"] |= {"app": name, "llm-d.ai/variant": name, "llm-d.ai/model": model}
    template["spec"] |= {"nodeSelector": dict(node), "terminationGracePeriodSeconds": 60}
    container = template["spec"]["containers"][0]
    amount = {"nvidia.com/gpu": str(gpus)}
    container["resources"] = {"limits": amount, "requests": amount}
    container["args"] = ["--model", model, "--max-num-seqs", "8", "--max-num-batched-tokens", "2048"]
    return thing


def _routing(model: str) -> dict[str, Any]:
    """The sample Service, for another model."""
    thing = _sample("routing.yaml")
    thing["metadata"] = {"name": model}
    thing["spec"]["selector"] |= {"llm-d.ai/model": model}
    return thing


def _hpa(name: str, namespace: str, most: int, annotations: Mapping[str, str]) -> dict[str, Any]:
    """The sample scaler, for another variant; HPAs of this API server are of an earlier version of the same shape."""
    thing = _sample("hpa.yaml")
    del thing["apiVersion"]
    thing["metadata"] = {"name": name, "annotations": dict(annotations)}
    thing["spec"] |= {"scaleTargetRef": thing["spec"]["scaleTargetRef"] | {"name": name}, "maxReplicas": most}
    labels = {"variant_name": name, "exported_namespace": namespace}
    thing["spec"]["metrics"][0]["external"]["metric"]["selector"] = {"matchLabels": labels}
    return thing
