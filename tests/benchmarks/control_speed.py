"""How long it takes to read a large fleet: answers of Prometheus -> observations, and raw pages.

Usage: python tests/benchmarks/control_speed.py [--replicas N] [--pages N]
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import httpx

from models.observation import VariantObservation
from models.variant import KubernetesObject
from planner.clock import FakeClock
from planner.collecting import collection_paused
from planner.control.collectors.assembling import assemble
from planner.control.collectors.exposition import parse
from planner.control.collectors.prometheus import PrometheusOptions, PrometheusSource
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.collectors.sightings import Sightings
from planner.control.collectors.vectors import Vectors

NOW_S: Final = 1_800_000_000.0
_ROUNDS: Final = 5


def where(index: int, *, services: int) -> dict[str, str]:
    return {
        "namespace": f"team-{index % services % 100}",
        "pod": f"llama-{index % services}-7d9f8b6c5d-{index:05d}",
        "instance": f"10.{index // 65536}.{index // 256 % 256}.{index % 256}:8000",
        "engine": "0",
    }


def variants_of(replicas: int, *, services: int) -> tuple[VariantObservation, ...]:
    pods: dict[int, list[str]] = {service: [] for service in range(services)}
    for index in range(replicas):
        pods[index % services].append(where(index, services=services)["pod"])
    return tuple(
        VariantObservation(
            name=f"llama-{service}",
            namespace=f"team-{service % 100}",
            model=f"llama-{service}",
            target=KubernetesObject(name=f"llama-{service}"),
            pods=tuple(names),
        )
        for service, names in pods.items()
    )


class Answers(httpx.BaseTransport):
    """A Prometheus of made-up replicas: the answer to each question is written once."""

    def __init__(self, replicas: int, *, services: int) -> None:
        self._places = [where(index, services=services) for index in range(replicas)]
        self._services = services
        self._dice = random.Random(1)  # noqa: S311 - the same figures in every run
        self._written: dict[bytes, bytes] = {}
        self.samples = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = request.read()
        if asked not in self._written:
            (question,) = parse_qs(asked.decode())["query"]
            self._written[asked] = json.dumps(self._answer(question), separators=(",", ":")).encode()
        return httpx.Response(200, content=self._written[asked])

    def _answer(self, question: str) -> Mapping[str, Any]:
        result: Sequence[Mapping[str, Any]] = ()
        if "up" in question.replace("(", " ").split("{")[0].split() or question.endswith("== 0"):
            result = ()
        elif "llm_d_epp" in question or "600s" in question:
            result = [self._service(index) for index in range(self._services)]
        else:
            result = [self._engine(index, question) for index in range(len(self._places))]
        self.samples += len(result)
        return {"status": "success", "data": {"resultType": "vector", "result": result}}

    def _service(self, index: int) -> Mapping[str, Any]:
        labels = {"model_name": f"llama-{index}", "namespace": f"team-{index % 100}"}
        return {"metric": labels, "value": [NOW_S, str(self._dice.random())]}

    def _engine(self, index: int, question: str) -> Mapping[str, Any]:
        labels = dict(self._places[index])
        value = self._dice.random()
        if "timestamp" in question:
            labels |= {"model_name": f"llama-{index % self._services}", "fleetplan_engine": "vllm"}
            value = NOW_S - 15.0 * value
        elif "DCGM" in question:
            del labels["engine"], labels["instance"]
        elif "process_start" in question:
            del labels["engine"]
            value = NOW_S - 3600.0
        elif "cache_config" in question:
            labels |= {"num_gpu_blocks": "27000", "block_size": "16"}
            value = 1.0
        return {"metric": dict(sorted(labels.items())), "value": [NOW_S, str(value)]}


def prometheus(replicas: int, *, services: int) -> None:
    clock = FakeClock(NOW_S)
    answers = Answers(replicas, services=services)
    options = PrometheusOptions(url="http://127.0.0.1:9090", parallel=1)
    source = PrometheusSource(options, clock, api=PrometheusApi(options, clock, transport=answers))
    variants = variants_of(replicas, services=services)
    reading = source.read(variants, NOW_S)
    print(f"{len(reading.engines):,} engines, {len(reading.traffic):,} services, {answers.samples:,} samples, "
          f"findings: {[each.problem for each in reading.findings][:3]}")  # fmt: skip
    timed(f"every question, {replicas:,} replicas -> observations", lambda: source.read(variants, NOW_S))
    timed(f"one vector, {replicas:,} replicas -> observations", lambda: one_vector(source, variants))


def one_vector(source: PrometheusSource, variants: Sequence[VariantObservation]) -> None:
    """Which engines there are, and one value of each."""
    seen, questions = Sightings(), source.questions(variants)
    vectors = Vectors(seen, source.options.labels)
    with collection_paused():
        vectors.presence(source.api.query(questions.present()))
        vectors.engines({"kv_usage": source.api.query(questions.engines()["kv_usage"])})
        assemble(seen, variants, NOW_S)


def timed(what: str, run: Callable[[], object]) -> None:
    """Process time, best and worst of some rounds."""
    times = []
    for _ in range(_ROUNDS):
        start_s = time.process_time()
        run()
        times.append(time.process_time() - start_s)
    print(f"{what}: {min(times):.3f} s at best, {max(times):.3f} s at worst")


def pages(count: int) -> None:
    text = page()
    start_s = time.process_time()
    for _ in range(count):
        parse(text, lambda name: name.startswith("vllm:"))
    took_s = (time.process_time() - start_s) / count
    print(f"a page of {text.count(chr(10)):,} lines: {1e3 * took_s:.2f} ms, {1 / took_s:,.0f} pages/s")


def page() -> str:
    """A page as long as one of vLLM."""
    labels = 'engine="0",model_name="llama-8b"'
    lines = [f"vllm:num_requests_running{{{labels}}} 3.0", f"vllm:kv_cache_usage_perc{{{labels}}} 0.5"]
    for name in range(16):
        lines += [f'vllm:h{name}_bucket{{{labels},le="{bound}"}} {bound}.0' for bound in range(20)]
        lines += [f"vllm:h{name}_sum{{{labels}}} 4.2", f"vllm:h{name}_count{{{labels}}} 42"]
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=10_000)
    parser.add_argument("--services", type=int, default=1_000)
    parser.add_argument("--pages", type=int, default=200)
    asked = parser.parse_args()
    prometheus(asked.replicas, services=asked.services)
    pages(asked.pages)


if __name__ == "__main__":
    main()
