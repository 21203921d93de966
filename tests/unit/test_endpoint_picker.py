"""llm-d's EndpointPickerConfig as a router of the twin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from models.simulation import Admission, RouterSpec, Routing
from planner.errors import ConfigurationError
from planner.importers.endpoint_picker import PickerReading, read_endpoint_picker

WEIGHTED: dict[str, Any] = {
    "apiVersion": "llm-d.ai/v1alpha1",
    "kind": "EndpointPickerConfig",
    "plugins": [
        {"type": "queue-scorer"},
        {"type": "kv-cache-utilization-scorer"},
        {"name": "prefix", "type": "prefix-cache-scorer", "parameters": {"blockSize": 16}},
        {"type": "max-score-picker"},
        {"type": "single-profile-handler"},
    ],
    "schedulingProfiles": [
        {
            "name": "default",
            "plugins": [
                {"pluginRef": "queue-scorer", "weight": 2},
                {"pluginRef": "kv-cache-utilization-scorer"},
                {"pluginRef": "prefix", "weight": 3.5},
                {"pluginRef": "max-score-picker"},
            ],
        }
    ],
}


def read(tmp_path: Path, document: dict[str, Any]) -> PickerReading:
    path = tmp_path / "epp.yaml"
    path.write_text(yaml.safe_dump(document))
    return read_endpoint_picker(path)


def test_weights_are_those_of_the_profile_and_1_where_it_gives_none(tmp_path: Path) -> None:
    router = read(tmp_path, WEIGHTED).router
    assert (router.weights.queue, router.weights.kv_cache, router.weights.prefix) == (2.0, 1.0, 3.5)
    assert (router.routing, router.admission) == (Routing.SCORERS, Admission.SHED)
    assert (router.saturated_queue, router.saturated_kv) == (5, 0.8)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"saturationDetector": {"queueDepthThreshold": 7, "kvCacheUtilThreshold": 0.9, "metricsStalenessThreshold": "200ms"}},
         {"saturated_queue": 7, "saturated_kv": 0.9, "admission": Admission.SHED}),
        ({"featureGates": ["flowControl"]},
         {"admission": Admission.QUEUE, "queue_timeout_s": 60.0, "queue_requests": 5000, "hold_without_replica": True}),
        ({"featureGates": ["flowControl=true"],
          "flowControl": {"maxBytes": "1Ki", "maxRequests": "2k", "defaultRequestTTL": "1m30s"}},
         {"queue_tokens": 256, "queue_requests": 2000, "queue_timeout_s": 90.0}),
        ({"featureGates": ["flowControl"], "flowControl": {"priorityBands": [{"priority": 1, "maxRequests": 30},
                                                                           {"priority": 0, "maxRequests": "10"}]}},
         {"queue_requests": 40}),
        ({"featureGates": ["flowControl=false"], "flowControl": {"maxRequests": 5}}, {"admission": Admission.SHED}),
    ],
)  # fmt: skip
def test_flow_control_and_thresholds(tmp_path: Path, more: dict[str, Any], expected: dict[str, Any]) -> None:
    router = read(tmp_path, WEIGHTED | more).router
    assert {name: getattr(router, name) for name in expected} == expected


def with_detector(plugin: dict[str, Any]) -> dict[str, Any]:
    return WEIGHTED | {
        "plugins": [*WEIGHTED["plugins"], plugin],
        "flowControl": {"saturationDetector": {"pluginRef": plugin.get("name", plugin["type"])}},
    }


def test_detectors_are_plugins_too(tmp_path: Path) -> None:
    used = {"type": "utilization-detector", "parameters": {"queueDepthThreshold": 10, "headroom": 0.2}}
    router = read(tmp_path, with_detector(used)).router
    assert (router.saturated_queue, router.saturated_kv) == (12, pytest.approx(0.96))
    counted = {"name": "c", "type": "concurrency-detector", "parameters": {"maxConcurrency": 40}}
    router = read(tmp_path, with_detector(counted)).router
    assert (router.max_in_flight, router.saturated_kv) == (40, 1.0)


def test_random_pickers_and_prefill_profiles(tmp_path: Path) -> None:
    document = WEIGHTED | {
        "plugins": [*WEIGHTED["plugins"], {"type": "random-picker"}, {"type": "decode-filter"}],
        "schedulingProfiles": [
            {"name": "prefill", "plugins": [{"pluginRef": "queue-scorer"}]},
            {"name": "decode", "plugins": [{"pluginRef": "random-picker"}, {"pluginRef": "decode-filter"}]},
        ],
    }
    found = read(tmp_path, document)
    assert found.router.routing is Routing.RANDOM
    assert found.router.weights.queue == 0
    assert any("profile 'decode' decides" in note for note in found.notes)
    assert any("decode-filter" in note for note in found.notes)


def test_it_is_found_in_a_config_map(tmp_path: Path) -> None:
    held = {"kind": "ConfigMap", "data": {"other": "x: 1", "epp.yaml": yaml.safe_dump(WEIGHTED)}}
    assert read(tmp_path, held).router.weights.prefix == 3.5


def test_all_that_is_wrong_is_in_one_message(tmp_path: Path) -> None:
    document = {
        "apiVersion": "v9",
        "kind": "EndpointPickerConfig",
        "featureGate": [],
        "featureGates": ["flowControl"],
        "plugins": [
            {"type": "queue-scorer"},
            {"type": "queue-scorer"},
            {"type": "kv-cache-utilisation-scorer"},
            {"type": "session-affinity-scorer"},
            {"name": "x"},
        ],
        "schedulingProfiles": [
            {
                "plugins": [
                    {"pluginRef": "queue-scorer", "weight": -1},
                    {"pluginRef": "queue-score", "wait": 1},
                ]
            }
        ],
        "saturationDetector": {"queueDepthThreshold": 0, "kvCacheUtilThreshold": 3},
        "flowControl": {"maxBytes": "many", "defaultRequestTTL": "soon", "maxRequest": 1},
    }
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, document)
    said = str(error.value)
    for part in (
        "apiVersion: found 'v9'",
        "featureGate: found an unknown key",
        "the name 'queue-scorer' twice",
        "did you mean 'kv-cache-utilization-scorer'?",
        "session-affinity-scorer",
        "plugins[4].type: found nothing",
        "schedulingProfiles[0].name: found nothing",
        "weight: found -1",
        "did you mean 'queue-scorer'?",
        "queueDepthThreshold",
        "kvCacheUtilThreshold",
        "maxBytes: found 'many'",
        "defaultRequestTTL: found 'soon'",
        "flowControl.maxRequest: found an unknown key",
    ):
        assert part in said, part


@pytest.mark.parametrize("text", ["kind: Deployment\n", "[1, 2]\n", "a: [\n", ""])
def test_a_file_without_one_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "epp.yaml"
    path.write_text(text)
    with pytest.raises(ConfigurationError):
        read_endpoint_picker(path)


def test_what_is_read_is_a_valid_router(tmp_path: Path) -> None:
    router = read(tmp_path, WEIGHTED).router
    assert RouterSpec.model_validate(router.model_dump()) == router


def test_a_plugin_without_a_name_is_said_once_and_suggested_to_nobody(tmp_path: Path) -> None:
    plugins = [{"type": "queue-scorer"}, 5, None, {}, {"name": ""}]
    slots = [{"pluginRef": "queue-scorr"}]
    broken = {"plugins": plugins, "schedulingProfiles": [{"name": "default", "plugins": slots}]}
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, {"kind": WEIGHTED["kind"], **broken})
    assert [(each.path, each.found) for each in error.value.findings] == [
        ("apiVersion", "nothing"),
        ("plugins[1]", "5"),
        ("plugins[2]", "nothing"),
        ("plugins[3].type", "nothing"),
        ("plugins[4].type", "nothing"),
        ("schedulingProfiles[0].plugins[0].pluginRef", "'queue-scorr'"),
    ]
    assert error.value.findings[-1].allowed == "queue-scorer"


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"saturationDetector": {"queueDepthThreshold": 1e300}}, "saturationDetector.queueDepthThreshold"),
        ({"saturationDetector": {"headroom": float("inf")}}, "saturationDetector.headroom"),
        ({"featureGates": ["flowControl"], "flowControl": {"defaultRequestTTL": "9" * 400 + "h"}},
         "flowControl.defaultRequestTTL"),
    ],
)  # fmt: skip
def test_a_number_beyond_all_measure_is_a_finding(tmp_path: Path, more: dict[str, Any], place: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        read(tmp_path, WEIGHTED | more)
    assert [each.path for each in error.value.findings] == [place]


def test_limits_that_nothing_reaches_are_the_largest_of_the_twin(tmp_path: Path) -> None:
    flow = {"maxRequests": "9" * 400, "maxBytes": "9" * 40 + "Ti"}
    router = read(tmp_path, WEIGHTED | {"featureGates": ["flowControl"], "flowControl": flow}).router
    assert (router.queue_requests, router.queue_tokens) == (10**9, 10**9)
    wide = {"saturationDetector": {"queueDepthThreshold": 10**9, "headroom": 10}}
    assert read(tmp_path, WEIGHTED | wide).router.saturated_queue == 10**9
