"""A fleet as Prometheus and a cluster tell of it: services whose demand drifts, replicas that follow what was decided.

Answers of Prometheus are JSON bodies that are written before a cycle begins, so that a cycle takes no time for the world.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, Final
from urllib.parse import parse_qs

import httpx

from models.hardware import Node, Pool
from models.observation import VariantObservation
from models.variant import KubernetesObject
from planner.control.protocols import ClusterReading, Inventory

__all__ = ["START_S", "World"]

START_S: Final = 1_800_000_000.0

_TYPES: Final = ("A100", "H100", "H200", "B200", "MI300X", "L40S", "H20", "GH200")
_KV_TOKENS: Final = (300_000, 450_000, 800_000, 1_000_000, 1_100_000, 200_000, 600_000, 500_000)
_COSTS: Final = (18.0, 30.0, 38.0, 60.0, 45.0, 14.0, 24.0, 34.0)
_GPUS_PER_NODE: Final = 8
_BLOCK: Final = 16
_ROOM: Final = 1.6
"""Accelerators per accelerator that is in use at the start."""


@dataclass(slots=True)
class _Variant:
    name: str
    namespace: str
    model: str
    kind: int
    count: int
    most: int
    seen: VariantObservation | None = None

    def observed(self) -> VariantObservation:
        """As a discovery says it; the same value while nothing changed."""
        if self.seen is None or self.seen.wanted != self.count:
            pods = tuple(f"{self.name}-7d9f8b6c5d-{number:05d}" for number in range(self.count))
            self.seen = VariantObservation(
                name=self.name, namespace=self.namespace, model=self.model,
                target=KubernetesObject(name=self.name), accelerator=_TYPES[self.kind], cost=_COSTS[self.kind],
                min_replicas=0, max_replicas=self.most, wanted=self.count, ready=self.count, pods=pods,
                nodes=("",) * self.count,
            )  # fmt: skip
        return self.seen


@dataclass(slots=True)
class _Service:
    variants: list[_Variant]
    tokens: float

    @property
    def usage(self) -> float:
        """KV-cache usage of its replicas, 0..1."""
        capacity = sum(_KV_TOKENS[each.kind] * each.count for each in self.variants)
        return min(1.0, self.tokens / capacity) if capacity else 0.0


@dataclass(slots=True)
class World(httpx.BaseTransport):
    """So many services with some variants each, and about so many replicas in all.

    Args:
        services: how many.
        replicas: of all together.
        variants: of each service.
        seed: of demands and drift.
    """

    services: int
    replicas: int
    variants: int
    seed: int = 0
    now_s: float = START_S
    _dice: random.Random = field(init=False)
    _all: list[_Service] = field(init=False)
    _pools: tuple[Pool, ...] = field(init=False)
    _bodies: dict[bytes, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make services and the nodes under them, with accelerators free as in a cluster that can grow."""
        self._dice = random.Random(self.seed)  # noqa: S311 - the same figures in every run
        self._all = [self._service(number) for number in range(self.services)]
        used = [0] * len(_TYPES)
        for service in self._all:
            for each in service.variants:
                used[each.kind] += each.count
        self._pools = tuple(_pool(kind, ceil(_ROOM * gpus) + 64) for kind, gpus in enumerate(used))

    def _service(self, number: int) -> _Service:
        dice, each = self._dice, self.replicas / self.services
        kinds = dice.sample(range(len(_TYPES)), self.variants)
        counts = [0] * self.variants
        for _ in range(max(1, round(dice.uniform(0.4, 1.6) * each))):
            counts[min(dice.randrange(self.variants), dice.randrange(self.variants))] += 1
        namespace = f"team-{number % 100}"
        model = f"llama-{number}"
        variants = [
            _Variant(f"{model}-{_TYPES[kind].lower()}", namespace, model, kind, count, 4 * round(each) + 8)
            for kind, count in zip(kinds, counts, strict=True)
        ]
        capacity = sum(_KV_TOKENS[one.kind] * one.count for one in variants)
        return _Service(variants, dice.uniform(0.25, 0.45) * capacity)

    def see(self, now_s: float) -> ClusterReading:
        """See :class:`planner.control.protocols.FleetDiscovery`."""
        variants = tuple(each.observed() for service in self._all for each in service.variants)
        return ClusterReading(variants=variants, inventory=Inventory(pools=self._pools))

    def move(self, desired: Mapping[tuple[str, str], int], *, by: float, seconds: float) -> None:
        """The next cycle: replicas are as they were desired, by namespace and name, and demands have drifted."""
        self.now_s += seconds
        for service in self._all:
            service.tokens *= self._dice.uniform(1 - by, 1 + by)
            for each in service.variants:
                each.count = desired.get((each.namespace, each.name), each.count)
        for asked in self._bodies:
            self._bodies[asked] = self._written(asked)

    @property
    def running(self) -> int:
        """Replicas of all services."""
        return sum(each.count for service in self._all for each in service.variants)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer a query."""
        asked = request.read()
        if asked not in self._bodies:
            self._bodies[asked] = self._written(asked)
        return httpx.Response(200, content=self._bodies[asked])

    def _written(self, asked: bytes) -> bytes:
        (question,) = parse_qs(asked.decode())["query"]
        result = self._answer(question)
        answer = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return json.dumps(answer, separators=(",", ":")).encode()

    def _answer(self, question: str) -> Sequence[Mapping[str, Any]]:
        if "up" in question.replace("(", " ").split("{")[0].split() or question.endswith("== 0"):
            return ()
        if "llm_d_epp" in question or "600s" in question:
            return [self._of_service(number) for number in range(self.services)]
        return [
            self._of_engine(question, each, pod, usage)
            for service in self._all
            for usage in (service.usage,)
            for each in service.variants
            for pod in each.observed().pods
        ]

    def _of_service(self, number: int) -> Mapping[str, Any]:
        labels = {"model_name": f"llama-{number}", "namespace": f"team-{number % 100}"}
        return {"metric": labels, "value": [self.now_s, str(self._dice.uniform(1, 5))]}

    def _of_engine(self, question: str, variant: _Variant, pod: str, usage: float) -> Mapping[str, Any]:
        labels = {"namespace": variant.namespace, "pod": pod, "instance": f"{pod}:8000", "engine": "0"}
        value = self._figure(question, usage)
        if "timestamp" in question:
            labels |= {"model_name": variant.model, "fleetplan_engine": "vllm"}
        elif "DCGM" in question:
            del labels["engine"], labels["instance"]
        elif "process_start" in question:
            del labels["engine"]
        elif "cache_config" in question:
            labels |= {"num_gpu_blocks": str(_KV_TOKENS[variant.kind] // _BLOCK), "block_size": str(_BLOCK)}
        return {"metric": dict(sorted(labels.items())), "value": [self.now_s, str(value)]}

    def _figure(self, question: str, usage: float) -> float:
        """The value of one engine; which one it is the first name that fits says."""
        noise = self._dice.random()
        figures = {
            "timestamp(": self.now_s - 15.0 * noise,
            "process_start": self.now_s - 86_400.0,
            "cache_config": 1.0,
            "kv_cache_usage": min(1.0, usage * (0.95 + 0.1 * noise)),
            "num_requests_waiting": 0.0 if usage < 1.0 else 8.0 * noise,
            "num_requests_running": round(100.0 * usage),
            "prefix_cache": 0.3,
            "request_prompt_tokens": 900.0 + 100.0 * noise,
            "time_to_first_token": 0.3 + 0.1 * noise,
            "inter_token_latency": 0.03 + 0.01 * noise,
            "request_generation_tokens_sum": 250.0 + 50.0 * noise,
            "generation_tokens_total": 900.0 * usage,
            "request_generation_tokens_count": 3.0 * usage,
            "DCGM": 500.0,
        }
        return next((figure for name, figure in figures.items() if name in question), 0.0)


def _pool(kind: int, gpus: int) -> Pool:
    nodes = ceil(gpus / _GPUS_PER_NODE)
    name = _TYPES[kind].lower()
    return Pool.model_validate(
        {
            "id": name,
            "accelerator": _TYPES[kind],
            "failure_domain": name,
            "nodes": [
                Node.model_validate({"id": f"{name}-{number}", "gpus": _GPUS_PER_NODE})
                for number in range(nodes)
            ],
        }
    )
