"""The counts at the end of a plan as a kustomize component: a folder of patches.

A component, since patches alone make no kustomization: an overlay that has the objects names it under
``components``. Patches rather than ``replicas:``, which knows objects by name alone and would change those of other
namespaces too, and knows neither HPAs nor custom resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import yaml

from planner.manifests.comments import MADE_BY, as_comments
from planner.manifests.documents import documents_of, head_of, text_of
from planner.manifests.route import Route

__all__ = ["KUSTOMIZATION", "one_stream", "render_kustomize"]

KUSTOMIZATION: Final = "kustomization.yaml"


def render_kustomize(route: Route) -> dict[str, str]:
    """Texts by file name, ``kustomization.yaml`` first. Each starts with the mark of our files.

    Raises:
        ConfigurationError: the objects are in several clusters.
    """
    patches = {document.file_name: text_of(document) for document in documents_of(route)}
    body = {
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "patches": [{"path": name} for name in patches],
    }
    head = [
        *head_of(route),
        "Name this folder under 'components' in a kustomization that has the objects, with their namespaces.",
    ]
    component = as_comments(head) + yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=1000)
    return {name: f"{MADE_BY}\n{text}" for name, text in {KUSTOMIZATION: component, **patches}.items()}


def one_stream(files: Mapping[str, str]) -> str:
    """All files one after the other, each under a line with its name."""
    return "".join(f"# file: {name}\n{text}\n" for name, text in files.items())
