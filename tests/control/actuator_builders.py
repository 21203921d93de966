"""Builders for tests of actuators: variants, decisions, and clusters in memory that tell what was written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from models.observation import VariantObservation
from models.variant import KubernetesObject
from planner.clock import FakeClock
from planner.control.actuators import Connections
from planner.control.cluster import Api, ClusterFault, Limits, MemoryCluster, Trouble
from planner.control.cluster.transport import Answer, Call
from planner.control.protocols import Decision

SCALERS = {"hpa": "llama-hpa", "keda": "llama-so", "variantautoscaling": "llama-va", "scale": "llama"}


def a_variant(scaler: str = "hpa", wanted: int | None = 2, **more: Any) -> VariantObservation:
    """A variant as it was observed; ``more`` are its fields, ``kind`` and ``target`` those of its workload."""
    name = more.pop("name", SCALERS[scaler])
    target = KubernetesObject(
        namespace="prod", kind=more.pop("kind", "Deployment"), name=more.pop("target", "llama"),
        scaler=scaler, scaler_name=name,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "name": name, "namespace": "prod", "model": "llama-8b", "target": target, "accelerator": "H100",
        "max_replicas": 10, "wanted": wanted, "ready": wanted or 0,
    }  # fmt: skip
    return VariantObservation(**fields | more)


def decided(variant: VariantObservation, desired: int, **more: Any) -> Decision:
    reason = "ScaledUp" if desired > (variant.wanted or 0) else "ScaledDown"
    return Decision(variant=variant, desired=desired, **{"reason": reason} | more)


def connected(*clusters: MemoryCluster, clock: FakeClock | None = None, **limits: Any) -> Connections:
    """Connections to one cluster, or to several that are named east, west, north."""
    names = [None] if len(clusters) == 1 else ["east", "west", "north"]
    now = clock or FakeClock(1e9)
    apis = [Api(each, now, name, Limits(**limits)) for each, name in zip(clusters, names, strict=False)]
    return Connections(clock=now, apis=tuple(apis))


def written(cluster: MemoryCluster) -> list[Mapping[str, Any]]:
    """Bodies of everything that was written, dry runs not among them."""
    return [json.loads(call.body or b"{}") for call in cluster.writes]


def answers(*script: Any, method: str = "PATCH") -> Callable[[Call], Answer | None]:
    """Answers calls of one method by a script, one after the other; then the cluster answers itself.

    A script holds statuses, pairs of status and headers, troubles of a transport, and None for the cluster's own answer.
    """
    left = list(script)

    def before(call: Call) -> Answer | None:
        if call.method != method or not left:
            return None
        said = left.pop(0)
        if isinstance(said, Trouble):
            raise ClusterFault(said, "the test says so")
        if said is None:
            return None
        status, headers = said if isinstance(said, tuple) else (said, {})
        return Answer(status, headers, json.dumps({"message": "the test says so"}).encode())

    return before
