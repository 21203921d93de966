"""Nodes -> accelerators that they hold, and whether new pods may use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from models.hardware import Market
from models.observation import Finding
from planner.control.cluster.reading import (
    Object,
    at,
    is_ending,
    is_ready,
    items_of,
    labels_of,
    name_of,
    text_at,
)
from planner.control.discovery.naming import Names, devices_of
from planner.control.discovery.scheduling import amounts_of

__all__ = ["NodeSeen", "nodes_of"]

_LOST: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
_CORDON: Final = "node.kubernetes.io/unschedulable"
_SPOT: Final = {
    "cloud.google.com/gke-spot": "true",
    "cloud.google.com/gke-preemptible": "true",
    "karpenter.sh/capacity-type": "spot",
    "eks.amazonaws.com/capacityType": "SPOT",
    "kubernetes.azure.com/scalesetpriority": "spot",
}
_ZONES: Final = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGIONS: Final = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSeen:
    """A node as far as accelerators are concerned.

    Attributes:
        name: of the node.
        labels: of the node.
        devices: by resource: type and how many can be allocated.
        ready: as its kubelet says.
        cordoned: no new pods.
        taints: that keep pods away which do not tolerate them; without those of a node that is not ready.
        market: on which terms it is paid for.
        zone: failure domain; empty: unknown.
        region: of the cloud; empty: unknown.
        fabric: NVLink domain that spans nodes; empty: none is known.
    """

    name: str
    labels: Mapping[str, str]
    devices: Mapping[str, tuple[str, int]]
    ready: bool
    cordoned: bool
    taints: tuple[Mapping[str, Any], ...]
    market: Market
    zone: str
    region: str
    fabric: str


def nodes_of(objects: Sequence[Object], names: Names) -> tuple[tuple[NodeSeen, ...], tuple[Finding, ...]]:
    """Nodes with accelerators, and those whose accelerators nobody names.

    Args:
        objects: nodes as the API has them.
        names: of accelerators.
    """
    seen: list[NodeSeen] = []
    nameless: dict[str, list[str]] = {}
    for thing in objects:
        name, labels = name_of(thing), labels_of(thing)
        held = devices_of(amounts_of(at(thing, "status", "allocatable")), names.resources)
        typed: dict[str, tuple[str, int]] = {}
        for resource, amount in held.items():
            accelerator = names.of(resource, labels)
            if accelerator is None:
                nameless.setdefault(resource, []).append(name)
            else:
                typed[resource] = (accelerator, amount)
        if name and typed:
            seen.append(_seen(thing, name, labels, typed))
    return tuple(seen), tuple(_about(resource, where) for resource, where in sorted(nameless.items()))


def _seen(
    thing: Object, name: str, labels: Mapping[str, str], devices: Mapping[str, tuple[str, int]]
) -> NodeSeen:
    taints = tuple(items_of(at(thing, "spec", "taints")))
    keys = {text_at(taint, "key") for taint in taints}
    leaving = at(thing, "spec", "unschedulable") is True or is_ending(thing)
    spot = any(labels.get(key) == value for key, value in _SPOT.items())
    return NodeSeen(
        name=name,
        labels=labels,
        devices=devices,
        ready=is_ready(thing) and not keys & _LOST,
        cordoned=leaving or _CORDON in keys,
        taints=tuple(taint for taint in taints if text_at(taint, "key") not in {*_LOST, _CORDON}),
        market=Market.SPOT if spot else Market.ON_DEMAND,
        zone=_first(labels, _ZONES),
        region=_first(labels, _REGIONS),
        fabric=labels.get("nvidia.com/gpu.clique", ""),
    )


def _first(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((labels[key] for key in keys if labels.get(key)), "")


def _about(resource: str, where: Sequence[str]) -> Finding:
    shown = ", ".join(where[:_SHOWN]) + (", …" if len(where) > _SHOWN else "")
    return Finding(
        subject=f"nodes with {resource}",
        problem=f"no label says which accelerator {len(where)} of them have ({shown}), so they are left out",
        remedy="run the vendor's feature discovery, or name a label (labels) or the type (resources) in the options of discovery",
    )
