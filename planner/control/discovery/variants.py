"""Declared variants, their workloads and pods -> what is observed of each variant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from models.observation import Condition, Finding, VariantObservation
from planner.control.cluster.kinds import LEASES, PODS, WORKLOADS
from planner.control.cluster.reading import name_of, namespace_of
from planner.control.cluster.resize_records import record_name
from planner.control.discovery.naming import Names
from planner.control.discovery.nodes import NodeSeen
from planner.control.discovery.pods import Owner, PodSeen
from planner.control.discovery.resizes import resize_of
from planner.control.discovery.scalers import HELD, PAUSED, Declared, is_true
from planner.control.discovery.scheduling import selector_labels, selects
from planner.control.discovery.snapshot import Snapshot
from planner.control.discovery.workloads import Workload

__all__ = ["Fleet", "observe_variants"]

_ACCELERATOR: Final = "inference.optimization/acceleratorName"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Fleet:
    """What there is in a cluster, by what it is found by.

    Attributes:
        workloads: by kind, namespace and name.
        pods: by the workload they belong to.
        nodes: by name.
        types: of accelerators that nodes have.
    """

    workloads: Mapping[Owner, Workload]
    pods: Mapping[Owner, Sequence[PodSeen]]
    nodes: Mapping[str, NodeSeen]
    types: frozenset[str]

    @classmethod
    def of(cls, workloads: Iterable[Workload], pods: Iterable[PodSeen], nodes: Iterable[NodeSeen]) -> Fleet:
        """The same, sorted in."""
        known = tuple(nodes)
        owned: dict[Owner, list[PodSeen]] = defaultdict(list)
        for pod in pods:
            if pod.owner is not None:
                owned[pod.owner].append(pod)
        return cls(
            {(each.kind, each.namespace, each.name): each for each in workloads},
            owned,
            {each.name: each for each in known},
            frozenset(named for each in known for named, _ in each.devices.values()),
        )


def observe_variants(
    declared: Iterable[Declared],
    fleet: Fleet,
    seen: Snapshot,
    names: Names,
    paused_namespaces: frozenset[str],
) -> tuple[tuple[VariantObservation, ...], tuple[Finding, ...]]:
    """One observation for each declared variant, and what of it is not known.

    Args:
        declared: what is scaled.
        fleet: workloads, pods and nodes.
        seen: says what could not be read.
        names: of accelerators.
        paused_namespaces: in which nothing is to be changed.
    """
    findings: list[Finding] = []
    found: list[VariantObservation] = []
    leases = {(namespace_of(each), name_of(each)): each for each in seen.of(LEASES)}
    for each in declared:
        fields = _fields(each, fleet, seen, names, findings)
        lease = leases.get((each.namespace, record_name(each.target[2])))
        fields["resize"] = resize_of(lease, each.subject, findings)
        fields["paused"] = fields["paused"] or each.namespace in paused_namespaces
        try:
            found.append(VariantObservation.model_validate(fields))
        except ValidationError as cause:
            fault = cause.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, fault["loc"]))
            findings.append(Finding(subject=each.subject, problem=f"ignored: {where}: {fault['msg']}"[:500]))
    return tuple(found), tuple(findings)


def _fields(
    each: Declared, fleet: Fleet, seen: Snapshot, names: Names, findings: list[Finding]
) -> dict[str, Any]:
    kind, namespace, name = each.target
    workload = fleet.workloads.get(each.target)
    target = {
        "namespace": namespace, "kind": kind, "name": name, "api_version": each.api_version or None,
        "scaler": each.scaler, "scaler_name": each.name,
    }  # fmt: skip
    fields: dict[str, Any] = {
        "name": each.name, "namespace": namespace, "cluster": seen.cluster, "model": each.model,
        "target": target, "cost": each.cost, "min_replicas": each.least, "max_replicas": each.most,
        "paused": each.paused, "conditions": (_resolved(each, workload, seen),),
    }  # fmt: skip
    if workload is None:
        label = each.labels.get(_ACCELERATOR)
        return fields | {"accelerator": names.normal(label) if label else "", "wanted": None}
    fields["paused"] = each.paused or is_true(workload.annotations.get(PAUSED))
    pods = fleet.pods.get(each.target, ())
    arguments, problems = workload.arguments
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        findings.append(
            Finding(
                subject=each.subject, problem=f"arguments of its engine are not understood: {shown}"[:1000]
            )
        )
    return (
        fields
        | {"held": workload.annotations.get(HELD, "")[:500]}
        | dict(zip(("written_by", "written_at"), workload.written_by, strict=True))
        | {"role": workload.role, "engine": workload.engine, "engine_arguments": arguments}
        | _devices(each, workload, (fleet, pods), names, findings)
        | _counts(workload, pods, known=PODS not in seen.lacking)
    )


def _resolved(each: Declared, workload: Workload | None, seen: Snapshot) -> Condition:
    kind, _, name = each.target
    if workload is not None:
        return Condition(type="TargetResolved", status=True, reason="TargetFound")
    if WORKLOADS[kind] in seen.lacking:
        message = f"{kind} {name} could not be looked for"
        return Condition(type="TargetResolved", status=False, reason="TargetUnknown", message=message)
    message = f"there is no {kind} {name} in namespace {each.namespace}"
    return Condition(type="TargetResolved", status=False, reason="TargetNotFound", message=message)


def _devices(
    each: Declared,
    workload: Workload,
    where: tuple[Fleet, Sequence[PodSeen]],
    names: Names,
    findings: list[Finding],
) -> dict[str, Any]:
    fleet, pods = where
    devices = workload.devices(names.resources)
    gpus = sum(devices.values())
    if not gpus:
        why = (
            "its pods get devices by claims, which say no count"
            if workload.claims
            else "its pods ask for none"
        )
        problem = f"accelerators of a replica are not known: {why}; one is assumed"
        findings.append(
            Finding(subject=each.subject, problem=problem, remedy="ask for them in resources.limits")
        )
    accelerator = _accelerator(each, workload, (fleet, pods), names)
    if not accelerator:
        findings.append(
            Finding(
                subject=each.subject,
                problem="its accelerator is not known: neither node selector, affinity and running pods nor a label name one",
                remedy=f"select nodes by the product's label, or set the label {_ACCELERATOR} on the scaler",
            )
        )
    return {"gpus": max(1, gpus), "pods_per_replica": workload.pods, "accelerator": accelerator}


def _accelerator(
    each: Declared, workload: Workload, where: tuple[Fleet, Sequence[PodSeen]], names: Names
) -> str:
    """What the pods select, what they run on, what a label says, the only type they could run on; in this order."""
    fleet, pods = where
    asked = workload.devices(names.resources)
    wanted = selector_labels(workload.leader)
    said = next((name for each in asked if (name := names.of(each, wanted))), None) or names.named_by(wanted)
    # Selectors name the product of a GPU that nodes may share or slice, which makes another type of it.
    exact = said is not None and not any(each.startswith(f"{said}-") for each in fleet.types)
    if said is not None and exact:
        return said
    held = _only_type((fleet.nodes[pod.node] for pod in pods if pod.node in fleet.nodes), asked)
    if held:
        return held
    label = each.labels.get(_ACCELERATOR) or workload.labels.get(_ACCELERATOR)
    if label and said is None:
        return names.normal(label)
    # As many nodes as there are, for every variant: the last thing to look at.
    possible = (node for node in fleet.nodes.values() if selects(workload.leader, node.name, node.labels))
    return _only_type(possible, asked) or said or ""


def _only_type(nodes: Iterable[NodeSeen], asked: Mapping[str, int]) -> str:
    """The one type that all these nodes have of what is asked for; empty: there is none, or more than one."""
    found = ""
    for node in nodes:
        for resource in asked:
            named = node.devices[resource][0] if resource in node.devices else ""
            if found and named not in {"", found}:
                return ""
            found = found or named
    return found


def _counts(workload: Workload, pods: Sequence[PodSeen], *, known: bool) -> dict[str, Any]:
    """Replicas that are wanted, ready and pending; those of a group are ready when all its pods are."""
    if not known:
        return {
            "wanted": workload.wanted, "ready": workload.ready,
            "pending": max(0, workload.wanted - workload.ready),
        }  # fmt: skip
    ready = _leaders(workload, pods)
    return {
        "wanted": workload.wanted,
        "ready": len(ready),
        "pending": max(0, workload.wanted - len(ready)),
        "pods": tuple(pod.name for pod in ready),
        "nodes": tuple(pod.node for pod in ready),
    }


def _leaders(workload: Workload, pods: Sequence[PodSeen]) -> list[PodSeen]:
    if workload.kind != "LeaderWorkerSet":
        return sorted((pod for pod in pods if pod.ready), key=lambda pod: pod.name)
    groups: dict[str, list[PodSeen]] = defaultdict(list)
    for pod in pods:
        if pod.ready:
            groups[pod.group].append(pod)
    leaders = [
        pod for group in groups.values() if len(group) >= workload.pods for pod in group if pod.worker == "0"
    ]
    return sorted(leaders, key=lambda pod: pod.name)
