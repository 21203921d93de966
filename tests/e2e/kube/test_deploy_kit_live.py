"""The deploy kit on a real API server with RBAC: what it holds is taken, its service account may do its work and nothing else."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, Final

import pytest
import yaml

from models.controller import ControllerSettings
from models.observation import EngineObservation, Observation, VariantObservation
from planner.clock import SystemClock
from planner.control.cluster import Api, ClusterFault, ClusterOptions, Trouble, connect, follow
from planner.control.cluster.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    EARLIER_INFERENCE_OBJECTIVES,
    EARLIER_INFERENCE_POOLS,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    LEADER_WORKER_SETS,
    NAMESPACES,
    PODS,
    SCALED_OBJECTS,
    VARIANT_AUTOSCALINGS,
    Kind,
)
from planner.control.cluster.reading import is_ready
from planner.control.deciding import Decided, DecidingState
from planner.control.protocols import SHORT, ClusterReading, Decision, MetricsReading
from planner.control.running.checking import checked
from planner.control.running.checking_result import Area, Verdict
from planner.control.running.checking_rules import needs_of
from planner.control.running.configuring import configured
from planner.control.running.layering import file_layer, flags_layer
from planner.control.running.opening import Opening, open_controller
from planner.control.running.triggering import WATCHED
from planner.scenario.tree import Complaints
from tests.e2e.kube.aggregated import install_crd
from tests.e2e.kube.control_plane import KINDS, ControlPlane, kube_test, wait_until
from tests.e2e.kube.kubelet import Kubelets
from tests.kube_objects import H100, notes
from tests.loopback import free_port

pytestmark = kube_test()

KIT: Final = Path(__file__).parents[3] / "deploy"
HOME, SERVING, ACCOUNT = "fleetplan-system", "serving", "fleetplan-controller"
CLOCK: Final = SystemClock()
Pair = tuple[str, str, str]
EPP: Final = {
    "services": [
        {"service": f"{SERVING}/llama", "priorities": {"batch": -1}, "config_map": "epp", "deployment": "epp"}
    ],
    "after_s": 0.001,
}
WAYS: Final = ("draining", "gauge", "scale", "hpa", "keda", "variantautoscaling", "epp")


def documents(*paths: str) -> list[dict[str, Any]]:
    return [
        each
        for path in paths
        for each in yaml.safe_load_all((KIT / path).read_text())
        if each and "kind" in each
    ]


@dataclass(frozen=True)
class Kit:
    """A cluster with the kit, and its service account."""

    plane: ControlPlane
    kubeconfig: Path

    @property
    def api(self) -> Api:
        """The API as the controller's service account, that counts its calls anew."""
        return connect(ClusterOptions(kubeconfig=self.kubeconfig, timeout_s=10, within_s=20), CLOCK)

    def settings(self, *actuators: str) -> ControllerSettings:
        """The acting settings of the kit, acting in these ways."""
        return configured(self.layers(*actuators)).settings

    def layers(self, *actuators: str) -> Sequence[Any]:
        complaints = Complaints()
        start = file_layer(KIT / "overlays/acting/controller.yaml", complaints)
        assert start is not None
        # This API server does not end pods of low cost first, so pods leave by a readiness gate.
        told = {"epp": EPP, "draining": {"gates": True, "settle_s": 0}}
        options = [{"name": each, "options": told.get(each, {})} for each in actuators]
        said = [
            f"actuators={json.dumps(options)}", "records={folder: null}",
            'sources=[{name: files, options: {paths: ["/nowhere"]}}]',
        ]  # fmt: skip
        found = [start, flags_layer(said, complaints, [])]
        assert complaints.findings == []
        return found


def roles() -> list[dict[str, Any]]:
    """Roles and bindings of the controller; what has an account of its own is of other commands."""
    ways = [documents(str(path.relative_to(KIT))) for path in sorted(KIT.glob("ways/*/rbac.yaml"))]
    ours = [way for way in ways if not any(each["kind"] == "ServiceAccount" for each in way)]
    return [*documents("base/rbac.yaml"), *(each for way in ours for each in way)]


def pairs_of(role: Mapping[str, Any]) -> Iterator[Pair]:
    for rule in role["rules"]:
        yield from itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    """A control plane of its own, since the kit's CRD is another than the one of other tests."""
    binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
    with ControlPlane(tmp_path_factory.mktemp("kit"), binaries, scheduler=True) as plane:
        objectives = replace(INFERENCE_OBJECTIVES, versions=("v1alpha2",))
        others = (objectives, EARLIER_INFERENCE_OBJECTIVES, INFERENCE_POOLS, EARLIER_INFERENCE_POOLS)
        for kind in (SCALED_OBJECTS, LEADER_WORKER_SETS, *others):
            install_crd(plane, kind)
        base = [f"base/{name}.yaml" for name in ("namespace", "variantautoscalings", "service-account", "service", "deployment", "network-policy")]  # fmt: skip
        plane.install([*documents(*base), *roles()], home=HOME)
        wait_until(lambda: plane.admin.serves(VARIANT_AUTOSCALINGS), what="the kit's CRD")
        wait_until(lambda: plane.admin.list(VARIANT_AUTOSCALINGS) is not None, what="the kit's CRD")
        plane.add_node("gpu", labels=H100, **{"nvidia.com/gpu": 8})
        with Kubelets(plane.admin):
            yield Kit(plane, plane.account(HOME, ACCOUNT))


@pytest.fixture(scope="module")
def fleet(kit: Kit) -> Kit:
    """A variant of every scaler, something that routes, and an endpoint picker."""
    admin = kit.plane.admin
    admin.create(NAMESPACES, "", {"metadata": {"name": SERVING}})
    gates = [{"conditionType": "fleetplan.dev/serving"}]
    for name, kind in (
        ("va", "Deployment"),
        ("so", "StatefulSet"),
        ("hpa", "Deployment"),
        ("epp", "Deployment"),
    ):
        labels = {"app": name, "fleetplan.dev/serving": "true", "fleetplan.dev/gated": "true"}
        container = {"name": "e", "image": "vllm/vllm-openai:v0.11.0"}
        if name != "epp":
            container["resources"] = {"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}  # type: ignore[assignment]
        spec = {
            "replicas": 2 if name == "va" else 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [container], "readinessGates": gates},
            },
        } | ({"serviceName": name} if kind == "StatefulSet" else {})
        admin.create(KINDS[kind], SERVING, {"metadata": {"name": name}, "spec": spec})
    service = {"selector": {"fleetplan.dev/serving": "true"}, "ports": [{"port": 80}]}
    admin.create(KINDS["Service"], SERVING, {"metadata": {"name": "llama"}, "spec": service})
    meta = {"annotations": notes("llama")}
    target = {"scaleTargetRef": {"kind": "StatefulSet", "name": "so"}, "triggers": []}
    admin.create(SCALED_OBJECTS, SERVING, {"metadata": {"name": "so", **meta}, "spec": target})
    hpa = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "hpa"}, "maxReplicas": 4}
    admin.create(
        KINDS["HorizontalPodAutoscaler"], SERVING, {"metadata": {"name": "hpa", **meta}, "spec": hpa}
    )
    sample = documents("samples/variantautoscaling.yaml")[0]
    sample["metadata"]["name"], sample["spec"]["modelID"] = "va", "llama"
    sample["spec"]["scaleTargetRef"]["name"] = "va"
    admin.apply(VARIANT_AUTOSCALINGS, SERVING, sample)
    objective = {"metadata": {"name": "batch"}, "spec": {"priority": 0, "poolRef": {"name": "p"}}}
    admin.create(INFERENCE_OBJECTIVES, SERVING, objective)
    text = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins: []\nschedulingProfiles: []\n"
    admin.create(KINDS["ConfigMap"], SERVING, {"metadata": {"name": "epp"}, "data": {"epp.yaml": text}})
    wait_until(lambda: len(running(kit)) == 4, what="pods of the fleet")
    return kit


def running(kit: Kit) -> list[str]:
    pods = kit.plane.admin.list(PODS, SERVING).items
    ready = [each for each in pods if each["status"].get("phase") == "Running" and each["metadata"]["labels"]["app"] != "epp"]  # fmt: skip
    return [each["metadata"]["name"] for each in ready]


def ready(kit: Kit, app: str) -> list[str]:
    pods = kit.plane.admin.list(PODS, SERVING, labels=f"app={app}").items
    return [each["metadata"]["name"] for each in pods if is_ready(each)]


class Idle:
    """Engines of which nothing runs, for every ready pod."""

    def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
        engines = tuple(
            EngineObservation(instance=pod, pod=pod, namespace=one.namespace, variant=one.name, model=one.model, age_s=1.0, running=0, waiting=0, kv_usage=0.0)
            for one in variants
            for pod in one.pods
        )  # fmt: skip
        return MetricsReading(engines=engines)


@dataclass
class Wishing:
    """Decides what the test says, and that more was asked for."""

    counts: Mapping[str, int]

    def decide(
        self, observation: Observation, *, state: DecidingState, settings: ControllerSettings, now_s: float
    ) -> tuple[Decided, DecidingState]:
        del settings, now_s
        wished = tuple(
            Decision(variant=one, desired=self.counts.get(one.name, one.wanted or 0), reason="Wished", facts={SHORT: 1})
            for one in observation.variants
        )  # fmt: skip
        return Decided(decisions=wished), state

    def revalidate(self, decided: Decided, fresh: ClusterReading) -> Decided:
        del fresh
        return decided


def test_what_it_holds_is_taken_by_the_api_server(kit: Kit) -> None:
    """Custom objects by the schema of the kit's own CRD."""
    admin = kit.plane.admin
    sample = documents("samples/variantautoscaling.yaml")[0]
    made = admin.apply(VARIANT_AUTOSCALINGS, HOME, {**sample, "metadata": {"name": "sample"}}, dry_run=True)
    assert made["spec"]["maxReplicas"] == 10
    for wrong in ({"modelID": ""}, {"variantCost": "-1"}, {"minReplicas": -1}, {"maxReplicas": 0}):
        thing = {"metadata": {"name": "wrong"}, "spec": {**sample["spec"], **wrong}}
        with pytest.raises(ClusterFault) as raised:
            admin.create(VARIANT_AUTOSCALINGS, HOME, thing, dry_run=True)
        assert raised.value.trouble is Trouble.INVALID, wrong
    engine = documents("samples/engine.yaml")[0]
    admin.create(KINDS["Deployment"], HOME, {**engine, "metadata": {"name": "sample"}}, dry_run=True)
    assert admin.find(CUSTOM_RESOURCE_DEFINITIONS, "", "variantautoscalings.llmd.ai") is not None


def test_its_account_may_do_what_cycles_do(fleet: Kit) -> None:
    api = fleet.api
    opening = Opening(
        layers=fleet.layers(*WAYS), clock=CLOCK, apis=(api,), sources={"idle": Idle()}, environ={"POD_NAMESPACE": HOME}
    )  # fmt: skip

    wishing = Wishing({})
    controller = open_controller(replace(opening, deciding=wishing))

    def cycle(**counts: int) -> bool:
        wishing.counts = counts
        record = controller.once()
        assert record is not None
        assert [each.message for each in record.outcomes if "missing rule" in each.message] == []
        assert [each.problem for each in record.findings if "missing rule" in each.problem] == []
        return True

    def wrote_pods() -> bool:
        return any(verb == "patch" and resource == "pods" for verb, resource, _ in api.tally.calls)

    wait_until(lambda: cycle(va=3, so=2, hpa=2) and len(ready(fleet, "va")) == 3, within_s=30, what="growth")
    wait_until(lambda: cycle(va=1, so=1, hpa=1) and wrote_pods(), within_s=30, what="pods that leave")
    controller.end()
    used = {(verb, resource) for verb, resource, _ in api.tally.calls}
    fair = {"ok", "not_found", "conflict", "exists"}
    assert {call: count for call, count in api.tally.calls.items() if call[2] not in fair} == {}
    for verb, resource in (
        ("list", "nodes"), ("update", "leases"), ("create", "events"), ("patch", "variantautoscalings/status"),
        ("patch", "pods"), ("patch", "pods/status"), ("patch", "deployments/scale"), ("patch", "horizontalpodautoscalers"),
        ("patch", "scaledobjects"), ("patch", "inferenceobjectives"), ("patch", "configmaps"), ("patch", "deployments"),
    ):  # fmt: skip
        assert (verb, resource) in used, (verb, resource)
    given = {(verb, resource) for role in roles() if "rules" in role for _, resource, verb in pairs_of(role)}
    asking = {("create", "selfsubjectaccessreviews"), ("get", "version")}
    assert {pair for pair in used if pair[1] not in {"inferencepools"}} - given - asking - _groups(
        used
    ) == set()


def _groups(used: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Questions which versions a group has; anybody may ask them."""
    plurals = {"horizontalpodautoscalers", "inferenceobjectives"}
    return {(verb, resource) for verb, resource in used if verb == "get" and resource in plurals}


def test_its_account_may_watch_what_starts_cycles(fleet: Kit) -> None:
    api = fleet.api
    faults: list[ClusterFault] = []
    seen: set[Kind] = set()
    for kind in WATCHED:
        stop = Event()

        def failed(fault: ClusterFault, stop: Event = stop) -> None:
            faults.append(fault)
            stop.set()

        for _ in follow(api, kind, stop, on_fault=failed):
            seen.add(kind)
            stop.set()
    assert faults == []
    assert seen == set(WATCHED)


def test_it_may_nothing_else(fleet: Kit) -> None:
    api = fleet.api
    attempts = {
        "delete a pod": lambda: api.delete(PODS, SERVING, running(fleet)[0]),
        "read a secret": lambda: api.list(Kind("Secret", "secrets"), HOME),
        "change a role": lambda: api.patch(KINDS["ClusterRole"], "", "fleetplan-reads", {"rules": []}),
        "write a node": lambda: api.patch(KINDS["Node"], "", "gpu", {"spec": {"unschedulable": True}}),
        "create a deployment": lambda: api.create(KINDS["Deployment"], SERVING, {"metadata": {"name": "x"}}),
        "take another lease": lambda: api.get(KINDS["Lease"], HOME, "another"),
        "take a lease elsewhere": lambda: api.create(KINDS["Lease"], SERVING, {"metadata": {"name": "x"}}),
    }
    for what, attempt in attempts.items():
        with pytest.raises(ClusterFault) as raised:
            attempt()
        assert raised.value.trouble is Trouble.DENIED, what
        assert "missing rule" in raised.value.message


def test_each_rule_that_is_taken_away_is_named(fleet: Kit) -> None:
    """And no rule is there that nobody would miss."""
    api, admin = fleet.api, fleet.plane.admin
    needs = needs_of(fleet.settings(*WAYS), home=HOME)
    held = [each for each in roles() if "rules" in each]
    assert [str(need.rule) for need in needs if not api.may(need.rule)] == []
    unmissed = []
    for pair in sorted({pair for role in held for pair in pairs_of(role)}):
        touched = [role for role in held if pair in set(pairs_of(role))]
        for role in touched:
            _write_rules(admin, role, [each for each in role["rules"] for each in _without(each, pair)])
        expected = [
            need for need in needs if (need.rule.kind.group, need.rule.resource, need.rule.verb) == pair
        ]
        if not expected:
            unmissed.append(pair)
        for need in expected:
            wait_until(lambda need=need: not api.may(need.rule), what=f"that {pair} is gone")  # type: ignore[misc]
        for role in touched:
            _write_rules(admin, role, role["rules"])
        for need in expected:
            wait_until(lambda need=need: api.may(need.rule), what=f"that {pair} is back")  # type: ignore[misc]
    assert unmissed == []


def test_the_check_names_what_is_missing_and_is_content_with_the_kit(fleet: Kit) -> None:
    api, admin, settings = (
        fleet.api,
        fleet.plane.admin,
        fleet.settings("draining", "gauge", "variantautoscaling"),
    )
    found = checked(settings, [api], CLOCK, home=HOME)
    assert [
        each for each in found if each.area is Area.PERMISSIONS and each.verdict is not Verdict.GOOD
    ] == []
    role = next(each for each in roles() if each["metadata"]["name"] == "fleetplan-acts-draining")
    pair = ("", "pods", "patch")
    _write_rules(admin, role, [each for each in role["rules"] for each in _without(each, pair)])
    try:
        need = next(each for each in needs_of(settings, home=HOME) if each.rule.kind is PODS and each.rule.verb == "patch" and not each.rule.subresource)  # fmt: skip
        wait_until(lambda: not api.may(need.rule), what="that the rule is gone")
        told = [each for each in checked(settings, [api], CLOCK, home=HOME) if each.subject == "patch pods"]
        assert [(each.verdict, 'resources: ["pods"], verbs: ["patch"]' in each.remedy) for each in told] == [(Verdict.BAD, True)]  # fmt: skip
    finally:
        _write_rules(admin, role, role["rules"])
        wait_until(lambda: api.may(need.rule), what="that the rule is back")


def _without(rule: Mapping[str, Any], pair: Pair) -> Iterator[dict[str, Any]]:
    """The rule as rules that allow the same but for one."""
    for group, resource, verb in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]):
        if (group, resource, verb) != pair:
            yield {**rule, "apiGroups": [group], "resources": [resource], "verbs": [verb]}


def _write_rules(admin: Api, role: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> None:
    kind = KINDS[role["kind"]]
    admin.patch(kind, HOME if kind.namespaced else "", role["metadata"]["name"], {"rules": list(rules)})


def test_the_command_tells_everything_in_one_table(fleet: Kit) -> None:
    """As the pod runs it, with a Prometheus that nobody started."""
    command = [
        str(Path(sys.executable).with_name("fleetplan")), "controller", "check", "--yes", "--json", "--home", HOME,
        "--config", str(KIT / "overlays/acting/controller.yaml"), "--kubeconfig", str(fleet.kubeconfig),
        "--prometheus", f"http://127.0.0.1:{free_port()}", "--set", "records={folder: null}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 3, done.stderr
    found = json.loads(done.stdout)["checks"]
    problems = [(each["area"], each["said"]) for each in found if each["verdict"] == "problem"]
    for said in ("nothing that is decided reaches it", "no API serves them"):
        assert any(area == "scalers" and said in text for area, text in problems), said
    assert {area for area, _ in problems} == {"scalers", "metrics"}
    good = [each["area"] for each in found if each["verdict"] == "good"]
    assert {"cluster", "permissions", "kinds", "variants"} <= set(good)
