"""The counts at the end of a plan as YAML documents, each whole: a plan knows no template of a workload.

A count is therefore a ``Scale``, what the API server takes and gives at ``.../scale`` of any workload. As a patch for
kustomize it is the part of the workload that has the count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import yaml

from planner.errors import ConfigurationError, Finding
from planner.manifests.comments import (
    MADE_BY,
    as_comments,
    calls_behind,
    counts_of,
    gauge_of,
    heading_of,
    not_done,
)
from planner.manifests.orders import FORMER_BOUNDS, PAUSED, Kubectl, annotations_of, pinned_bounds
from planner.manifests.route import Change, Route
from planner.manifests.targets import SCALERS, Target

__all__ = ["Document", "documents_of", "head_of", "render_manifests", "text_of"]

APPLY: Final = "kubectl apply --server-side --field-manager=fleetplan --force-conflicts -f FILE"
_PLURALS: Final = {
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "LeaderWorkerSet": "leaderworkersets",
}
_NAME_LENGTH: Final = 200
Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Document:
    """One object.

    Attributes:
        comments: what it is for and how it is undone.
        body: the object, or the part of it that a plan decides.
    """

    comments: tuple[str, ...]
    body: Body

    @property
    def file_name(self) -> str:
        """``namespace.kind.name.yaml``: namespaces and kinds have no dot, so no two objects share one."""
        metadata = self.body["metadata"]
        assert isinstance(metadata, dict)  # noqa: S101 - made here
        name = f"{metadata['namespace']}.{str(self.body['kind']).lower()}.{metadata['name']}"
        if len(name) > _NAME_LENGTH:
            name = f"{name[:_NAME_LENGTH]}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        return f"{name}.yaml"


def render_manifests(route: Route) -> str:
    """All objects as one stream of YAML documents.

    Raises:
        ConfigurationError: the objects are in several clusters.
    """
    head = [
        *head_of(route),
        "A Scale is the body of a subresource, which 'kubectl apply' does not know: each names its own command.",
        f"Each other document, in a file of its own: {APPLY}",
        "That takes the fields from whoever wrote them last, and leaves every other field as it is.",
    ]
    texts = [f"---\n{text_of(document)}" for document in documents_of(route, whole=True)]
    return f"{MADE_BY}\n{as_comments(head)}{''.join(texts)}"


def head_of(route: Route) -> Iterator[str]:
    """Comments on the whole."""
    yield from heading_of(route)
    yield "These are the counts at the end; 'fleetplan commands --format kubectl' has the waves and their order."
    for step in (each for stage in route.stages for each in stage.elsewhere):
        yield not_done(step)
        yield from calls_behind(step)
    if route.way_back:
        for change in _of_scaler(route, "variantautoscaling"):
            yield f"{counts_of(change)}, through the gauge of the control plane: {gauge_of(change)}"


def documents_of(route: Route, *, whole: bool = False) -> tuple[Document, ...]:
    """The objects that run or shall run, in the order in which the waves finish them; those that stay come last.

    Args:
        route: with the counts at its end.
        whole: counts as ``Scale``, which is valid as it stands; otherwise as patches.

    Raises:
        ConfigurationError: the objects are in several clusters.
    """
    if len(route.clusters) > 1:
        named = ", ".join(name or "one without a name" for name in route.clusters)
        finding = Finding(
            "", None, "--cluster", f"objects in several clusters: {named}", "the name of one of them"
        )
        raise ConfigurationError.from_findings([finding])
    finished = {
        change.target.key: number for number, stage in enumerate(route.stages) for change in stage.changes
    }
    last = len(route.stages)
    ends = sorted(route.ends, key=lambda change: (finished.get(change.target.key, last), change.target.key))
    return tuple(
        document
        for change in ends
        if not change.idle
        for document in _documents(change, way_back=route.way_back, whole=whole)
    )


def text_of(document: Document) -> str:
    """Comments and YAML; text that reads as a number is quoted."""
    body = yaml.safe_dump(dict(document.body), sort_keys=False, allow_unicode=True, width=1000)
    return as_comments(document.comments) + body


def _of_scaler(route: Route, scaler: str) -> list[Change]:
    return [c for c in route.ends if c.target.object.scaler == scaler and not c.idle]


def _documents(change: Change, *, way_back: bool, whole: bool) -> Iterator[Document]:
    count = _scale if whole else _workload
    match change.target.object.scaler:
        case "scale":
            yield count(change)
        case "hpa":
            yield _hpa(change)
            if change.new == 0 or change.old == 0:
                yield count(change)
        case "keda":
            yield _scaled_object(change)
        case "variantautoscaling":
            if not way_back:
                yield _variant_autoscaling(change)


def _workload(change: Change) -> Document:
    target = change.target
    body = {
        "apiVersion": target.api_version,
        "kind": target.object.kind,
        "metadata": {"name": target.object.name, "namespace": target.namespace},
        "spec": {"replicas": change.new},
    }
    return Document((f"{counts_of(change)}.", f"Undo: replicas: {change.old}"), body)


def _scale(change: Change) -> Document:
    target = change.target
    path = (
        f"/apis/{target.api_version}/namespaces/{target.namespace}"
        f"/{_PLURALS[target.object.kind]}/{target.object.name}/scale"
    )
    body = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": target.object.name, "namespace": target.namespace},
        "spec": {"replicas": change.new},
    }
    comments = (
        f"{counts_of(change)}.",
        f"Apply: {Kubectl().scaled(change)}",
        f"It is put to {path}",
        f"Undo: replicas: {change.old}",
    )
    return Document(comments, body)


def _hpa(change: Change) -> Document:
    target, bounds = change.target, pinned_bounds(change)
    comments = [
        f"{counts_of(change)}.",
        "The metrics of this HPA stay; equal bounds leave them nothing to decide.",
    ]
    if change.new == 0:
        comments.append("It rests while there are no replicas; its maximum cannot be 0.")
    comments.append(f"First keep its bounds: {Kubectl().record(target)}")
    undo = f"write back the bounds, MIN:MAX in the annotation {FORMER_BOUNDS}, and remove it"
    if change.old:
        comments.append(f"Undo: both bounds at {change.old}; to free the count {undo}.")
    else:
        comments.append(f"Undo: no replicas as below; then {undo}.")
    reference = {"apiVersion": target.api_version, "kind": target.object.kind, "name": target.object.name}
    spec = {"scaleTargetRef": reference, "minReplicas": bounds, "maxReplicas": bounds}
    return Document(tuple(comments), _scaler(target, annotations_of(target)) | {"spec": spec})


def _scaled_object(change: Change) -> Document:
    comments = (
        f"{counts_of(change)}.",
        "The annotation holds the count, also at 0, and leaves bounds and triggers as they are.",
        f"Undo: the same with {change.old}; without the annotation KEDA scales again.",
    )
    return Document(comments, _scaler(change.target, {PAUSED: str(change.new)}))


def _variant_autoscaling(change: Change) -> Document:
    comments = (
        f"{counts_of(change)}.",
        f"Its count goes through a gauge that the control plane emits: {gauge_of(change)}",
        "Undo: remove the annotations, if it had none of these before.",
    )
    return Document(comments, _scaler(change.target, annotations_of(change.target)))


def _scaler(target: Target, annotations: Mapping[str, str]) -> dict[str, object]:
    api_version, kind = SCALERS[target.object.scaler]
    metadata = {"name": target.scaler_name, "namespace": target.namespace, "annotations": dict(annotations)}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
