"""Commands and manifests for Kubernetes that carry out a plan: text for people to read and run, never a call.

Nothing here talks to a cluster. The counts are those of a plan, the objects those that the scenario names.
"""

from __future__ import annotations

from planner.manifests.comments import MADE_BY, gauges_of, is_ours, left_to_do
from planner.manifests.documents import render_manifests
from planner.manifests.kustomize import KUSTOMIZATION, one_stream, render_kustomize
from planner.manifests.route import Change, Route, Stage, route_of
from planner.manifests.script import render_script
from planner.manifests.targets import Target

__all__ = [
    "KUSTOMIZATION",
    "MADE_BY",
    "Change",
    "Route",
    "Stage",
    "Target",
    "gauges_of",
    "is_ours",
    "left_to_do",
    "one_stream",
    "render_kustomize",
    "render_manifests",
    "render_script",
    "route_of",
]
