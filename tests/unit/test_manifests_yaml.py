"""YAML and kustomize: what is in the documents, and that Kubernetes' own schemas take them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml

from planner.errors import ConfigurationError
from planner.manifests import (
    KUSTOMIZATION,
    MADE_BY,
    Route,
    one_stream,
    render_kustomize,
    render_manifests,
    route_of,
)
from planner.manifests.documents import documents_of
from tests.builders import a_candidate, a_demand
from tests.rollouts import a_fleet, a_fleet_plan, a_route, a_way_back, an_object, one_variant, undone

EAST: Final = "chat/small@east"
VERSIONS: Final = ("1.25", "1.31", "1.37")
CUSTOM: Final = {"LeaderWorkerSet", "ScaledObject", "VariantAutoscaling"}
KUBECTL: Final = shutil.which("kubectl")


def documents(route: Route) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(render_manifests(route)))


def patches(route: Route) -> list[dict[str, Any]]:
    return [dict(document.body) for document in documents_of(route)]


def by_kind(route: Route) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in documents(route)}


def the_fleet() -> Route:
    return route_of(a_fleet(), a_fleet_plan())


def the_fleet_back() -> Route:
    return undone(a_fleet(), a_fleet_plan())


def a_running(partial: Mapping[str, Any]) -> dict[str, Any]:
    """The object in the cluster, as it is after the partial one was applied."""
    labels = {"app": "chat"}
    container = {"name": "engine", "image": "vllm"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    service = {"serviceName": "chat"} if partial["kind"] == "StatefulSet" else {}
    return {**partial, "spec": {**spec, **service, **partial["spec"]}}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", ["there", "back"])
def test_kubernetes_takes_what_the_fleet_becomes(version: str, way: str) -> None:
    route = the_fleet() if way == "there" else the_fleet_back()
    found = {kind: body for kind, body in by_kind(route).items() if kind not in CUSTOM}
    assert found.keys() == {"Scale", "HorizontalPodAutoscaler"}
    for body in documents(route):
        if body["kind"] in found:
            kubernetes_validate.validate(body, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", ["there", "back"])
def test_kubernetes_takes_what_the_patches_make_of_the_fleet(version: str, way: str) -> None:
    route = the_fleet() if way == "there" else the_fleet_back()
    found = [body for body in patches(route) if body["kind"] not in CUSTOM]
    assert {body["kind"] for body in found} == {"Deployment", "StatefulSet", "HorizontalPodAutoscaler"}
    for body in found:
        whole = body if body["kind"] == "HorizontalPodAutoscaler" else a_running(body)
        kubernetes_validate.validate(whole, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("old", "new"), [(3, 5), (3, 0), (0, 2)])
def test_kubernetes_takes_an_hpa_at_any_count(version: str, old: int, new: int) -> None:
    route = a_route(one_variant(old, scaler="hpa"), {EAST: new})
    body = by_kind(route)["HorizontalPodAutoscaler"]
    kubernetes_validate.validate(body, version, strict=True)
    assert 1 <= body["spec"]["minReplicas"] == body["spec"]["maxReplicas"]


def test_the_validator_refuses_a_count_that_is_text() -> None:
    broken = {**by_kind(the_fleet())["Scale"], "spec": {"replicas": "5"}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[0], strict=True)


METADATA: Final = {"name": "chat-small", "namespace": "llm"}
SERVES: Final = {"llm-d.ai/model-id": "llama-8b", "llm-d.ai/variant-cost": "1.0"}
TARGET: Final = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat-small"}


def an_hpa(bounds: int) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": METADATA | {"annotations": SERVES},
        "spec": {"scaleTargetRef": TARGET, "minReplicas": bounds, "maxReplicas": bounds},
    }


def a_workload(count: int, kind: str = "Deployment", api_version: str = "apps/v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": METADATA, "spec": {"replicas": count}}


def a_scaled_object(count: str) -> dict[str, Any]:
    annotations = {"autoscaling.keda.sh/paused-replicas": count}
    metadata = METADATA | {"annotations": annotations}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata}


@pytest.mark.parametrize(
    ("fields", "old", "new", "found"),
    [
        ({}, 3, 5, [a_workload(5)]),
        ({}, 3, 3, [a_workload(3)]),
        ({}, 0, 0, []),
        ({"kind": "StatefulSet"}, 3, 0, [a_workload(0, "StatefulSet")]),
        ({"kind": "LeaderWorkerSet"}, 1, 2, [a_workload(2, "LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1")]),
        ({"scaler": "hpa"}, 3, 5, [an_hpa(5)]),
        ({"scaler": "hpa"}, 3, 0, [an_hpa(3), a_workload(0)]),
        ({"scaler": "hpa"}, 0, 2, [an_hpa(2), a_workload(2)]),
        ({"scaler": "keda"}, 3, 0, [a_scaled_object("0")]),
        ({"scaler": "keda"}, 3, 5, [a_scaled_object("5")]),
        ({"scaler": "variantautoscaling"}, 3, 5, [{
            "apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": METADATA | {"annotations": {"llm-d.ai/managed": "true"} | SERVES},
        }]),
    ],
)  # fmt: skip
def test_each_scaler_has_its_documents(
    fields: dict[str, Any], old: int, new: int, found: list[dict[str, Any]]
) -> None:
    waves = [{EAST: new}] if old != new else []
    route = a_route(one_variant(old, **fields), *waves)
    assert patches(route) == found
    workloads = {"Deployment", "StatefulSet", "LeaderWorkerSet"}
    scales = {"apiVersion": "autoscaling/v1", "kind": "Scale"}
    assert documents(route) == [body | scales if body["kind"] in workloads else body for body in found]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", "/apis/apps/v1/namespaces/llm/deployments/chat-small/scale"),
        ("StatefulSet", "/apis/apps/v1/namespaces/llm/statefulsets/chat-small/scale"),
        (
            "LeaderWorkerSet",
            "/apis/leaderworkerset.x-k8s.io/v1/namespaces/llm/leaderworkersets/chat-small/scale",
        ),
    ],
)
def test_a_scale_says_where_it_goes(kind: str, path: str) -> None:
    text = render_manifests(a_route(one_variant(1, kind=kind), {EAST: 2}))
    assert f"# It is put to {path}\n" in text
    assert "/chat-small --replicas=2\n" in text


def test_an_hpa_says_how_its_bounds_are_kept_and_given_back() -> None:
    text = render_manifests(a_route(one_variant(3, scaler="hpa"), {EAST: 5}))
    assert (
        '# First keep its bounds: kubectl -n llm annotate hpa/chat-small "fleetplan.dev/former-bounds=$(kubectl -n '
        "llm get hpa/chat-small -o 'jsonpath={.spec.minReplicas}:{.spec.maxReplicas}')\"\n"
    ) in text
    assert "MIN:MAX in the annotation fleetplan.dev/former-bounds, and remove it.\n" in text


def test_the_way_back_has_the_counts_of_the_start() -> None:
    problem, waves = one_variant(3), ({EAST: 4}, {EAST: 6})
    assert [d["spec"]["replicas"] for d in documents(a_route(problem, *waves))] == [6]
    assert [d["spec"]["replicas"] for d in documents(a_way_back(problem, *waves))] == [3]


def test_the_way_back_leaves_the_metadata_of_a_variant_autoscaling() -> None:
    route = a_way_back(one_variant(3, scaler="variantautoscaling"), {EAST: 5})
    assert documents(route) == []
    assert 'namespace="llm",accelerator_type="H100"} 3' in render_manifests(route)


def test_every_document_says_what_it_is_for_and_how_it_is_undone() -> None:
    head, *texts = render_manifests(the_fleet()).split("---\n")
    assert len(texts) == 6
    for text in texts:
        comments = [line for line in text.splitlines() if line.startswith("# ")]
        assert comments[0].startswith("# chat/")
        assert comments[-1].startswith("# Undo: ")
    assert head.startswith(f"{MADE_BY}\n")
    assert "chat/bare" in head


def test_documents_are_in_the_order_in_which_waves_finish_them() -> None:
    large, still = (
        a_candidate(variant="large", pool="west", current=1, object=an_object("a-large")),
        a_candidate(variant="still", pool="west", current=1, object=an_object("a-still")),
    )
    route = a_route(one_variant(1, large, still), {large.id: 2}, {EAST: 2}, {large.id: 3})
    assert [d["metadata"]["name"] for d in documents(route)] == ["chat-small", "a-large", "a-still"]


@pytest.mark.parametrize("name", ["1e3", "true", "0123", "0x10", "null", "1.5", "no"])
def test_names_that_look_like_something_else_stay_text(name: str) -> None:
    route = a_route(one_variant(1, name=name, namespace="n0"), {EAST: 2})
    assert documents(route)[0]["metadata"] == {"name": name, "namespace": "n0"}


@pytest.mark.parametrize("llm", ["123", "1e3", "true", "a:b", "x#y", "no"])
def test_annotations_are_text_whatever_they_look_like(llm: str) -> None:
    problem = one_variant(1, scaler="hpa").but(demands=(a_demand(llm=llm),))
    (body,) = documents(a_route(problem, {EAST: 2}))
    assert body["metadata"]["annotations"] == {"llm-d.ai/model-id": llm, "llm-d.ai/variant-cost": "1.0"}


def several_clusters() -> Route:
    problem = one_variant(1, a_candidate(pool="west", current=1, object=an_object()))
    pools = (problem.pools[0].but(cluster="eu"), problem.pools[1])
    return a_route(problem.but(pools=pools), {EAST: 2})


@pytest.mark.parametrize("render", [render_manifests, render_kustomize])
def test_objects_of_several_clusters_are_no_one_file(render: Any) -> None:
    with pytest.raises(ConfigurationError, match="several clusters: one without a name, eu"):
        render(several_clusters())
    assert render(several_clusters().in_cluster("eu"))


def test_a_component_names_every_patch_and_nothing_else() -> None:
    files = render_kustomize(the_fleet())
    component = yaml.safe_load(files[KUSTOMIZATION])
    assert component["kind"] == "Component"
    assert [patch["path"] for patch in component["patches"]] == list(files)[1:]
    assert [yaml.safe_load(text) for name, text in files.items() if name != KUSTOMIZATION] == patches(
        the_fleet()
    )
    assert all(text.startswith(f"{MADE_BY}\n") for text in files.values())


def test_one_stream_shows_every_file_under_its_name() -> None:
    files = render_kustomize(the_fleet())
    parts = one_stream(files).split("# file: ")[1:]
    assert dict(part.split("\n", 1) for part in parts) == {name: f"{text}\n" for name, text in files.items()}


def test_file_names_are_short_enough_and_never_the_same() -> None:
    names = ["a" * 250 + "b", "a" * 250 + "c", "short"]
    candidates = [
        a_candidate(variant=f"v{i}", current=1, object=an_object(name)) for i, name in enumerate(names)
    ]
    problem = one_variant(1).but(candidates=tuple(candidates))
    found = [document.file_name for document in documents_of(a_route(problem))]
    assert len(set(found)) == 3
    assert all(len(name) <= 255 and name.endswith(".yaml") for name in found)
    assert "llm.deployment.short.yaml" in found


@pytest.mark.skipif(KUBECTL is None, reason="needs a kubectl on PATH to build with kustomize")
@pytest.mark.parametrize("way", ["there", "back"])
def test_kustomize_changes_these_counts_and_nothing_else(tmp_path: Path, way: str) -> None:
    route = the_fleet() if way == "there" else the_fleet_back()
    base = [_in_the_cluster(document) for document in patches(the_fleet())]
    namesake = {**base[-1], "metadata": {"name": base[-1]["metadata"]["name"], "namespace": "other"}}
    built = _built(tmp_path, route, [*base, namesake])
    expected = {_key(document): _merged(document, {}) for document in [*base, namesake]}
    for patch in patches(route):
        expected[_key(patch)] = _merged(expected[_key(patch)], patch)
    assert built == expected


@pytest.mark.skipif(KUBECTL is None, reason="needs a kubectl on PATH to build with kustomize")
def test_kustomize_refuses_a_component_whose_object_is_missing(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        _built(tmp_path, the_fleet(), [])
    assert "chat-" in caught.value.stderr


def _in_the_cluster(document: dict[str, Any]) -> dict[str, Any]:
    """A whole object as an overlay may have it, with other counts and fields that a plan knows nothing of."""
    metadata = {"name": document["metadata"]["name"], "namespace": "llm", "labels": {"keep": "me"}}
    spec = (
        {"replicas": 77} if "replicas" in document.get("spec", {}) else {"minReplicas": 1, "maxReplicas": 99}
    )
    whole = {key: document[key] for key in ("apiVersion", "kind")} | {"metadata": metadata}
    return whole | {"spec": spec | {"kept": "too"}}


def _built(
    folder: Path, route: Route, base: list[dict[str, Any]]
) -> dict[tuple[str, str, str], dict[str, Any]]:
    component = folder / "plan"
    component.mkdir()
    for name, text in render_kustomize(route).items():
        (component / name).write_text(text, encoding="utf-8")
    (folder / "base.yaml").write_text(yaml.safe_dump_all(base), encoding="utf-8")
    overlay = {"resources": ["base.yaml"] if base else [], "components": ["plan"]}
    (folder / KUSTOMIZATION).write_text(yaml.safe_dump(overlay), encoding="utf-8")
    command = [str(KUBECTL), "kustomize", str(folder)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return {_key(document): document for document in yaml.safe_load_all(done.stdout)}


def _key(document: Mapping[str, Any]) -> tuple[str, str, str]:
    return document["kind"], document["metadata"]["namespace"], document["metadata"]["name"]


def _merged(whole: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(whole)
    for key, value in patch.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged
