"""The self-check names what is absent and the likeliest reason."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from models.observation import Finding
from planner.clock import FakeClock
from planner.control.collectors.access import Access
from planner.control.collectors.checking import check
from planner.control.collectors.label_names import LabelNames
from planner.control.collectors.names import ENGINE_MEASURES, ROUTER_MEASURES, plain
from planner.control.collectors.prometheus_api import PrometheusApi
from planner.control.collectors.queries import Questions

VLLM = sorted(
    {name for each in ENGINE_MEASURES for way in each.ways for name in way.series if name.startswith("vllm:") and "gpu" not in name}
)  # fmt: skip
ROUTER = [name for each in ROUTER_MEASURES for name in each.ways[0].series]
UP = {"count by (namespace)(up": [{"metric": {"namespace": "prod"}, "value": [1, "3"]}]}


def checked(names: list[str], vectors: dict[str, list[dict[str, Any]]], **more: Any) -> list[Finding]:
    """The findings of a Prometheus that has these names and answers so to questions with a text."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/targets"):
            return httpx.Response(
                more.get("targets_status", 200), json={"data": {"activeTargets": more.get("targets", [])}}
            )
        if "/label/" in request.url.path:
            return httpx.Response(200, json={"data": names})
        asked = dict(httpx.QueryParams(request.read().decode()))["query"]
        found = next((value for text, value in vectors.items() if asked.startswith(text)), [])
        return httpx.Response(
            200, json={"status": "success", "data": {"resultType": "vector", "result": found}}
        )

    access = Access(url="http://127.0.0.1:1")
    api = PrometheusApi(access, FakeClock(), transport=httpx.MockTransport(answer))
    return list(check(api, Questions(LabelNames(), ("prod",))))


def said(findings: list[Finding]) -> str:
    return "\n".join(f"{each.subject} | {each.problem} | {each.remedy}" for each in findings)


def test_where_everything_is_there_nothing_is_found() -> None:
    assert checked([*VLLM, *ROUTER], UP) == []


@pytest.mark.parametrize(
    ("names", "subject", "reason"),
    [
        ([name.replace("usage_perc", "usage_percentage") for name in VLLM], "vllm:kv_cache_usage_perc", "renamed: there is 'vllm:kv_cache_usage_percentage'"),
        ([name for name in VLLM if "waiting" not in name], "vllm:num_requests_waiting", "relabelling rule"),
        ([plain(name) for name in VLLM], "vllm_", "OpenMetrics"),
        ([name for name in VLLM if "kv_cache_usage" not in name] + ["vllm:gpu_cache_usage_perc"], "vllm:gpu_cache_usage_perc", "later versions renamed"),
        (["sglang:num_running_reqs", "sglang:num_queue_reqs", "sglang:token_usage", "sglang:max_total_num_tokens"], "sglang:prompt_tokens_histogram", "--collect-tokens-histogram"),
    ],
    ids=["renamed", "dropped", "openmetrics", "v0", "option"],
)  # fmt: skip
def test_a_series_that_is_absent_is_named_with_its_reason(
    names: list[str], subject: str, reason: str
) -> None:
    findings = [each for each in checked([*names, *ROUTER], UP) if each.subject.startswith(subject)]
    assert any(reason in each.remedy for each in findings), findings


def test_flow_control_that_is_off_is_told() -> None:
    names = [name for name in ROUTER if "queue" not in name]
    assert "feature gate" in said(checked([*VLLM, *names], UP))


def test_a_router_that_is_not_scraped_is_told() -> None:
    assert "endpoint picker" in said(checked(VLLM, UP))


def test_series_without_up_are_told() -> None:
    assert "drops up" in said(checked([*VLLM, *ROUTER], {}))


@pytest.mark.parametrize(
    ("vectors", "reason"),
    [
        ({}, "no PodMonitor or ServiceMonitor"),
        (UP, "3 targets are scraped there and none of them is an engine: wrong port"),
        ({"count by (namespace)({": [{"metric": {"namespace": "other"}, "value": [1, "2"]}]}, "there are some in other"),
        ({"count by (namespace)({": [{"metric": {}, "value": [1, "2"]}],
          "topk": [{"metric": {"__name__": "vllm:x", "k8s_namespace_name": "prod"}, "value": [1, "2"]}]}, "labels.namespace: k8s_namespace_name"),
    ],
    ids=["not-scraped", "wrong-port", "elsewhere", "relabelled"],
)  # fmt: skip
def test_where_no_engine_is_the_reason_is_told(vectors: dict[str, list[dict[str, Any]]], reason: str) -> None:
    assert reason in said(checked([], vectors))


def test_pods_without_their_label_are_told_with_the_label_that_is_used() -> None:
    vectors = UP | {
        'count({__name__=~"vllm:num_requests_running|vllm_num_requests_running|sglang:num_running_reqs|sglang_num_running_reqs", pod=""})': [{"metric": {}, "value": [1, "4"]}],
        "topk": [{"metric": {"__name__": "vllm:x", "kubernetes_pod_name": "p"}, "value": [1, "2"]}],
    }  # fmt: skip
    told = said(checked([*VLLM, *ROUTER], vectors))
    assert "4 series of engines do not have it" in told
    assert "labels.pod: kubernetes_pod_name" in told


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("dial tcp 10.0.0.1:8001: connect: connection refused", "wrong port"),
        ("server returned HTTP status 404 Not Found", "wrong path"),
        ("server returned HTTP status 401 Unauthorized", "token"),
        ("context deadline exceeded", "overloaded"),
        ("x509: certificate signed by unknown authority", "not trusted"),
        ("expected a valid start token", "does not understand"),
    ],
)
def test_a_target_that_is_down_is_told_with_its_last_error(error: str, reason: str) -> None:
    down = [{"metric": {"instance": "10.0.0.1:8001"}, "value": [1, "0"]}]
    vectors = UP | {"max by (namespace, pod, instance)(up": down}
    targets = [{"labels": {"instance": "10.0.0.1:8001"}, "lastError": error}, {"labels": None}]
    told = said(checked([*VLLM, *ROUTER], vectors, targets=targets))
    assert error in told
    assert reason in told
    assert "target 10.0.0.1:8001 | cannot be scraped |" in said(
        checked([*VLLM, *ROUTER], vectors, targets_status=404)
    )
