"""Endpoint pickers of services at their cap: settings are made, kept through restarts, and put back; people come first."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from models.observation import Condition, VariantObservation
from models.variant import KubernetesObject
from planner.clock import FakeClock
from planner.control.actuators import ACTUATORS, Connections, open_actuator
from planner.control.actuators.epp import EppActuator, Standing, standing_of
from planner.control.actuators.epp_options import CapSettings
from planner.control.actuators.epp_text import NotUnderstoodError, at_cap, configuration_in, put_back
from planner.control.cluster import Api, ClusterFault, Trouble, kinds
from planner.control.cluster.kinds import CONFIG_MAPS, DEPLOYMENTS, INFERENCE_OBJECTIVES
from planner.control.cluster.memory import MemoryCluster
from planner.control.cluster.reading import annotations_of, at
from planner.control.cluster.transport import Answer, Call
from planner.control.protocols import SHORT, Decision, Outcome, OutcomeCode
from planner.errors import ConfigurationError

ROUTER = """\
# tuned by hand
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: queue-scorer
  - {type: utilization-detector, parameters: {queueDepthThreshold: 5, kvCacheUtilThreshold: 0.9}}
schedulingProfiles:
  - {name: default, plugins: [{pluginRef: queue-scorer, weight: 2}]}
"""
INLINE = """\
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
plugins: [{type: queue-scorer}]
schedulingProfiles: [{name: default, plugins: [{pluginRef: queue-scorer}]}]
saturationDetector: {queueDepthThreshold: 5}
"""
SERVICE = {
    "service": "prod/llama",
    "priorities": {"batch": -10},
    "config_map": "llama-epp",
    "settings": {"max_requests": 200, "request_ttl_s": 2.5, "kv_usage": 0.8},
}


def an_objective(name: str = "batch", priority: int | None = 0, **more: Any) -> dict[str, Any]:
    spec = {"poolRef": {"name": "llama"}} | ({} if priority is None else {"priority": priority})
    return {
        "kind": "InferenceObjective",
        "metadata": {"name": name, "namespace": "prod"},
        "spec": spec,
    } | more


def a_config_map(text: str = ROUTER, key: str = "epp.yaml") -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": "llama-epp", "namespace": "prod"}, "data": {key: text}}


def a_deployment() -> dict[str, Any]:
    spec = {"replicas": 1, "template": {"metadata": {"labels": {"app": "epp"}}, "spec": {}}}
    return {"kind": "Deployment", "metadata": {"name": "llama-epp", "namespace": "prod"}, "spec": spec}


def a_decision(short: float = 0, name: str = "llama", **more: Any) -> Decision:
    variant = VariantObservation(
        name=name, namespace="prod", model="llama", target=KubernetesObject(name=name), wanted=4, **more
    )
    return Decision(variant=variant, desired=4, reason="Held", facts={SHORT: short} if short else {})


class Scene:
    """A cluster with a picker, a clock, and the actuator; it may be restarted."""

    def __init__(self, *objects: dict[str, Any], **service: Any) -> None:
        self.cluster = MemoryCluster(objects or (an_objective(), a_config_map()))
        self.clock = FakeClock()
        self.options = {"services": [SERVICE | service], "after_s": 30, "room_s": 300}
        self.restart()

    @property
    def api(self) -> Api:
        return Api(self.cluster, self.clock)

    def restart(self) -> None:
        connections = Connections(clock=self.clock, apis=(self.api,))
        made = open_actuator("epp", self.options, connections)
        assert isinstance(made, EppActuator)
        self.epp = made

    def after(self, seconds: float, *decisions: Decision, dry_run: bool = False) -> Outcome:
        self.epp.act(decisions, dry_run=dry_run)
        self.clock.sleep(seconds)
        return self.epp.act(decisions, dry_run=dry_run)[0]

    def capped(self, **more: Any) -> Outcome:
        return self.after(30, a_decision(short=2), **more)

    def room(self, **more: Any) -> Outcome:
        return self.after(300, a_decision(), **more)

    def text(self) -> str:
        return str(self.api.get(CONFIG_MAPS, "prod", "llama-epp")["data"]["epp.yaml"])

    def priority(self, name: str = "batch") -> Any:
        return self.api.get(INFERENCE_OBJECTIVES, "prod", name)["spec"].get("priority")


@pytest.mark.parametrize(
    ("decisions", "standing"),
    [
        ([a_decision(short=1)], Standing.CAPPED),
        ([a_decision(), a_decision(short=1, name="other")], Standing.CAPPED),
        ([a_decision()], Standing.ROOM),
        ([a_decision(short=1, paused=True)], Standing.UNKNOWN),
        ([a_decision(conditions=(Condition(type="MetricsAvailable", status=False, reason="MetricsMissing"),))], Standing.UNKNOWN),
        ([], Standing.UNKNOWN),
    ],
)  # fmt: skip
def test_a_service_is_at_its_cap_when_it_asked_for_more_than_it_got(
    decisions: list[Decision], standing: Standing
) -> None:
    assert standing_of(decisions) is standing


def test_at_the_cap_priorities_and_settings_are_made_once_and_put_back_byte_by_byte() -> None:
    scene = Scene()
    made = scene.capped()
    assert (made.code, made.applied, made.changed) == (OutcomeCode.DONE, True, True)
    assert scene.priority() == -10
    found = yaml.safe_load(scene.text())
    assert found["flowControl"] == {"maxRequests": "200", "defaultRequestTTL": "2500ms"}
    assert found["featureGates"] == ["flowControl"]
    assert found["plugins"][1]["parameters"] == {"queueDepthThreshold": 1, "kvCacheUtilThreshold": 0.8}
    writes = len(scene.cluster.writes)
    assert scene.capped().code is OutcomeCode.SAME
    assert len(scene.cluster.writes) == writes
    back = scene.room()
    assert back.changed
    assert (scene.priority(), scene.text()) == (0, ROUTER)
    for kind, name in ((CONFIG_MAPS, "llama-epp"), (INFERENCE_OBJECTIVES, "batch")):
        assert annotations_of(scene.api.get(kind, "prod", name)) == {}


def test_each_field_that_changes_is_told_with_what_it_was() -> None:
    told = {(each.field, each.before, each.after) for each in Scene().capped().differences}
    assert ("spec.priority", "0", "-10") in told
    assert ("epp.yaml: flowControl.maxRequests", "", "'200'") in told
    assert ("epp.yaml: plugins.utilization-detector.parameters.kvCacheUtilThreshold", "0.9", "0.8") in told


def test_a_dry_run_tells_everything_and_writes_nothing() -> None:
    scene = Scene()
    told = scene.capped(dry_run=True)
    assert (told.code, told.applied, told.changed) == (OutcomeCode.WOULD, False, False)
    assert {each.field for each in told.differences} >= {"spec.priority", "epp.yaml: featureGates"}
    assert scene.cluster.writes == []


def test_a_short_time_at_the_cap_or_with_room_changes_nothing() -> None:
    scene = Scene()
    assert scene.after(29, a_decision(short=1)).code is OutcomeCode.LEFT
    assert scene.after(299, a_decision()).code is OutcomeCode.LEFT
    assert scene.cluster.writes == []
    scene.capped()
    scene.after(299, a_decision())
    assert scene.priority() == -10


def test_a_restart_of_the_controller_forgets_nothing() -> None:
    scene = Scene()
    scene.capped()
    scene.restart()
    assert scene.capped().code is OutcomeCode.SAME
    scene.restart()
    scene.room()
    assert (scene.priority(), scene.text()) == (0, ROUTER)


def test_with_room_nothing_is_asked_of_the_cluster_again_and_again() -> None:
    scene = Scene()
    scene.room()
    calls = len(scene.cluster.calls)
    scene.room()
    assert len(scene.cluster.calls) == calls


def test_missing_metrics_neither_make_nor_put_back() -> None:
    scene = Scene()
    scene.capped()
    blind = a_decision(conditions=(Condition(type="MetricsAvailable", status=False, reason="MetricsStale"),))
    scene.after(1000, blind)
    assert scene.priority() == -10


def test_what_people_change_meanwhile_stays() -> None:
    scene = Scene()
    scene.capped()
    scene.api.patch(INFERENCE_OBJECTIVES, "prod", "batch", {"spec": {"priority": 7}})
    edited = yaml.safe_load(scene.text())
    edited["flowControl"]["maxRequests"] = "999"
    edited["plugins"].append({"type": "random-picker"})
    scene.api.patch(CONFIG_MAPS, "prod", "llama-epp", {"data": {"epp.yaml": yaml.safe_dump(edited)}})
    assert "stays at priority 7" in scene.capped().message
    back = scene.room()
    found = yaml.safe_load(scene.text())
    assert scene.priority() == 7
    assert found["flowControl"] == {"maxRequests": "999"}
    assert found["plugins"][1]["parameters"] == {"queueDepthThreshold": 5, "kvCacheUtilThreshold": 0.9}
    assert found["plugins"][2] == {"type": "random-picker"}
    assert "featureGates" not in found
    assert "flowControl.maxRequests" in back.message
    assert scene.room().code in {OutcomeCode.LEFT, OutcomeCode.SAME}


def test_options_that_change_at_the_cap_keep_the_first_former_values() -> None:
    scene = Scene()
    scene.capped()
    scene.options["services"] = [SERVICE | {"priorities": {"batch": -5}, "settings": {"max_requests": 50}}]
    scene.restart()
    scene.capped()
    assert scene.priority() == -5
    assert yaml.safe_load(scene.text())["flowControl"] == {"maxRequests": "50"}
    scene.room()
    assert (scene.priority(), scene.text()) == (0, ROUTER)


def test_the_picker_is_restarted_only_where_that_is_asked_for_and_once_each_way() -> None:
    scene = Scene(an_objective(), a_config_map(), a_deployment(), deployment="llama-epp")

    def started_for() -> str:
        path = ("spec", "template", "metadata", "annotations", "fleetplan.dev/configuration")
        return str(at(scene.api.get(DEPLOYMENTS, "prod", "llama-epp"), *path))

    scene.capped()
    first = started_for()
    version = scene.api.get(DEPLOYMENTS, "prod", "llama-epp")["metadata"]["resourceVersion"]
    scene.capped()
    assert scene.api.get(DEPLOYMENTS, "prod", "llama-epp")["metadata"]["resourceVersion"] == version
    scene.room()
    assert started_for() not in {first, "None"}
    assert annotations_of(scene.api.get(CONFIG_MAPS, "prod", "llama-epp")) == {}


def test_a_crash_between_text_and_restart_is_made_good_by_the_next_controller() -> None:
    scene = Scene(an_objective(), a_config_map(), a_deployment(), deployment="llama-epp")
    scene.capped()
    scene.cluster.denied = {("patch", "deployments")}
    assert scene.room().code is OutcomeCode.DENIED
    assert scene.text() == ROUTER
    scene.cluster.denied = set()
    scene.restart()
    done = scene.room()
    assert any("spec.template" in each.field for each in done.differences)
    assert annotations_of(scene.api.get(CONFIG_MAPS, "prod", "llama-epp")) == {}


def test_a_denial_names_the_rule_and_does_not_stop_the_rest() -> None:
    scene = Scene()
    scene.cluster.denied = {("patch", "inferenceobjectives")}
    found = scene.capped()
    assert (found.code, found.applied, found.changed) == (OutcomeCode.DENIED, False, True)
    assert 'resources: ["inferenceobjectives"], verbs: ["patch"]' in found.message
    assert "flowControl" in scene.text()


def test_a_write_without_an_answer_is_unknown_and_read_again_before_the_next() -> None:
    scene = Scene(config_map=None, settings={})

    def silent(call: Call) -> Answer | None:
        if call.method != "PATCH":
            return None
        scene.cluster.before = lambda _: None
        scene.cluster.call(call)
        raise ClusterFault(Trouble.TIMEOUT, "no answer")

    scene.cluster.before = silent
    assert scene.capped().code is OutcomeCode.UNKNOWN
    assert scene.capped().code is OutcomeCode.SAME
    assert len(scene.cluster.writes) == 1
    scene.room()
    assert scene.priority() == 0


@pytest.mark.parametrize(
    ("method", "trouble", "code"),
    [
        ("GET", Trouble.UNAUTHENTICATED, OutcomeCode.DENIED),
        ("GET", Trouble.CREDENTIALS, OutcomeCode.AWAY),
        ("GET", Trouble.TIMEOUT, OutcomeCode.AWAY),
        ("PATCH", Trouble.GARBLED, OutcomeCode.UNKNOWN),
        ("PATCH", Trouble.BUSY, OutcomeCode.UNKNOWN),
    ],
)
def test_a_fault_means_what_it_means_to_other_actuators(
    method: str, trouble: Trouble, code: OutcomeCode
) -> None:
    scene = Scene(config_map=None, settings={})

    def faulty(call: Call) -> Answer | None:
        if call.method == method:
            raise ClusterFault(trouble, "not done")
        return None

    scene.cluster.before = faulty
    found = scene.capped()
    assert (found.code, found.applied, found.changed) == (code, False, False)


def test_the_earlier_group_of_objectives_is_found_too() -> None:
    objective = an_objective(apiVersion="inference.networking.x-k8s.io/v1alpha2", priority=None)
    served = [kinds.EARLIER_INFERENCE_OBJECTIVES, CONFIG_MAPS]
    scene = Scene(config_map=None, settings={})
    scene.cluster = MemoryCluster([objective], served=served)
    scene.restart()
    scene.capped()
    spec = scene.api.get(kinds.EARLIER_INFERENCE_OBJECTIVES, "prod", "batch")["spec"]
    assert spec["priority"] == -10
    scene.room()
    spec = scene.api.get(kinds.EARLIER_INFERENCE_OBJECTIVES, "prod", "batch")["spec"]
    assert "priority" not in spec


@pytest.mark.parametrize("note", ["", "{", "[]", '{"after": [1]}', '{"digest": "x"}', '{"edits": [1], "key": "k", "text": "t", "digest": "d"}'])  # fmt: skip
def test_annotations_that_cannot_be_ours_do_no_harm(note: str) -> None:
    objective, config_map = an_objective(), a_config_map()
    objective["metadata"]["annotations"] = {"fleetplan.dev/former-priority": note}
    config_map["metadata"]["annotations"] = {"fleetplan.dev/former-configuration": note}
    scene = Scene(objective, config_map)
    scene.room()
    assert (scene.priority(), scene.text()) == (0, ROUTER)
    scene.capped()


def test_release_puts_back_at_once() -> None:
    scene = Scene()
    scene.capped()
    outcomes = scene.epp.release([a_decision().variant], dry_run=False)
    assert [each.changed for each in outcomes] == [True]
    assert (scene.priority(), scene.text()) == (0, ROUTER)
    assert scene.epp.release([a_decision().variant], dry_run=False) == []


def test_services_of_others_are_left() -> None:
    scene = Scene()
    decision = a_decision(short=1)
    other = Decision(variant=decision.variant.but(model="qwen"), desired=1, reason="Held", facts={SHORT: 1})
    assert scene.after(60, other).code is OutcomeCode.LEFT
    assert scene.cluster.calls == []


class TestText:
    def test_inline_thresholds_stay_inline(self) -> None:
        text, edits = at_cap(INLINE, CapSettings(kv_usage=0.7))
        found = yaml.safe_load(text)
        assert found["saturationDetector"] == {"queueDepthThreshold": 1, "kvCacheUtilThreshold": 0.7}
        back, kept = put_back(text, edits)
        assert (yaml.safe_load(back), kept) == (yaml.safe_load(INLINE), ())

    def test_a_detector_is_added_where_the_version_has_it_by_default(self) -> None:
        bare = ROUTER.replace("  - {type: utilization-detector, parameters: {queueDepthThreshold: 5, kvCacheUtilThreshold: 0.9}}\n", "")  # fmt: skip
        text, edits = at_cap(bare, CapSettings())
        assert {"type": "utilization-detector", "parameters": {"queueDepthThreshold": 1}} in yaml.safe_load(text)["plugins"]  # fmt: skip
        assert yaml.safe_load(put_back(text, edits)[0]) == yaml.safe_load(bare)

    def test_what_is_so_already_is_no_change(self) -> None:
        text, _ = at_cap(ROUTER, CapSettings())
        assert at_cap(text, CapSettings()) == (text, ())

    def test_what_anchors_share_is_changed_in_one_place_alone(self) -> None:
        shared = ROUTER.replace("{queueDepthThreshold: 5, kvCacheUtilThreshold: 0.9}", "&p {queueDepthThreshold: 5}").replace(
            "- type: queue-scorer", "- {type: queue-scorer, parameters: &q {queueDepthThreshold: 5}}").replace("&p {queueDepthThreshold: 5}", "*q")  # fmt: skip
        found = yaml.safe_load(at_cap(shared, CapSettings())[0])["plugins"]
        assert [each["parameters"]["queueDepthThreshold"] for each in found] == [5, 1]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (INLINE.replace("saturationDetector: {queueDepthThreshold: 5}\n", ""), "names no saturation detector"),
            (ROUTER.replace("type: utilization-detector", "{name: utilization-detector, type: concurrency-detector").replace("}}\n", "}}}\n"), "no YAML"),
            (ROUTER + "saturationDetector: {pluginRef: queue-scorer}\n", "whose thresholds are not"),
            ("kind: Other\n", "no EndpointPickerConfig"),
            ("a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{i}: &c{i} [*{'b' if i == 0 else f'c{i - 1}'}, *{'b' if i == 0 else f'c{i - 1}'}]\n" for i in range(30)), "unfold"),
            ("[" * 5000, "no YAML"),
            ("kind: EndpointPickerConfig\nplugins: 3\n", "plugins is no list"),
            ("x" * 70_000, "longer than"),
        ],
    )  # fmt: skip
    def test_what_is_not_understood_is_not_changed(self, text: str, said: str) -> None:
        with pytest.raises(NotUnderstoodError, match=said):
            at_cap(text, CapSettings())

    @pytest.mark.parametrize(
        ("data", "key", "said"),
        [
            ({"a": ROUTER, "b": ROUTER}, None, "keys a, b"),
            ({"a": "x: 1"}, None, "no key holds one"),
            ({"a": ROUTER}, "b", "there are: a"),
        ],
    )
    def test_the_key_must_be_clear(self, data: dict[str, str], key: str | None, said: str) -> None:
        with pytest.raises(NotUnderstoodError, match=said):
            configuration_in(data, key)


def test_everything_that_is_wrong_with_options_is_told_at_once() -> None:
    connections = Connections(clock=FakeClock(), apis=(Api(MemoryCluster(), FakeClock()),))
    wrong = {
        "services": [
            {"service": "nowhere"},
            {"service": "a/b"},
            {"service": "a/c", "priorities": {"x": 2**40}},
        ],
        "after_s": 0,
    }
    with pytest.raises(ConfigurationError) as raised:
        ACTUATORS.get("epp")(wrong, connections)
    assert len(raised.value.findings) == 4
    with pytest.raises(ConfigurationError, match="'away'"):
        ACTUATORS.get("epp")({"services": [SERVICE | {"cluster": "away"}]}, connections)
