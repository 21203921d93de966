"""The texts of a fleet: objects as :mod:`planner.manifests` writes them, with the record that the control plane reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final

import yaml

from models.ids import AcceleratorId, CandidateId, LlmId, PoolId, ServiceId, VariantId
from models.observation import VariantObservation
from models.problem import Candidate
from planner.control.actuators.folders import Texts
from planner.control.actuators.holding import FORMER_BOUNDS, FORMER_PAUSE, PAUSED, PINNED
from planner.control.cluster.reading import as_name
from planner.control.protocols import Decision
from planner.manifests import KUSTOMIZATION, MADE_BY, Change, Route, Stage, Target, render_script
from planner.manifests.comments import as_comments
from planner.manifests.documents import Document, documents_of, text_of
from planner.manifests.orders import NOT_PAUSED

__all__ = ["texts_of_fleet"]

_SCRIPT: Final = "commands.sh"
_STARTUP_S: Final = 600.0
"""After which a script takes a replica for one that will not come."""


def texts_of_fleet(
    decisions: Sequence[Decision],
    cache: MutableMapping[str, tuple[Document, str]],
    *,
    kustomize: bool,
    script: bool,
) -> Texts:
    """The files of one cluster.

    Args:
        decisions: of all its variants.
        cache: texts of documents as they were rendered last, by file name.
        kustomize: with a component of patches.
        script: with a script of kubectl lines.
    """
    changes = [_change(each) for each in decisions]
    stage = Stage(tuple(each for each in changes if each.old != each.new), (), (), 0.0)
    route = Route("the fleet", "", (stage,), tuple(changes))
    variants = {(each.variant.namespace, each.variant.name): each.variant for each in decisions}
    documents = [_recorded(each, variants) for each in documents_of(route)]
    counts = {f"{each.variant.namespace}/{each.variant.name}": each.desired for each in decisions}

    def render() -> dict[str, str]:
        texts = _component(documents, cache) if kustomize else {}
        return texts | ({_SCRIPT: render_script(route)} if script else {})

    bodies = [[each.file_name, each.body] for each in documents]
    told = json.dumps([bodies, counts, kustomize, script], sort_keys=True).encode()
    return Texts(render, counts, hashlib.sha256(told).hexdigest())


def _change(decision: Decision) -> Change:
    variant = decision.variant
    candidate = _candidate(variant)
    target = Target(variant.target, None, LlmId(variant.model), (candidate,))
    return Change(target, {candidate.id: variant.wanted or 0}, {candidate.id: max(0, decision.desired)})


def _candidate(variant: VariantObservation) -> Candidate:
    """The variant as manifests know it; nothing of what it carries is in a text."""
    return Candidate(
        id=CandidateId(f"{variant.namespace}/{variant.name}"),
        service=ServiceId(as_name(variant.service, "service")), variant=VariantId(variant.name),
        pool=PoolId(as_name(variant.accelerator, "anywhere")), accelerator=AcceleratorId(as_name(variant.accelerator, "unknown")),
        pods_per_replica=variant.pods_per_replica, rated_rps=1.0, surge_rps=1.0, unrated=True,
        cost=variant.cost, startup_s=_STARTUP_S, current=variant.wanted or 0, object=variant.target,
    )  # fmt: skip


def _recorded(document: Document, variants: Mapping[tuple[str, str], VariantObservation]) -> Document:
    """A scaler that is held says what it had before and at what it is held: otherwise that would be read as its bounds."""
    body: dict[str, Any] = dict(document.body)
    kind, metadata = body["kind"], body["metadata"]
    variant = variants.get((metadata["namespace"], metadata["name"]))
    notes: Mapping[str, str] = {}
    if kind == "HorizontalPodAutoscaler" and variant is not None:
        most = variant.max_replicas or body["spec"]["maxReplicas"]
        notes = {FORMER_BOUNDS: f"{variant.min_replicas}:{most}", PINNED: str(body["spec"]["maxReplicas"])}
    elif kind == "ScaledObject":
        notes = {FORMER_PAUSE: NOT_PAUSED, PINNED: metadata["annotations"][PAUSED]}
    if not notes:
        return document
    annotations = {**metadata["annotations"], **notes}
    return replace(document, body={**body, "metadata": {**metadata, "annotations": annotations}})


def _component(
    documents: Sequence[Document], cache: MutableMapping[str, tuple[Document, str]]
) -> dict[str, str]:
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"path": each.file_name} for each in documents],
    }
    head = [
        "Replicas as the control plane decided them.",
        "Name this folder under 'components' in a kustomization that has the objects, with their namespaces.",
    ]
    text = as_comments(head) + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=1000)
    for each in documents:
        if cache.get(each.file_name, (None, ""))[0] != each:
            cache[each.file_name] = each, text_of(each)
    patches = {each.file_name: cache[each.file_name][1] for each in documents}
    return {name: f"{MADE_BY}\n{each}" for name, each in {KUSTOMIZATION: text, **patches}.items()}
