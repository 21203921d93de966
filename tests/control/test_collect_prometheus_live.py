"""A real Prometheus scrapes small servers, and the source reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from models.observation import EngineObservation, Freshness, FreshnessLimits, VariantObservation
from models.variant import KubernetesObject
from planner.clock import SystemClock
from planner.control.collectors.prometheus import PrometheusSource, source
from planner.control.protocols import MetricsReading
from tests.loopback import free_port
from tests.page_servers import Served, a_prometheus, an_engine_page, page_of, served

pytestmark = pytest.mark.e2e

_NAN = float("nan")


def a_variant(name: str, *pods: str, kind: Any = "Deployment", **more: Any) -> VariantObservation:
    fields = {"namespace": "prod", "model": "llama", "target": KubernetesObject(name=name, kind=kind)} | more
    return VariantObservation(name=name, pods=pods, **fields)


def _target(port: int, **labels: str) -> dict[str, Any]:
    return {"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": "prod"} | labels}


@dataclass
class Fleet:
    """Servers by pod, their targets as Prometheus finds them, and a source that reads it."""

    folder: Path
    servers: dict[str, Served]
    source: PrometheusSource
    scraped_s: float

    def targets(self, targets: Sequence[dict[str, Any]]) -> None:
        (self.folder / "targets.part").write_text(json.dumps(list(targets)))
        (self.folder / "targets.part").replace(self.folder / "targets.json")

    def read(self, *variants: VariantObservation) -> MetricsReading:
        return self.source.read(variants, SystemClock().unix_s())

    def read_until(
        self, good: Callable[[MetricsReading], bool], *variants: VariantObservation
    ) -> MetricsReading:
        for _ in range(60):
            reading = self.read(*variants)
            if good(reading):
                return reading
            SystemClock().sleep(0.25)
        raise AssertionError(f"not seen within 15 s: {reading}")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("prometheus")
    pods = (
        "llama-a", "ranks", "group-0", "group-0-1", "plain", "sglang", "picker", "gpus", "odd", "twice", "fails", "leaves",
    )  # fmt: skip
    serving = [served() for _ in pods]
    servers = {pod: one.__enter__() for pod, one in zip(pods, serving, strict=True)}
    discovered = {"job_name": "pods", "file_sd_configs": [{"files": [str(folder / "targets.json")], "refresh_interval": "1s"}]}  # fmt: skip
    again = {"job_name": "again", "static_configs": [_target(servers["twice"].port, pod="twice")]}
    _pages(servers, 1.0)
    (folder / "targets.json").write_text(json.dumps(_targets(servers)))
    with a_prometheus(folder, [discovered, again], targets=len(pods) + 1) as url:
        for step in range(2, 6):
            SystemClock().sleep(0.7)
            _pages(servers, float(step))
        with closing(source({"url": url}, SystemClock())) as reader:
            fleet = Fleet(folder, servers, reader, SystemClock().monotonic_s())
            fleet.read_until(_sees_the_last_pages)
            yield fleet
    for one in serving:
        one.__exit__(None, None, None)


def _sees_the_last_pages(reading: MetricsReading) -> bool:
    arrived = {each.model: each.arrived or 0.0 for each in reading.traffic}
    rates = [each.token_rate or 0.0 for each in reading.engines if each.model == "llama"]
    return arrived.get("llama", 0.0) > 299.0 and len(rates) > 8 and min(rates) > 0.0


def _targets(servers: dict[str, Served]) -> list[dict[str, Any]]:
    return [_target(server.port, pod=pod) for pod, server in servers.items()]


def _pages(servers: dict[str, Served], at: float) -> None:
    ranks = an_engine_page(at=at) + an_engine_page(at=2 * at, engine="1", num_requests_running=7)
    pages = {
        "llama-a": an_engine_page(at=at) + "process_start_time_seconds 1700000000\n",
        "ranks": ranks + "process_start_time_seconds 1700000001\n",
        "group-0": an_engine_page(at=at),
        "group-0-1": an_engine_page(at=at),
        "plain": an_engine_page(at=at).replace("vllm:", "vllm_"),
        "sglang": _sglang(at),
        "picker": _picker(at),
        "gpus": _power("llama-a", 0, 400) + _power("llama-a", 1, 300) + _power("group-0", 2, 200) + _power("group-0-1", 3, 100),
        "odd": an_engine_page(at=at, kv_cache_usage_perc=57.0, num_requests_waiting=_NAN),
        "twice": an_engine_page(at=at),
        "fails": an_engine_page(at=at),
        "leaves": an_engine_page(at=at),
    }  # fmt: skip
    for pod, page in pages.items():
        servers[pod].pages["/metrics"] = page


def _sglang(at: float) -> str:
    values = {
        "sglang:num_running_reqs": 4, "sglang:num_queue_reqs": 1, "sglang:token_usage": 0.25,
        "sglang:max_total_num_tokens": 430_839, "sglang:generation_tokens_total": 30 * at,
        "sglang:num_requests_total": 10 * at, "sglang:cached_tokens_total": 20 * at, "sglang:prompt_tokens_total": 40 * at,
    }  # fmt: skip
    return page_of({name + '{tp_rank="0"}': value for name, value in values.items()}, model_name="qwen")


def _picker(at: float) -> str:
    both = ("llm_d_epp", "inference_extension")
    lines = [
        f'{name}_flow_control_queue_size{{fairness_id="{tenant}",model_name="llama",target_model_name="llama"}} 2\n'
        for name in both
        for tenant in ("a", "b")
    ]
    lines += [
        f'{name}_flow_control_queue_bytes{{model_name="llama",target_model_name=""}} 800\n' for name in both
    ]
    labels = 'status="success",target_model_name="llama",namespace="prod",port="8000"'
    lines += [
        f'llm_d_epp_scheduler_attempts_total{{{labels},endpoint_name="llama-a"}} {60 * at}\n',
        f'inference_extension_scheduler_attempts_total{{{labels},pod_name="llama-a"}} {60 * at}\n',
        f'llm_d_epp_request_total{{model_name="alias",target_model_name="llama"}} {60 * at}\n',
        f'inference_objective_request_total{{model_name="alias",target_model_name="llama"}} {60 * at}\n',
    ]
    return "".join(lines)


def _power(pod: str, gpu: int, watts: float) -> str:
    return f'DCGM_FI_DEV_POWER_USAGE{{gpu="{gpu}",UUID="GPU-{gpu}",pod="{pod}",namespace="prod"}} {watts}\n'


def by_pod(reading: MetricsReading) -> dict[str, EngineObservation]:
    return {engine.pod: engine for engine in reading.engines}


def test_an_engine_is_read_with_its_maxima_means_and_sizes(fleet: Fleet) -> None:
    engine = by_pod(fleet.read(a_variant("llama", "llama-a")))["llama-a"]
    assert engine.instance == f"llama-a:{fleet.servers['llama-a'].port}"
    assert (engine.variant, engine.model, engine.namespace) == ("llama", "llama", "prod")
    assert (engine.running, engine.waiting, engine.kv_usage, engine.kv_now) == (3, 2, 0.5, 0.5)
    assert (engine.kv_tokens, engine.started_s) == (16_000, 1_700_000_000)
    assert engine.input_tokens == pytest.approx(100)
    assert engine.output_tokens == pytest.approx(20)
    assert engine.hit_share == pytest.approx(0.25)
    assert engine.ttft_s == pytest.approx(0.2)
    assert engine.itl_s == pytest.approx(0.01)
    assert engine.token_rate is not None
    assert engine.token_rate > 0
    assert engine.age_s is not None
    assert FreshnessLimits().of(engine.age_s) is Freshness.FRESH


def test_ranks_of_a_pod_are_engines_of_their_own(fleet: Fleet) -> None:
    port = fleet.servers["ranks"].port
    ranks = {each.instance: each for each in fleet.read().engines if each.pod == "ranks"}
    assert set(ranks) == {f"ranks:{port}", f"ranks:{port}/1"}
    assert ranks[f"ranks:{port}"].running == 3
    assert ranks[f"ranks:{port}/1"].running == 7
    assert {each.started_s for each in ranks.values()} == {1_700_000_001}
    assert [each.kv_tokens for each in ranks.values()] == [16_000, 16_000]


def test_workers_of_a_group_are_no_engines_and_their_power_is_the_leaders(fleet: Fleet) -> None:
    engines = by_pod(fleet.read(a_variant("group", "group-0", kind="LeaderWorkerSet")))
    assert "group-0-1" not in engines
    assert engines["group-0"].power_w == 300


def test_power_is_that_of_all_accelerators_of_the_pod(fleet: Fleet) -> None:
    assert by_pod(fleet.read())["llama-a"].power_w == 700


def test_names_that_openmetrics_changed_say_the_same(fleet: Fleet) -> None:
    engine = by_pod(fleet.read())["plain"]
    assert (engine.running, engine.kv_tokens) == (3, 16_000)
    assert engine.output_tokens == pytest.approx(20)


def test_sglang_is_read_by_its_own_names(fleet: Fleet) -> None:
    engine = by_pod(fleet.read())["sglang"]
    assert (engine.running, engine.waiting, engine.kv_usage, engine.kv_tokens) == (4, 1, 0.25, 430_839)
    assert engine.output_tokens == pytest.approx(3)
    assert engine.hit_share == pytest.approx(0.5)


def test_what_cannot_be_is_unknown_and_not_zero(fleet: Fleet) -> None:
    reading = fleet.read()
    engine = by_pod(reading)["odd"]
    assert (engine.kv_usage, engine.waiting) == (None, None)
    assert engine.running == 3
    assert any("kv_usage" in each.subject for each in reading.findings)


def test_a_page_that_two_jobs_scrape_counts_once(fleet: Fleet) -> None:
    engines = by_pod(fleet.read())
    once, twice = engines["group-0"].token_rate, engines["twice"].token_rate
    assert once is not None
    assert twice == pytest.approx(once, rel=0.3)


def test_a_queue_counts_once_under_old_and_new_names(fleet: Fleet) -> None:
    reading = fleet.read(a_variant("llama", "llama-a"))
    (traffic,) = [each for each in reading.traffic if each.model == "llama"]
    assert (traffic.namespace, traffic.queued, traffic.queued_bytes) == ("prod", 4, 800)
    assert traffic.arrived is not None
    assert traffic.arrived == pytest.approx(300)  # it was not there before, so it began at zero
    assert traffic.arrival_rps is not None
    assert traffic.arrival_rps > 0


def test_a_queue_alone_is_read_as_with_everything_else(fleet: Fleet) -> None:
    reading = fleet.source.queues([a_variant("llama", "llama-a")], SystemClock().unix_s())
    assert [each.queued for each in reading.traffic if each.model == "llama" and each.queued] == [4]


def test_an_engine_gets_the_rate_that_the_router_sends_it_only_at_its_port(fleet: Fleet) -> None:
    engine = by_pod(fleet.read())["llama-a"]
    own = by_pod(fleet.read())["group-0"].request_rps
    assert engine.request_rps == pytest.approx(own, rel=0.3)


def test_an_engine_that_cannot_be_scraped_is_kept_and_one_that_is_gone_is_not(fleet: Fleet) -> None:
    # Engines that were there for less than the five seconds between two looks into the past are not remembered.
    SystemClock().sleep(fleet.scraped_s + 5.5 - SystemClock().monotonic_s())
    fleet.servers["fails"].answer = lambda *_: (500, {}, b"down")
    fleet.targets([target for target in _targets(fleet.servers) if target["labels"]["pod"] != "leaves"])
    try:
        seen: list[MetricsReading] = []

        def settled(reading: MetricsReading) -> bool:
            seen.append(reading)
            there = by_pod(reading)
            return "leaves" not in there and "fails" in there and (there["fails"].age_s or 0.0) > 1.5

        reading = fleet.read_until(settled)
        assert [each for each in seen if "fails" not in by_pod(each)] == []
        lost = by_pod(reading)["fails"]
        assert (lost.running, lost.kv_usage) == (None, 0.5)
        assert any("fails" in each.subject or "500" in each.problem for each in fleet.source.check(()))
    finally:
        fleet.servers["fails"].answer = None
        fleet.targets(_targets(fleet.servers))


def test_a_ready_pod_without_metrics_is_an_engine_that_is_missing(fleet: Fleet) -> None:
    reading = fleet.read(a_variant("llama", "llama-a", "llama-b"))
    missing = by_pod(reading)["llama-b"]
    assert (missing.age_s, missing.running, missing.kv_usage) == (None, None, None)
    assert any("llama-b" in each.problem for each in reading.findings)
    (traffic,) = [each for each in reading.traffic if each.model == "llama" and each.in_flight is None]
    assert traffic.queued == 4


def test_a_reading_of_everything_is_complete(fleet: Fleet) -> None:
    assert fleet.read().complete


def test_only_the_namespaces_of_the_variants_are_read(fleet: Fleet) -> None:
    assert fleet.read(a_variant("x", namespace="elsewhere")).engines == ()


def test_the_check_of_a_namespace_without_engines_says_where_there_are_some(fleet: Fleet) -> None:
    findings = fleet.source.check([a_variant("x", namespace="elsewhere")])
    assert any("prod" in each.remedy for each in findings)


def test_arrivals_of_the_past_are_told_for_forecasts(fleet: Fleet) -> None:
    now_s = SystemClock().unix_s()
    history, findings = fleet.source.arrivals([a_variant("llama")], now_s - 30, now_s, step_s=5.0)
    assert findings == ()
    assert history["prod", "llama"]
    assert all(value >= 0 for _, value in history["prod", "llama"])


def test_a_prometheus_that_stops_leaves_an_incomplete_reading(fleet: Fleet) -> None:
    options = {"url": f"http://127.0.0.1:{free_port()}", "retries": {"tries": 2, "first_s": 0.01}}
    with closing(source(options, SystemClock())) as gone:
        reading = gone.read([a_variant("llama", "llama-a")], 0.0)
    assert not reading.complete
    assert any("cannot be reached" in each.problem for each in reading.findings)


@pytest.fixture(scope="module")
def relabelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("relabelled")
    with served() as engine, served() as sidecar:
        engine.pages["/metrics"] = an_engine_page().replace("kv_cache_usage_perc", "kv_cache_usage_percent")
        sidecar.pages["/metrics"] = "envoy_up 1\n"
        labelled = {"job_name": "engine", "static_configs": [{"targets": [f"127.0.0.1:{engine.port}"], "labels": {"kubernetes_namespace": "prod"}}]}  # fmt: skip
        wrong = {"job_name": "wrong", "static_configs": [{"targets": [f"127.0.0.1:{sidecar.port}"], "labels": {"namespace": "side"}}]}  # fmt: skip
        closed = {"job_name": "closed", "static_configs": [{"targets": [f"127.0.0.1:{free_port()}"], "labels": {"namespace": "side"}}]}  # fmt: skip
        with a_prometheus(folder, [labelled, wrong, closed], targets=3) as url:
            yield url


def test_the_check_names_the_label_that_is_used_instead(relabelled: str) -> None:
    with closing(source({"url": relabelled}, SystemClock())) as reader:
        findings = reader.check(())
    said = " ".join(f"{each.subject} {each.problem} {each.remedy}" for each in findings)
    assert "labels.namespace: kubernetes_namespace" in said
    assert "'vllm:kv_cache_usage_percent'" in said


def test_the_check_tells_a_wrong_port_from_a_closed_one(relabelled: str) -> None:
    with closing(source({"url": relabelled, "namespaces": ["side"]}, SystemClock())) as reader:
        findings = reader.check(())
    remedies = [each.remedy for each in findings]
    assert any("wrong port, or an engine" in remedy for remedy in remedies)


def test_series_without_namespace_belong_to_the_only_variant_of_their_model(relabelled: str) -> None:
    with closing(source({"url": relabelled}, SystemClock())) as reader:
        reading = reader.read([a_variant("llama")], 0.0)
    assert [(each.variant, each.namespace) for each in reading.engines] == [("llama", "prod")]
