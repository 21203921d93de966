"""The check before the first start: each thing that would go wrong is told at once, with what to do, and nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from models.controller import ControllerSettings
from models.observation import VariantObservation
from planner.clock import FakeClock
from planner.control.cluster import Api, ClusterFault, Trouble
from planner.control.cluster.kinds import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, NODES, PODS
from planner.control.cluster.memory import MemoryCluster
from planner.control.cluster.transport import Answer, Call
from planner.control.protocols import MetricsReading
from planner.control.running.checking import checked
from planner.control.running.checking_metrics import checked_sources
from planner.control.running.checking_result import Area, Checked, Verdict
from planner.control.running.checking_rules import needs_of
from planner.control.running.checking_scalers import checked_hpas, checked_scaled_objects
from tests.kube_objects import (
    a_deployment,
    a_namespace,
    a_node,
    a_pod,
    a_replica_set,
    a_scaled_object,
    an_hpa,
)

PAGE = 'vllm:num_requests_running{model_name="llama-8b"} 1\n'


def following(thing: dict[str, Any], **target: Any) -> dict[str, Any]:
    """An HPA that follows the gauge as the sample does."""
    name, namespace = thing["metadata"]["name"], thing["metadata"]["namespace"]
    labels = {"variant_name": name, "exported_namespace": namespace}
    external = {
        "metric": {"name": "wva_desired_replicas", "selector": {"matchLabels": labels}},
        "target": {"type": "AverageValue", "averageValue": "1"} | target,
    }
    thing["spec"]["metrics"] = [{"type": "External", "external": external}]
    return thing


def triggered(**more: Any) -> dict[str, Any]:
    query = more.pop("query", 'wva_desired_replicas{variant_name="llama-so",exported_namespace="prod"}')
    trigger = {
        "type": "prometheus",
        "metadata": {"query": query, "threshold": "1"} | more.pop("metadata", {}),
    } | more
    return a_scaled_object(triggers=[trigger])


FLEET = (a_namespace(), a_node(), a_deployment(), a_replica_set(), following(an_hpa()), a_pod("p", ("ReplicaSet", "llama-5d")))  # fmt: skip


def lines(
    *objects: dict[str, Any],
    denied: set[tuple[str, str]] | None = None,
    before: Any = lambda _: None,
    cluster: MemoryCluster | None = None,
    **settings: Any,
) -> tuple[Checked, ...]:
    clock = FakeClock()
    found = cluster or MemoryCluster(objects or FLEET, denied=denied or set(), before=before)
    made = ControllerSettings.model_validate(settings)
    answer = checked(made, [Api(found, clock)], clock, home="fleetplan-system")
    assert found.writes == []
    return answer


def problems(found: tuple[Checked, ...], area: Area | None = None) -> list[Checked]:
    return [each for each in found if each.verdict is Verdict.BAD and area in {None, each.area}]


def external_metrics(call: Call) -> Answer | None:
    """As an adapter serves them."""
    if call.path != "/apis/external.metrics.k8s.io":
        return None
    return Answer(200, {}, b'{"versions": [{"version": "v1beta1"}]}')


@pytest.fixture
def source(tmp_path: Path) -> dict[str, Any]:
    page = tmp_path / "llama-0.prom"
    page.write_text(PAGE)
    return {"sources": [{"name": "files", "options": {"paths": [str(page)]}}]}


def test_a_cluster_where_all_is_well_has_no_problem_of_its_own(source: dict[str, Any]) -> None:
    found = lines(before=external_metrics, **source)
    assert (
        problems(found, Area.PERMISSIONS)
        == problems(found, Area.SCALERS)
        == problems(found, Area.SETTINGS)
        == []
    )
    assert {each.area for each in found if each.verdict is Verdict.GOOD} >= {Area.CLUSTER, Area.PERMISSIONS, Area.VARIANTS, Area.SCALERS}  # fmt: skip


def test_every_rule_that_is_missing_is_named_with_what_it_is_for() -> None:
    for need in needs_of(ControllerSettings(act=True), home="fleetplan-system"):
        rule = need.rule
        found = lines(denied={(rule.verb, rule.resource)}, act=True)
        told = [each for each in found if each.area is Area.PERMISSIONS and each.verdict is not Verdict.GOOD]
        assert str(rule) in " ".join(each.remedy for each in told), rule
        assert any(need.why in each.said for each in told)


def test_a_rule_without_which_all_else_works_is_no_problem() -> None:
    found = lines(denied={("create", "events")}, act=True)
    assert [each.verdict for each in found if each.subject == "create events"] == [Verdict.NOTE]


def test_a_cluster_that_is_away_is_told_once() -> None:
    def away(_: Call) -> Answer | None:
        raise ClusterFault(Trouble.UNREACHABLE, "nobody listens")

    found = lines(before=away)
    assert [each.said for each in found if each.area is Area.CLUSTER] == ["nobody listens"]
    assert problems(found, Area.PERMISSIONS) == []


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"type": "Value", "value": "1"}, "Value and not AverageValue"),
        ({"averageValue": "2"}, "AverageValue '2' and not 1"),
        ({"averageValue": "500m"}, "'500m' and not 1"),
        ({"averageValue": None}, "not 1"),
    ],
)
def test_an_hpa_with_a_wrong_target_is_told(target: dict[str, Any], said: str) -> None:
    found = list(checked_hpas([following(an_hpa(), **target)]))
    assert said in found[0].said
    assert "AverageValue with 1" in found[0].remedy


def test_an_hpa_that_selects_another_variant_or_no_namespace_is_told() -> None:
    thing = following(an_hpa())
    thing["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchLabels"] = {"variant_name": "llama"}
    found = list(checked_hpas([thing]))
    assert [each.remedy for each in found] == [
        "select variant_name: llama-hpa",
        "select exported_namespace: prod",
    ]


def test_hpas_of_others_and_of_keda_are_not_looked_at() -> None:
    foreign = an_hpa(annotations={})
    kedas = an_hpa(owners=[{"kind": "ScaledObject", "name": "x", "controller": True}])
    assert list(checked_hpas([foreign, kedas])) == []
    assert "nothing that is decided reaches it" in next(checked_hpas([an_hpa()])).said


@pytest.mark.parametrize("value", ["1", "1000m", 1, "1.0"])
def test_one_is_one_however_it_is_written(value: Any) -> None:
    assert [each.verdict for each in checked_hpas([following(an_hpa(), averageValue=value)])] == [
        Verdict.GOOD
    ]


@pytest.mark.parametrize("version", ["v2beta1", "hostile"])
def test_other_forms_of_an_hpa_are_read(version: str) -> None:
    thing = an_hpa()
    labels = {"matchLabels": {"variant_name": "llama-hpa", "namespace": "prod"}}
    old = {"metricName": "wva_desired_replicas", "metricSelector": labels, "targetAverageValue": "1"}
    strange = [3, {"type": "External", "external": 3}, {"type": "External"}]
    thing["spec"]["metrics"] = [{"type": "External", "external": old}] if version == "v2beta1" else strange
    good = [each.verdict for each in checked_hpas([thing])] == [Verdict.GOOD]
    assert good is (version == "v2beta1")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"metricType": "Value"}, "Value and not AverageValue"),
        ({"metadata": {"threshold": "5"}}, "threshold is '5'"),
        ({"metadata": {"activationThreshold": "1"}}, "wakes nothing"),
        ({"query": "wva_desired_replicas"}, "variant_name None"),
        ({"query": 'wva_desired_replicas{variant_name="llama-so",namespace="other"}'}, "is in prod"),
        ({"query": "up"}, "no trigger asks for"),
    ],
)
def test_scaled_objects_are_held_against_the_same(more: dict[str, Any], said: str) -> None:
    found = list(checked_scaled_objects([triggered(**more)]))
    assert said in found[0].said
    assert (found[0].verdict is Verdict.GOOD) is (said == "")


def test_without_an_adapter_hpas_cannot_read_the_gauge() -> None:
    assert "no API serves them" in " ".join(each.said for each in problems(lines(), Area.SCALERS))


def test_kinds_that_actuators_write_must_be_there() -> None:
    bare = [NODES, PODS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS]
    epp = {"name": "epp", "options": {"services": [{"service": "prod/llama", "priorities": {"batch": -1}}]}}
    cluster = MemoryCluster(served=bare)
    found = lines(cluster=cluster, actuators=[{"name": "keda"}, {"name": "variantautoscaling"}, epp])
    said = {each.subject.split()[0] for each in problems(found, Area.KINDS)}
    assert {"scaledobjects.keda.sh", "variantautoscalings.llmd.ai"} < said
    assert any("inferenceobjectives" in each for each in said)
    assert not any("scaledobjects" in each.subject for each in found if each.area is Area.PERMISSIONS)


def test_settings_that_no_plug_in_takes_are_told_with_all_the_rest() -> None:
    found = lines(
        actuators=[{"name": "gauge"}, {"name": "guage"}],
        sources=[{"name": "prometheus", "options": {"url": "nonsense"}}, {"name": "nobody"}],
        discovery={"name": "file", "options": {}},
        rules={"policy": "wva-v3"},
    )
    said = " ".join(each.said for each in problems(found))
    assert "did you mean 'gauge'" in said
    assert "there is no metrics-source 'nobody'" in said
    assert "file.path" in said
    assert "there is no policy 'wva-v3'" in said


def test_a_leader_that_is_there_is_told_and_is_no_problem() -> None:
    lease = {
        "kind": "Lease",
        "metadata": {"name": "fleetplan", "namespace": "fleetplan-system"},
        "spec": {"holderIdentity": "pod-a", "renewTime": "2026-11-30T10:00:00.000000Z"},
    }
    told = [each for each in lines(*FLEET, lease, act=True) if each.area is Area.LEADER]
    assert [(each.verdict, "pod-a leads" in each.said) for each in told] == [(Verdict.NOTE, True)]


def test_pods_that_end_in_the_middle_of_requests_are_noted() -> None:
    assert any(each.subject == "grace" and each.verdict is Verdict.NOTE for each in lines())
    container = {"name": "e", "image": "vllm", "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 600}
    kept = a_deployment(template={"metadata": {"labels": {}}, "spec": spec})
    others = [each for each in FLEET if each["kind"] != "Deployment"]
    assert not any(each.subject == "grace" for each in lines(*others, kept))


def test_with_namespaces_their_rules_are_enough() -> None:
    settings = ControllerSettings(namespaces=("prod",), act=True)
    needs = needs_of(settings, home="home")
    assert {need.rule.namespace for need in needs if need.rule.kind.namespaced and need.must} == {
        "prod",
        "home",
    }
    assert [need.must for need in needs if need.rule.kind is PODS and not need.rule.namespace] == [False]


def test_lease_and_live_settings_are_asked_for_where_the_controller_is_at_home() -> None:
    epp = {"services": [{"service": "a/b", "cluster": "east", "config_map": "c"}]}
    settings = ControllerSettings.model_validate(
        {"act": True, "live": {"name": "l"}, "actuators": [{"name": "epp", "options": epp}]}
    )

    def kinds(home: str | None, cluster: str) -> set[str]:
        needs = needs_of(settings, home=home, cluster=cluster)
        # Discovery lists Leases with records of resizes, wherever it looks.
        return {need.rule.kind.name for need in needs if need.rule.verb != "list"}

    assert {"Lease", "ConfigMap"} <= kinds("home", "west")
    assert {"Lease", "ConfigMap"} & kinds(None, "west") == set()
    assert {"Lease", "ConfigMap"} & kinds(None, "east") == {"ConfigMap"}


def test_plug_ins_that_break_are_a_line_and_stop_nothing() -> None:
    class Broken:
        closed = False

        def read(self, variants: Sequence[VariantObservation], now_s: float) -> MetricsReading:
            raise RuntimeError("password 123")

        def close(self) -> None:
            Broken.closed = True

    settings = ControllerSettings.model_validate({"sources": [{"name": "broken"}]})
    found = list(checked_sources(settings, (), FakeClock(), open_one=lambda *_: Broken()))
    assert [each.said for each in found] == ["it broke (RuntimeError)"]
    assert Broken.closed
