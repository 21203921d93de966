"""As much of kustomize as the deploy kit uses, since the kubectl of some systems is too old for it.

    render(KIT / "overlays" / "acting")

A folder that asks for more is refused; where kubectl is new enough, a test compares the two.
"""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any, Final

import yaml

__all__ = ["render"]

Thing = dict[str, Any]
KNOWN: Final = {
    "apiVersion", "kind", "namespace", "resources", "components", "labels", "configMapGenerator", "images", "replicas",
}  # fmt: skip
OF_CLUSTER: Final = {"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}


def render(folder: Path) -> list[Thing]:
    """The objects of a kustomization, generated names with a digest."""
    things = _accumulated(folder, [])
    names = {}
    for each in things:
        if each.pop("_hashed", False):
            old = each["metadata"]["name"]
            names[old] = (
                f"{old}-{hashlib.sha256(json.dumps(each['data'], sort_keys=True).encode()).hexdigest()[:10]}"
            )
            each["metadata"]["name"] = names[old]
    for each in things:
        for volume in _pod(each).get("volumes", ()):
            reference = volume.get("configMap", {})
            reference["name"] = names.get(reference.get("name"), reference.get("name"))
    return things


def _accumulated(folder: Path, things: list[Thing]) -> list[Thing]:
    asked = yaml.safe_load((folder / "kustomization.yaml").read_text())
    strange = asked.keys() - KNOWN
    assert not strange, f"{folder}: {strange} is not rendered here"
    for name in asked.get("resources", ()):
        path = folder / name
        if path.is_dir():
            things = _accumulated(path, things)
        else:
            things += [each for each in yaml.safe_load_all(path.read_text()) if each]
    for name in asked.get("components", ()):
        things = _accumulated(folder / name, things)
    for one in asked.get("configMapGenerator", ()):
        things = _with_config_map(folder, one, things)
    _transform(asked, things)
    return things


def _with_config_map(folder: Path, one: Thing, things: list[Thing]) -> list[Thing]:
    options = one.get("options", {})
    data = {}
    for file in one["files"]:
        key, _, path = file.rpartition("=")
        data[key or Path(path).name] = (folder / path).read_text()
    made: Thing = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": one["name"], "labels": dict(options.get("labels", {}))},
        "data": data,
        "_hashed": not options.get("disableNameSuffixHash", False),
    }
    same = [each for each in things if (each["kind"], each["metadata"]["name"]) == ("ConfigMap", one["name"])]
    assert bool(same) is (one.get("behavior") == "replace"), one["name"]
    if same:
        made["metadata"] = copy.deepcopy(same[0]["metadata"])
    return [*(each for each in things if each not in same), made]


def _transform(asked: Thing, things: list[Thing]) -> None:
    for each in things:
        if "namespace" in asked and each["kind"] not in OF_CLUSTER:
            each["metadata"]["namespace"] = asked["namespace"]
        for labels in asked.get("labels", ()):
            each["metadata"].setdefault("labels", {}).update(labels["pairs"])
        for container in _pod(each).get("containers", ()):
            for image in asked.get("images", ()):
                if container["image"].partition(":")[0] == image["name"]:
                    container["image"] = f"{image.get('newName', image['name'])}:{image['newTag']}"
        for count in asked.get("replicas", ()):
            if each["metadata"]["name"] == count["name"] and each["kind"] == "Deployment":
                each["spec"]["replicas"] = count["count"]


def _pod(thing: Thing) -> Thing:
    found: Thing = (
        thing.get("spec", {}).get("template", {}).get("spec", {}) if thing["kind"] == "Deployment" else {}
    )
    return found
