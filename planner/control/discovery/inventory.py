"""Nodes and pods -> pools with foreign use, and quotas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from models.hardware import Market, Node, Offering, Pool
from models.ids import AcceleratorId, DomainId, NodeId, PoolId
from models.observation import Finding, QuotaObservation
from planner.control.cluster.quantities import whole
from planner.control.cluster.reading import Object, as_name, at, items_of, mapping_of, name_of, namespace_of
from planner.control.discovery.naming import Names, is_device
from planner.control.discovery.nodes import NodeSeen
from planner.control.discovery.pods import Owner, PodSeen
from planner.control.discovery.scheduling import tolerates

__all__ = ["Tolerating", "pools_of", "quotas_of"]

_REQUESTS: Final = "requests."
_Group = tuple[str, str, Market]


@dataclass(frozen=True, slots=True)
class Tolerating:
    """Pods of ours that want an accelerator.

    Attributes:
        accelerator: that they want; empty: not known.
        tolerations: of their template.
    """

    accelerator: str
    tolerations: tuple[Mapping[str, Any], ...]


def pools_of(
    nodes: Sequence[NodeSeen],
    pods: Iterable[PodSeen],
    *,
    cluster: str | None,
    managed: Collection[Owner],
    tolerating: Sequence[Tolerating],
    further: Sequence[Mapping[str, Any]] = (),
) -> tuple[Pool, ...]:
    """Pools of one type, zone and market each; node by node what pods hold that are not ours.

    Args:
        nodes: with their devices.
        pods: that are not finished, of all namespaces.
        cluster: name of the cluster; None: the only one.
        managed: workloads that we scale; pods of others are foreign.
        tolerating: what our pods tolerate.
        further: tolerations that pods get beside those of their template.
    """
    foreign, asking = _foreign(pods, managed), _different(tolerating)
    grouped: dict[_Group, list[Node]] = defaultdict(list)
    regions: dict[_Group, str] = {}
    for node in sorted(nodes, key=lambda one: one.name):
        for resource, (accelerator, amount) in sorted(node.devices.items()):
            used = min(amount, foreign.get((node.name, resource), 0))
            group = (_name(accelerator), _name(node.zone) if node.zone else "", node.market)
            regions.setdefault(group, node.region)
            barred = _is_barred(node, accelerator, asking, further)
            grouped[group].append(_node(node, amount, used, tainted=barred))
    return tuple(_pool(group, held, cluster, regions[group]) for group, held in sorted(grouped.items()))


def _foreign(pods: Iterable[PodSeen], managed: Collection[Owner]) -> dict[tuple[str, str], int]:
    """Devices in use by node and resource, of pods that are not ours; pods without a node hold none yet."""
    used: dict[tuple[str, str], int] = defaultdict(int)
    for pod in pods:
        if pod.node and (pod.owner is None or pod.owner not in managed):
            for resource, amount in pod.requests.items():
                used[pod.node, resource] += amount
    return used


def _different(tolerating: Iterable[Tolerating]) -> list[Tolerating]:
    """Each once: most variants tolerate what the others do, and every node with taints is compared with all of them."""
    found: list[Tolerating] = []
    for one in tolerating:
        if one not in found:
            found.append(one)
    return found


def _is_barred(
    node: NodeSeen,
    accelerator: str,
    tolerating: Sequence[Tolerating],
    further: Sequence[Mapping[str, Any]],
) -> bool:
    """Whether no pod of ours that may want this accelerator tolerates the taints of a node."""
    if not node.taints:
        return False
    wanting = [one.tolerations for one in tolerating if one.accelerator in {accelerator, ""}]
    # Where nothing of ours runs yet: pods that ask for a device usually tolerate the taint of its name.
    usual = [{"key": name, "operator": "Exists"} for name in node.devices]
    kinds = wanting or [one.tolerations for one in tolerating] or [tuple(usual)]
    return not any(
        all(tolerates([*tolerations, *further], taint) for taint in node.taints) for tolerations in kinds
    )


def _node(node: NodeSeen, amount: int, used: int, *, tainted: bool) -> Node:
    return Node(
        id=NodeId(_name(node.name)),
        gpus=amount,
        foreign_gpus=used,
        cordoned=node.cordoned,
        ready=node.ready,
        tainted=tainted,
        fabric_domain=DomainId(_name(node.fabric)) if node.fabric else None,
    )


def _pool(group: _Group, nodes: Sequence[Node], cluster: str | None, region: str) -> Pool:
    accelerator, zone, market = group
    parts = [cluster or "", accelerator, zone, "" if market is Market.ON_DEMAND else market]
    domain = "/".join(part for part in (cluster or "", zone) if part)
    return Pool(
        id=PoolId(_name("/".join(part for part in parts if part))),
        accelerator=AcceleratorId(accelerator),
        nodes=tuple(nodes),
        offering=Offering(market=market),
        region=_name(region) if region else None,
        cluster=cluster,
        failure_domain=DomainId(_name(domain)) if zone else None,
    )


def _name(text: str) -> str:
    """A text of a label as a name."""
    return as_name(text, "unknown")


def quotas_of(
    objects: Iterable[Object], pods: Sequence[PodSeen], names: Names, *, cluster: str | None
) -> tuple[tuple[QuotaObservation, ...], tuple[Finding, ...]]:
    """Quotas on accelerators; those of a scope count some pods alone, and are told of instead.

    Args:
        objects: ResourceQuotas as the API has them.
        pods: for what is used where a quota does not say.
        names: knows further resources that count accelerators.
        cluster: name of the cluster; None: the only one.
    """
    found: list[QuotaObservation] = []
    findings: list[Finding] = []
    for thing in objects:
        hard = mapping_of(at(thing, "status", "hard")) or mapping_of(at(thing, "spec", "hard"))
        limits = {key: whole(value) for key, value in hard.items() if _counts(str(key), names)}
        known = {key: each for key, each in limits.items() if each is not None}
        if known and _has_scope(thing):
            problem = "it counts pods of a scope alone, and is not looked at"
            findings.append(
                Finding(subject=f"ResourceQuota {namespace_of(thing)}/{name_of(thing)}", problem=problem)
            )
            continue
        for key, limit in known.items():
            used = whole(at(thing, "status", "used", key))
            used = _used(namespace_of(thing), key, pods) if used is None else used
            found.append(
                QuotaObservation(
                    namespace=namespace_of(thing), cluster=cluster, resource=key, hard=limit, used=used
                )
            )
    return tuple(sorted(found, key=lambda one: (one.namespace, one.resource, one.hard))), tuple(findings)


def _counts(key: str, names: Names) -> bool:
    resource = key.removeprefix(_REQUESTS)
    return key.startswith(_REQUESTS) and (is_device(resource) or resource in names.resources)


def _has_scope(thing: Object) -> bool:
    scopes = at(thing, "spec", "scopes")
    return bool(scopes) or any(True for _ in items_of(at(thing, "spec", "scopeSelector", "matchExpressions")))


def _used(namespace: str, key: str, pods: Sequence[PodSeen]) -> int:
    resource = key.removeprefix(_REQUESTS)
    return sum(pod.requests.get(resource, 0) for pod in pods if pod.namespace == namespace)
