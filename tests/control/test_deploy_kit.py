"""The deploy kit against the code: its settings are read, its rules are those that are needed, its series are exported."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from models.controller import ControllerSettings
from planner.control.actuators import ACTUATORS
from planner.control.collectors.names import ENGINE_MEASURES, spellings
from planner.control.running.checking_result import Verdict
from planner.control.running.checking_rules import needs_of
from planner.control.running.checking_scalers import checked_hpas, checked_scaled_objects
from planner.control.running.configuring import configured
from planner.control.running.layering import Layer, file_layer
from planner.control.running.live import LIVE
from planner.control.running.metering import _HELP, _PREFIX
from planner.scenario.tree import Complaints
from tests.kustomizing import render
from tests.page_servers import served

KIT: Final = Path(__file__).parents[2] / "deploy"
HOME: Final = "fleetplan-system"
OVERLAYS: Final = ("dry-run", "acting")
CORE: Final = {"v1", "apps/v1", "autoscaling/v2", "policy/v1", "rbac.authorization.k8s.io/v1", "networking.k8s.io/v1", "apiextensions.k8s.io/v1"}  # fmt: skip
Pair = tuple[str, str, str]


def documents(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def manifests() -> Iterator[tuple[Path, dict[str, Any]]]:
    for path in sorted(KIT.rglob("*.yaml")):
        for each in documents(path):
            if "kind" in each:
                yield path.relative_to(KIT), each


@cache
def rendered(folder: str) -> tuple[dict[str, Any], ...]:
    return tuple(render(KIT / folder))


def settings_of(path: str) -> ControllerSettings:
    complaints = Complaints()
    layer = file_layer(KIT / path, complaints)
    assert isinstance(layer, Layer), complaints.findings
    return configured([layer], complaints).settings


def pairs_of(roles: Iterable[Mapping[str, Any]]) -> set[Pair]:
    return {
        pair
        for role in roles
        if role["kind"] in {"ClusterRole", "Role"}
        for rule in role["rules"]
        for pair in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def needed(settings: ControllerSettings) -> set[Pair]:
    return {
        (need.rule.kind.group, need.rule.resource, need.rule.verb) for need in needs_of(settings, home=HOME)
    }


def test_every_manifest_is_valid_for_old_and_new_clusters() -> None:
    looked = 0
    for path, each in manifests():
        if each.get("apiVersion") in CORE:
            looked += 1
            for version in ("1.25", "1.31"):
                try:
                    kubernetes_validate.validate(each, version, strict=True)
                except kubernetes_validate.ValidationError as fault:
                    pytest.fail(f"{path}: {each['kind']}: {fault.message}")
    assert looked > 25


@pytest.mark.parametrize("folder", ["overlays/dry-run", "overlays/acting", "monitoring"])
def test_overlays_render_and_hold_each_object_once(folder: str) -> None:
    found = rendered(folder)
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)
    everywhere = {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
    assert {space for kind, space, _ in names if kind not in everywhere} == {HOME}
    for each in found:
        if each["apiVersion"] in CORE:
            kubernetes_validate.validate(each, "1.31", strict=True)


@pytest.mark.parametrize("folder", ["overlays/dry-run", "overlays/acting", "monitoring"])
def test_kustomize_renders_the_same(folder: str) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl, which holds kustomize, is not installed")
    asked = subprocess.run([kubectl, "version", "--client", "-o", "json"], capture_output=True, check=True)
    version = json.loads(asked.stdout)
    if "kustomizeVersion" not in version:
        pytest.skip("this kubectl holds a kustomize without components (before 1.24)")
    done = subprocess.run(
        [kubectl, "kustomize", str(KIT / folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

    def plain(things: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Any]:
        """By kind and name, without the digests of generated names, which are made in two ways."""
        text = re.sub(r"(fleetplan-start)-[a-z0-9]{10}", r"\1", json.dumps(list(things)))
        return {(each["kind"], each["metadata"]["name"]): each for each in json.loads(text)}

    ours, theirs = plain(rendered(folder)), plain(yaml.safe_load_all(done.stdout))
    assert ours.keys() == theirs.keys()
    for key, each in theirs.items():
        mine = ours[key]
        mine["metadata"] = {name: value for name, value in mine["metadata"].items() if value}
        assert mine == each, key


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_pod_runs_what_the_settings_say(overlay: str) -> None:
    found = {(each["kind"], each["metadata"]["name"]): each for each in rendered(f"overlays/{overlay}")}
    pod = found["Deployment", "fleetplan-controller"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
    start = found["ConfigMap", volumes["start"]["configMap"]["name"]]
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert container["args"][-1] == f"{mounted['start']}/controller.yaml"
    settings = ControllerSettings.model_validate(yaml.safe_load(start["data"]["controller.yaml"]))
    assert settings.act is (overlay == "acting")
    assert str(settings.records.folder) == mounted["records"]
    assert settings.server.port == container["ports"][0]["containerPort"]
    assert found["Service", "fleetplan-controller"]["spec"]["ports"][0]["port"] == settings.server.port
    assert settings.live is not None
    assert settings.live.key in found["ConfigMap", settings.live.name]["data"]
    assert pod["spec"]["terminationGracePeriodSeconds"] > settings.lease.lease_s
    for selector in ("Service", "PodDisruptionBudget", "NetworkPolicy"):
        spec = found[selector, "fleetplan-controller"]["spec"]
        labels = spec.get("podSelector", spec.get("selector", {}))
        assert labels.get("matchLabels", labels).items() <= pod["metadata"]["labels"].items(), selector
    assert all(each.name in ACTUATORS for each in settings.actuators)


def test_the_pod_is_as_restricted_as_its_namespace_asks() -> None:
    pod = documents(KIT / "base/deployment.yaml")[0]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
    assert {"startupProbe", "livenessProbe", "readinessProbe"} < container.keys()
    dockerfile = (KIT / "Dockerfile").read_text()
    assert f"USER {pod['securityContext']['runAsUser']}:" in dockerfile
    images = re.findall(r"^FROM (\S+)", dockerfile, flags=re.M)
    assert all(re.search(r":\d+\.\d+\.\d+-", each) for each in images), images
    written = dict(re.findall(r"(\w+)=(/tmp\S*)", dockerfile))
    assert {"HOME", "NUMBA_CACHE_DIR"} <= written.keys()


def test_live_settings_hold_nothing_but_what_is_read_live() -> None:
    stated = yaml.safe_load((KIT / "base/rules.yaml").read_text())
    assert stated.keys() <= LIVE
    settings_of("base/rules.yaml")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_rules_are_enough_and_not_more(overlay: str) -> None:
    path = "base/controller.yaml" if overlay == "dry-run" else f"overlays/{overlay}/controller.yaml"
    given, wanted = pairs_of(rendered(f"overlays/{overlay}")), needed(settings_of(path))
    assert (wanted - given, given - wanted) == (set(), set())


def ways() -> list[str]:
    """Folders with rights of the controller; what has an account of its own is of other commands."""
    return sorted(
        path.parent.name
        for path in (KIT / "ways").glob("*/rbac.yaml")
        if not any(each["kind"] == "ServiceAccount" for each in documents(path))
    )


@pytest.mark.parametrize("way", ways())
def test_the_rules_of_a_way_are_those_of_its_actuator(way: str) -> None:
    base = needed(settings_of("base/controller.yaml"))
    if way == "acting":
        acting = needed(ControllerSettings(act=True, actuators=()))
    else:
        service = {"service": "a/b", "priorities": {"c": 1}, "config_map": "d", "deployment": "e"}
        options = {"services": [service]} if way == "epp" else {}
        settings = {"actuators": [{"name": way, "options": options}], "live": {"name": "l"}}
        acting = needed(ControllerSettings.model_validate(settings))
        assert way in ACTUATORS
    given = pairs_of(documents(KIT / "ways" / way / "rbac.yaml"))
    assert acting - base <= given <= acting


def test_samples_pass_the_check_of_scalers() -> None:
    hpas, scaled = documents(KIT / "samples/hpa.yaml"), documents(KIT / "samples/scaledobject.yaml")
    told = [*checked_hpas(hpas), *checked_scaled_objects(scaled)]
    assert [each.verdict for each in told] == [Verdict.GOOD, Verdict.GOOD], told


def exported() -> set[str]:
    """Names of every series that the controller or an engine has."""
    source = (KIT.parent / "planner/control/actuators/published.py").read_text()
    names = set(re.findall(r'"((?:wva|fleetplan)_\w+)"', source)) | {f"{_PREFIX}{name}" for name in _HELP}
    names |= {f"{name}_total" for name in ("wva_replica_scaling", "wva_decisions_limited")}
    series = {name for one in ENGINE_MEASURES for way in one.ways for name in way.series}
    return names | {spelled for name in series for spelled in spellings(name)}


def expressions() -> list[tuple[str, str]]:
    """Every PromQL expression of the kit with its place."""
    dashboard = json.loads((KIT / "monitoring/dashboard.json").read_text())
    found = [
        (f"dashboard: {panel['title']}", target["expr"])
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]
    groups = documents(KIT / "monitoring/alerts.yaml")[0]["spec"]["groups"]
    found += [(rule["alert"], rule["expr"]) for group in groups for rule in group["rules"]]
    for trigger in documents(KIT / "samples/scaledobject.yaml")[0]["spec"]["triggers"]:
        found.append(("scaledobject", trigger["metadata"]["query"]))
    adapter = yaml.safe_load((KIT / "monitoring/prometheus-adapter.yaml").read_text())
    found += [("adapter", rule["seriesQuery"]) for rule in adapter["rules"]["external"]]
    return found


def test_every_series_that_is_asked_for_is_exported() -> None:
    known = exported()
    asked = {
        name for _, text in expressions() for name in re.findall(r"\b(?:wva_|fleetplan_|vllm:)\w+", text)
    }
    assert len(asked) > 20
    # A histogram that is read by its sum has buckets too.
    assert {name for name in asked if re.sub("_bucket$", "_sum", name) not in known} == set()


def promtool(*words: object) -> subprocess.CompletedProcess[str]:
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is not installed")
    return subprocess.run([path, *map(str, words)], capture_output=True, text=True, check=False)


def test_every_expression_is_promql(tmp_path: Path) -> None:
    rules = [
        {"record": f"r:{place}", "expr": text.replace("$variant", ".*").replace("$namespace", ".*")}
        for place, (_, text) in enumerate(expressions())
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


_ONE: Final = '{variant_name="v",exported_namespace="n",instance="a"}'
_TWO: Final = '{variant_name="v",exported_namespace="n",instance="b"}'
_HEALTHY: Final = {
    "fleetplan_controller_leader": "1x60",
    "fleetplan_controller_last_cycle_timestamp_seconds": "0+60x60",
    "fleetplan_controller_last_complete_timestamp_seconds": "0+60x60",
    f"wva_desired_replicas{_ONE}": "2x60",
    f"wva_current_replicas{_ONE}": "2x60",
    f"wva_saturation_metrics_up{_ONE}": "1x60",
    f"wva_decisions_limited_total{_ONE}": "0x60",
    'fleetplan_controller_outcomes_total{actuator="hpa",code="denied"}': "0x60",
    'fleetplan_controller_outcomes_total{actuator="hpa",code="done"}': "0+1x60",
    "fleetplan_controller_configuration_refused_total": "0x60",
}
_SICK: Final[Mapping[str, Mapping[str, str]]] = {
    "FleetplanNobodyLeads": {"fleetplan_controller_leader": "0x60"},
    "FleetplanTwoLead": {f"wva_desired_replicas{_TWO}": "2x60"},
    "FleetplanCyclesStopped": {"fleetplan_controller_last_cycle_timestamp_seconds": "0x60"},
    "FleetplanSourcesSilent": {"fleetplan_controller_last_complete_timestamp_seconds": "0x60"},
    "FleetplanVariantWithoutMetrics": {f"wva_saturation_metrics_up{_ONE}": "0x60"},
    "FleetplanWishNotFollowed": {f"wva_current_replicas{_ONE}": "1x60"},
    "FleetplanAtTheCap": {f"wva_decisions_limited_total{_ONE}": "0+1x60"},
    "FleetplanThrashing": {
        f"wva_desired_replicas{_ONE}": "1 3 " * 30,
        f"wva_current_replicas{_ONE}": "1 3 " * 30,
    },
    "FleetplanWritesFail": {'fleetplan_controller_outcomes_total{actuator="hpa",code="denied"}': "0+1x60"},
    "FleetplanConfigurationRefused": {"fleetplan_controller_configuration_refused_total": "0x40 1x19"},
}


def fired(
    series: Mapping[str, str], alerts: Mapping[str, int], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Whether exactly these alerts fire after 50 minutes of these series, as promtool runs them."""
    spec = documents(KIT / "monitoring/alerts.yaml")[0]["spec"]
    for rule in (rule for group in spec["groups"] for rule in group["rules"]):
        # Texts and labels are looked at elsewhere: what is tested here is when each fires.
        rule["annotations"], rule["expr"], rule["labels"] = {}, f"count({rule['expr']}) * 0 + 1", {}
    (folder / "rules.yaml").write_text(yaml.safe_dump(spec))
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "alert_rule_test": [
                {"eval_time": "50m", "alertname": name, "exp_alerts": [{}] * count}
                for name, count in alerts.items()
            ],
        }
    ]
    (folder / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests}))
    return promtool("test", "rules", folder / "tests.yaml")


def test_no_alert_fires_where_all_is_well(tmp_path: Path) -> None:
    done = fired(_HEALTHY, dict.fromkeys(_SICK, 0), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", sorted(_SICK))
def test_each_alert_fires_when_it_should_and_alone(alert: str, tmp_path: Path) -> None:
    done = fired({**_HEALTHY, **_SICK[alert]}, {name: int(name == alert) for name in _SICK}, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested_and_says_what_to_do() -> None:
    rules = documents(KIT / "monitoring/alerts.yaml")[0]["spec"]["groups"][0]["rules"]
    assert {rule["alert"] for rule in rules} == _SICK.keys()
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules)


@pytest.mark.parametrize("busy", [True, False])
def test_the_engine_of_the_sample_waits_until_nothing_runs(busy: bool) -> None:
    container = documents(KIT / "samples/engine.yaml")[0]["spec"]["template"]["spec"]["containers"][0]
    command = [sys.executable, *container["lifecycle"]["preStop"]["exec"]["command"][1:]]
    page = f'vllm:num_requests_running{{model_name="m"}} {int(busy)}.0\nvllm:num_requests_waiting{{model_name="m"}} 0.0\n'
    with served() as server:
        server.pages["/metrics"] = page
        limits = {"DRAIN_S": "1.5" if busy else "60", "ROUTERS_NOTICE_S": "0"}
        environment = {"METRICS_URL": f"{server.url}/metrics"} | limits
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=30
        )
    assert (done.returncode, done.stderr) == (0, "")
    # Idle: three quiet looks are enough; busy: it looks until its time is over.
    assert len(server.asked) == (2 if busy else 3)
