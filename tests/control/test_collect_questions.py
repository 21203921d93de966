"""The questions to Prometheus are well formed, for every configuration, and ask for each name once."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from planner.clock import FakeClock
from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.prometheus import PrometheusOptions, PrometheusSource
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.collectors.queries import Questions
from planner.control.protocols import MetricsReading

RENAMED = LabelNames(namespace="ns", pod="k8s_pod", instance="addr", variant="v", cluster="region")


def every(questions: Questions) -> dict[str, str]:
    """Each question that is ever asked, by name."""
    return {
        "present": questions.present(), "last seen": questions.last_seen(), "down": questions.targets_down(),
        "known": questions.targets_known(), "dispatch": questions.dispatch(), "power": questions.power(),
        "completed": questions.completed(900.0), "one": questions.one_engine(), "by": questions.engines_by("a"),
        "without": questions.engines_without("b"), "names": questions.names(), "anywhere": questions.names(anywhere=True),
    } | questions.engines() | questions.routers(900.0)  # fmt: skip


@pytest.mark.e2e
@pytest.mark.parametrize("labels", [LabelNames(), RENAMED], ids=["usual", "renamed"])
@pytest.mark.parametrize(
    "namespaces", [(), ("prod",), ("a.b", "c-d", 'e"f\\', "g+h")], ids=["all", "one", "odd"]
)
def test_prometheus_understands_every_question(
    tmp_path: Path, labels: LabelNames, namespaces: tuple[str, ...]
) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (apt-get install prometheus)")
    rules = [
        {"record": f"r{index}", "expr": expression}
        for index, expression in enumerate(every(Questions(labels, namespaces)).values())
    ]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": "g", "rules": rules}]}))
    checked = subprocess.run(
        [promtool, "check", "rules", str(tmp_path / "rules.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_namespace_is_matched_as_it_is_written_and_series_without_one_too() -> None:
    assert 'namespace=~"a\\\\.b|"' in Questions(LabelNames(), ("a.b",)).targets_known()


def test_labels_that_were_renamed_are_asked_for_by_their_names() -> None:
    question = Questions(RENAMED).engines()["kv_now"]
    assert question.startswith("max by (region, ns, k8s_pod, addr, engine, dp_rank)")
    assert "namespace" not in question


def reading_of(result: dict[str, list[dict[str, Any]]], **options: Any) -> MetricsReading:
    """The reading where each question that holds a text is answered so."""

    def answer(request: httpx.Request) -> httpx.Response:
        asked = dict(httpx.QueryParams(request.read().decode()))["query"]
        found = next((value for text, value in result.items() if text in asked), [])
        return httpx.Response(
            200, json={"status": "success", "data": {"resultType": "vector", "result": found}}
        )

    told = PrometheusOptions(url="http://127.0.0.1:1", parallel=1, power=False, **options)
    api = PrometheusApi(told, FakeClock(), transport=httpx.MockTransport(answer))
    return PrometheusSource(told, FakeClock(), api=api).read((), 1e9)


def test_clusters_of_one_prometheus_are_kept_apart() -> None:
    places = [
        {"region": region, "ns": "prod", "k8s_pod": "p", "addr": "a:1"} for region in ("eu", "us", "bad name")
    ]
    present = [
        {"metric": place | {"fleetplan_engine": "vllm", "model_name": "m"}, "value": [100, "99"]}
        for place in places
    ]
    reading = reading_of({"timestamp": present}, labels=RENAMED)
    assert [(each.cluster, each.instance, each.age_s) for each in reading.engines] == [
        ("eu", "p:1", 1),
        ("us", "p:1", 1),
    ]


def test_a_service_may_have_a_retention_period_of_its_own() -> None:
    def done(count: int) -> list[dict[str, Any]]:
        return [
            {"metric": {"namespace": "n", "model_name": model}, "value": [1, str(count)]}
            for model in ("m", "o")
        ]

    answers = {"request_success_total[60s]": done(1), "request_success_total[600s]": done(10),
               "epp_request_total[60s]": done(2), "epp_request_total[600s]": done(20)}  # fmt: skip
    traffic = reading_of(answers, retentions={"n/m": 60.0}).traffic
    assert [(each.model, each.completed, each.arrived) for each in traffic] == [("m", 1, 2), ("o", 10, 20)]


def test_a_target_that_is_down_and_unknown_is_no_engine() -> None:
    down = [{"metric": {"namespace": "n", "instance": "a:1", "fleetplan_engine": "down"}, "value": [1, "0"]}]
    reading = reading_of({"up": down})
    assert reading.engines == ()
    assert reading.complete


def test_queues_of_services_that_sleep_take_one_question() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(dict(httpx.QueryParams(request.read().decode()))["query"])
        result = [{"metric": {"namespace": "n", "target_model_name": "m"}, "value": [1, "3"]}]
        return httpx.Response(
            200, json={"status": "success", "data": {"resultType": "vector", "result": result}}
        )

    told = PrometheusOptions(url="http://127.0.0.1:1", parallel=1)
    api = PrometheusApi(told, FakeClock(), transport=httpx.MockTransport(answer))
    reading = PrometheusSource(told, FakeClock(), api=api).queues((), 1e9)
    assert len(asked) == 1
    assert "flow_control_queue_size" in asked[0]
    assert [(each.namespace, each.model, each.queued) for each in reading.traffic] == [("n", "m", 3)]
    assert reading.engines == ()
